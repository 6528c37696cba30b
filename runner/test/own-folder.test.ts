/** Whose config has the say for a session that came from elsewhere. */
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { CheckpointEntry } from '@baton/shared/journal.ts'
import { createHands } from '../src/daemon/hands.ts'
import type { RunnerOptions } from '../src/daemon/runner.ts'
import type { Origin } from '../src/session/options.ts'
import { packOf } from '../src/workspace/pack-file.ts'
import { Courier, folder, git, openGitWorkspace, put, repository, SID } from './workspace-ground.ts'

const CONFIG = `export default {
  tools: { deploy: { description: 'D', replay: 'never', input: { type: 'object' }, execute: () => 'deployed' } },
  rules: [{ tool: 'bash', prefix: 'rm', action: 'deny' }],
  fetch: { allow: ['localhost:3000'] },
  mcp: { docs: { command: 'docs-server' } },
  sandbox: { network: true },
}`
const known = {
  ...{ name: 'mcp__docs__look', description: 'L', schema: { type: 'object' } },
  ...{ replay: 'never' as const, access: 'run' as const },
}

/** A runner that serves these folders. */
async function runner(...folders: string[]): Promise<{ hands: RunnerOptions['hands']; data: string }> {
  const data = folder()
  const times = { park_after_ms: 60_000, finish_within_ms: 30_000 }
  return { hands: await createHands({ data, folders, env: {}, name: 'here', ...times }), data }
}

/** A session that began in a project on another machine, with a commit of the agent's own if wanted. */
async function session(project: string, commits = false): Promise<Courier> {
  const elsewhere = await openGitWorkspace({ repository: project, data: folder(), sid: SID })
  const courier = new Courier()
  await courier.take(elsewhere)
  if (commits) {
    put(elsewhere.root, { 'agent.txt': 'agent' })
    git(elsewhere.root, 'add', '-A')
    git(elsewhere.root, 'commit', '--quiet', '--no-gpg-sign', '-m', 'agent')
    await courier.take(elsewhere)
  }
  return courier
}

/** What the config that counts gives to a session that arrives. */
async function given(hands: RunnerOptions['hands'], from: string, { packs, last }: Courier) {
  const checkpoint: CheckpointEntry = { ...last, packs: [] }
  const restored = hands.restoreWorkspace(SID, from, checkpoint, packs.map(packOf))
  const origin: Origin = { sid: SID, checkpoint, arrived: restored.then(({ workspace }) => workspace) }
  const tools = await hands.tools(from, { known: [known], origin, tell: () => undefined })
  const rules = await hands.rules(from, origin)
  const { workspace } = await restored
  const { stay, root } = workspace
  const context = {
    root,
    signal: AbortSignal.timeout(60_000),
    readFiles: new Map(),
    ...(stay ? { stay } : {}),
  }
  const server = await tools.find(({ spec }) => spec.name === known.name)?.execute({}, context)
  await workspace.close()
  return {
    tools: tools.map(({ spec }) => spec.name).filter((name) => name === 'deploy'),
    rules: rules.length,
    fetch: stay?.fetchAllowed ?? [],
    sandbox: stay?.enclosure !== undefined,
    server: server?.text ?? '',
  }
}

const ALL = { tools: ['deploy'], rules: 1, fetch: ['localhost:3000'], sandbox: true }
const NOTHING = { tools: [], rules: 0, fetch: [], sandbox: false }

describe('B6 T9: a config counts for a session from elsewhere', () => {
  test.each([
    ['the only folder', 'other'],
    ['a folder of the same name', 'project'],
  ])('not when %s is another repository: no tools, rules, servers, addresses of it', async (_what, name) => {
    const unrelated = join(folder(), name)
    mkdirSync(unrelated)
    git(unrelated, 'init', '--quiet')
    put(unrelated, { 'baton.config.mjs': CONFIG })
    git(unrelated, 'add', '-A')
    git(unrelated, 'commit', '--quiet', '--no-gpg-sign', '-m', 'another start')
    const { hands } = await runner(unrelated)
    const got = await given(hands, '/home/person/project', await session(repository()))
    expect(got).toMatchObject(NOTHING)
    expect(got.server).toContain('docs is not set up on this machine')
  })

  test('not when another repository has the very same path', async () => {
    const project = repository()
    const courier = await session(project)
    rmSync(project, { recursive: true })
    mkdirSync(project)
    git(project, 'init', '--quiet')
    put(project, { 'baton.config.mjs': CONFIG })
    const { hands } = await runner(project)
    expect(await given(hands, project, courier)).toMatchObject(NOTHING)
  })

  test('of a clone of its repository, whatever that is called and whatever else is served', async () => {
    const project = repository()
    const clone = join(folder(), 'my-name-for-it')
    git(project, 'clone', '--quiet', project, clone)
    put(clone, { 'baton.config.mjs': CONFIG })
    const { hands } = await runner(repository({ 'b.txt': 'another' }), clone)
    const got = await given(hands, project, await session(project))
    expect(got).toMatchObject(ALL)
    expect(got.server).toContain('docs can not be used: ')
  })

  test('of a clone that is behind', async () => {
    const project = repository()
    const clone = join(folder(), 'project')
    git(project, 'clone', '--quiet', project, clone)
    put(clone, { 'baton.config.mjs': CONFIG })
    const { hands } = await runner(clone)
    expect(await given(hands, project, await session(project, true))).toMatchObject(ALL)
  })

  test('coming home with commits made elsewhere, before its files are there', async () => {
    const project = repository()
    const courier = new Courier()
    const { hands, data } = await runner(project)
    const first = await openGitWorkspace({ repository: project, data, sid: SID })
    await courier.take(first)
    await first.close()
    put(project, { 'baton.config.mjs': CONFIG })
    const arrived = new Promise<never>(() => undefined)
    const checkpoint: CheckpointEntry = { ...courier.last, head: 'a'.repeat(40), packs: [] }
    const rules = await hands.rules(project, { sid: SID, checkpoint, arrived })
    expect(rules).toHaveLength(1)
  })

  test('of a folder without git when it is that very folder', async () => {
    const plain = folder()
    put(plain, { 'baton.config.mjs': CONFIG })
    const { hands } = await runner(plain)
    const at = { commit: 'a'.repeat(40), tree: 'a'.repeat(40), head: '', branch: '', packs: [] }
    const arrived = new Promise<never>(() => undefined)
    const origin: Origin = { sid: SID, checkpoint: { kind: 'folder', ...at }, arrived }
    expect(await hands.rules(plain, origin)).toHaveLength(1)
    expect(await hands.rules('/home/person/notes', { ...origin })).toHaveLength(0)
  })

  test('not when its files do not arrive', async () => {
    const { hands } = await runner(repository({ 'baton.config.mjs': CONFIG }))
    const { last } = await session(repository())
    const arrived = Promise.reject(new Error('no files'))
    arrived.catch(() => undefined)
    expect(await hands.rules('/x', { sid: SID, checkpoint: { ...last, packs: [] }, arrived })).toEqual([])
  })
})

describe('T10: the sandbox that a session began with goes with it', () => {
  test.each<[string, string | undefined, { network: boolean } | undefined]>([
    ['a machine without its config', undefined, { network: true }],
    ['a config that allows less', 'export default { sandbox: true }', { network: false }],
    ['a config that wants none', 'export default {}', { network: true }],
  ])('to %s', async (_, config, expected) => {
    const project = repository()
    const { packs, last } = await session(project)
    const clone = config === undefined ? repository() : join(folder(), 'clone')
    if (config !== undefined) git(project, 'clone', '--quiet', project, clone)
    if (config !== undefined) put(clone, { 'baton.config.mjs': config })
    const { hands } = await runner(clone)
    const checkpoint: CheckpointEntry = { ...last, packs: [] }
    const wish = { network: true }
    const { workspace } = await hands.restoreWorkspace(SID, project, checkpoint, packs.map(packOf), wish)
    expect(workspace.stay?.enclosure).toBeDefined()
    expect(workspace.stay?.sandbox).toEqual(expected)
    await workspace.close()
  })

  test('it is told when the session begins', async () => {
    const project = repository()
    put(project, { 'baton.config.mjs': CONFIG })
    const { hands } = await runner(project)
    const workspace = await hands.openWorkspace(SID, project)
    expect(workspace.stay?.sandbox).toEqual({ network: true })
    await workspace.close()
  })
})
