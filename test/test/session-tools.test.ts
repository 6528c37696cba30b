/** What becomes of jobs, scratch files and files of a session when it moves, or when its runner is lost. */
import { mkdtempSync, readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { NO_CONFIG } from '@baton/runner/config.ts'
import { Trust } from '@baton/runner/config/trust.ts'
import { equip } from '@baton/runner/daemon/equip.ts'
import type { RunnerOptions } from '@baton/runner/daemon/runner.ts'
import { builtinTools } from '@baton/runner/tools/index.ts'
import type { Tool, ToolAnswer } from '@baton/runner/tools/tool.ts'
import type { Opened } from '@baton/shared/entries.ts'
import type { EffectRequest, GuestMessage, Json } from '@baton/shared/guest.ts'
import { Cluster } from '../src/cluster.ts'
import { Loop } from '../src/loop.ts'
import { noted, notes, stored } from '../src/looks.ts'
import { emit, prompt, tool } from '../src/script-asks.ts'
import type { Program } from '../src/script-harness.ts'
import { alive } from '../src/processes.ts'
import { until } from '../src/until.ts'

type Hands = RunnerOptions['hands']

const folders: string[] = []
afterEach(async () => {
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true })
})

function newFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'baton-tools-'))
  folders.push(folder)
  return folder
}

/** Real tools in a folder of the runner's own; virtual workspaces as everywhere. */
function handsOf(name: string): Partial<Hands> & { root: string } {
  const root = newFolder()
  const oid = 'c'.repeat(40)
  let stored = false
  const workspace = () => ({
    root,
    checkpoint: async () => {
      if (stored) return undefined
      stored = true
      return { kind: 'git' as const, commit: oid, tree: oid, head: oid, branch: 'main' }
    },
    pack: async () => ({
      bytes: 1,
      async *pieces() {
        yield new Uint8Array([1])
      },
      discard: async () => undefined,
    }),
    about: async () => ({ path: root, branch: 'main', platform: 'test' }),
    close: async () => undefined,
  })
  const base = {
    tools: async () => builtinTools(),
    rules: async () => [],
    openWorkspace: async () => workspace(),
    restoreWorkspace: async () => ({ workspace: workspace() }),
  } satisfies Partial<Hands>
  const options = {
    data: newFolder(),
    name,
    folders: [],
    env: process.env,
    sandbox: false,
    configOf: async () => NO_CONFIG,
    trust: new Trust(root),
  }
  const { tools, rules, openWorkspace, restoreWorkspace } = equip(base as unknown as Hands, options)
  return { tools, rules, openWorkspace, restoreWorkspace, root }
}

const textOf = (message: GuestMessage): string => {
  if (message.type !== 'outcome') return message.type
  const { result, error } = message
  const text = typeof result === 'object' && result !== null && 'text' in result ? result['text'] : undefined
  return typeof text === 'string' ? text : `error: ${error?.code ?? 'none'}`
}

/** Waits for a prompt before each call, and tells what it gave. A call may be made of what the one before gave. */
function calling(...calls: ((said: string) => EffectRequest)[]): Program {
  return function* () {
    yield {}
    let id = 1
    let said = ''
    let asks: EffectRequest[] = []
    for (const next of calls) {
      yield { ask: [...asks, prompt(id++)] }
      said = textOf(yield { ask: [{ ...next(said), id: id++ }] })
      asks = [emit(id++, said)]
    }
    yield { ask: [...asks, prompt(id++)] }
    return null
  }
}

const notices = (entries: Opened[]): string =>
  JSON.stringify(entries.filter((entry) => entry.kind === 'event' && entry.body.type === 'notice'))

describe('results that are too large', () => {
  const BIG = 20 << 20
  const big = async (answer: ToolAnswer): Promise<Json> => {
    const program: Program = function* () {
      yield {}
      const answered = yield { ask: [tool(1, 'big')] }
      yield { ask: [emit(2, answered as unknown as Json), prompt(3)] }
      return null
    }
    await using loop = await Loop.open({ program, tools: { big: { run: async () => answer } } })
    const one = await loop.runner('one')
    const sid = await loop.start(one.id)
    const entries = await loop.client.untilEntries(sid, 'the agent was told, or all has failed', (all) =>
      all.some((entry) => entry.kind === 'event' && ['note', 'failed'].includes(entry.body.type)),
    )
    const told = entries.flatMap((entry) =>
      entry.kind === 'event' && ['note', 'failed'].includes(entry.body.type) ? [entry.body] : [],
    )
    return told[0] as unknown as Json
  }

  it('H14: a detail that is too long is left out, and the rest counts', async () => {
    expect(await big({ text: 'x', is_error: false, detail: { rows: 'y'.repeat(BIG) } })).toMatchObject({
      type: 'note',
      data: {
        result: {
          text: 'x',
          is_error: false,
          detail: { left_out: expect.stringContaining('too long') as string },
        },
      },
    })
  })

  it('H14: a result that can not be stored is an error in words, and the session goes on', async () => {
    expect(await big({ text: 'y'.repeat(BIG), is_error: false })).toMatchObject({
      type: 'note',
      data: {
        error: { code: 'result-lost', message: expect.stringContaining('could not be kept') as string },
      },
    })
  })
})

describe('jobs', () => {
  it('T18: hold a session that rests on its machine while they run, and that is told', async () => {
    const program = calling(
      () => tool(0, 'bash', { command: 'exec sleep 1000', background: true }),
      (said) => tool(0, 'job', { action: 'stop', id: /job-\S+(?=\.)/.exec(said)?.[0] ?? said }),
    )
    await using loop = await Loop.open({ program, park_after_ms: 1 })
    const { client } = loop
    const one = await loop.runner('one', handsOf('one'))
    const sid = await client.start({ prefer: one.id }, { agent: 'script', workspace: '/w', mode: 'full' })
    await client.command(sid, 'prompt', { text: 'begin' })
    const entries = await client.untilEntries(sid, 'that the job holds it is told', (all) =>
      JSON.stringify(all).includes('A job runs in the background, so the session stays'),
    )
    expect(notes(entries)).toHaveLength(1)
    expect((await client.info(sid)).holder).toBe(one.id)
    await client.command(sid, 'prompt', { text: 'stop it' })
    await until('it has parked', async () => (await client.info(sid)).holder === undefined)
    expect(JSON.stringify(await client.entries(sid))).not.toContain('Background jobs ended')
  })

  it('T3: end when the session moves, and the tool says so there', async () => {
    const program = calling(
      () => tool(0, 'bash', { command: 'echo $$ > job.pid; exec sleep 1000', background: true }),
      (said) => tool(0, 'job', { action: 'output', id: /job-\S+(?=\.)/.exec(said)?.[0] ?? said }),
    )
    await using loop = await Loop.open({ program })
    const { client } = loop
    const hands = handsOf('one')
    const one = await loop.runner('one', hands)
    const two = await loop.runner('two', handsOf('two'))
    const sid = await client.start({ prefer: one.id }, { agent: 'script', workspace: '/w', mode: 'full' })
    await client.command(sid, 'prompt', { text: 'begin' })
    await client.untilEntries(sid, 'the job has begun', (all) => stored(all) && notes(all).length === 1)
    const pid = await until('it has a pid', () => Number(readFileSync(join(hands.root, 'job.pid'), 'utf8')))
    expect(alive(pid)).toBe(true)
    await client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
    await until('it is on two', async () => (await client.info(sid)).holder === two.id)
    await until('the job has ended', () => !alive(pid))
    await client.command(sid, 'prompt', { text: 'look' })
    const entries = await client.untilEntries(sid, 'it has looked', noted(2))
    expect(notes(entries)[1]).toMatch(/^job-1-\w+@one ended when the session left one/)
  })
})

it('T12: the coder works in a virtual workspace on a real runner that serves no folder of it', async () => {
  await using cluster = await Cluster.open({ script: 'task' })
  const { client } = cluster
  const one = await cluster.runner('one')
  const start = { agent: 'coder', workspace: 'virtual', mode: 'full' as const }
  const sid = await client.start({ prefer: one.id }, start)
  await client.command(sid, 'prompt', { text: 'Count the lines.' })
  const ended = (all: Opened[]): boolean =>
    all.filter((entry) => entry.kind === 'outcome' && JSON.stringify(entry.body.result).includes('README'))
      .length >= 2
  const entries = await client.untilEntries(sid, 'it has counted', ended)
  // README.md is in the repository that the runner serves, and not in the session.
  expect(JSON.stringify(entries)).toContain('wc: README.md: No such file or directory')
})

describe('virtual workspaces', () => {
  const bash = (command: string) => () => tool(0, 'bash', { command })

  it('T12: files are there again wherever the session goes, and any runner takes it', async () => {
    const program = calling(bash('mkdir d; echo one > d/a; pwd'), bash('cat d/a; ls'))
    await using loop = await Loop.open({ program })
    const { client } = loop
    const one = await loop.runner('one', handsOf('one'))
    const two = await loop.runner('two', handsOf('two'))
    const sid = await client.start(
      { prefer: one.id },
      { agent: 'script', workspace: 'virtual', mode: 'full' },
    )
    await client.command(sid, 'prompt', { text: 'write' })
    await client.untilEntries(sid, 'it has written', noted(1))
    await client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
    await until('it is on two', async () => (await client.info(sid)).holder === two.id)
    await client.command(sid, 'prompt', { text: 'read' })
    const entries = await client.untilEntries(sid, 'it has read', noted(2))
    expect(notes(entries)).toEqual(['/workspace', 'one\nd'])
    const kinds = entries.flatMap((entry) => (entry.kind === 'checkpoint' ? [entry.body.kind] : []))
    expect(new Set(kinds)).toEqual(new Set(['virtual']))
  })

  it('T15: a command that was cut off runs again, on the files as they were before it', async () => {
    const program = calling(bash('echo 1 >> log'), bash('echo 2 >> log; cat log'))
    await using loop = await Loop.open({ program, lease_ms: 1500 })
    const { client } = loop
    const hands = handsOf('one')
    let calls = 0
    // The second call does all that it does, and its runner never hears of it.
    const cutOff = (bash: Tool): Tool => ({
      ...bash,
      execute: async (...call) => {
        const answer = await bash.execute(...call)
        return ++calls === 2 ? new Promise(() => undefined) : answer
      },
    })
    const tools: Hands['tools'] = async (...where) =>
      ((await hands.tools?.(...where)) ?? []).map((one) => (one.spec.name === 'bash' ? cutOff(one) : one))
    const one = await loop.runner('one', { ...hands, tools })
    const sid = await client.start(
      { prefer: one.id },
      { agent: 'script', workspace: 'virtual', mode: 'full' },
    )
    await client.command(sid, 'prompt', { text: 'first' })
    await client.untilEntries(sid, 'it has written', noted(1))
    await client.command(sid, 'prompt', { text: 'second' })
    await until('the second has run', () => calls === 2)
    one.runner.close()
    await loop.runner('two', handsOf('two'))
    const entries = await client.untilEntries(sid, 'it is over', noted(2))
    expect(notes(entries)[1]).toBe('1\n2')
    const attempts = entries.flatMap((entry) =>
      entry.kind === 'intent' && entry.body.kind === 'tool' ? [entry.body.attempt] : [],
    )
    expect(attempts).toEqual([1, 1, 2])
  })

  it('T14: scratch files are told to be gone after a move', async () => {
    const program = calling(bash('echo x > a; ls'), bash('ls | wc -l'))
    await using loop = await Loop.open({ program })
    const { client } = loop
    const one = await loop.runner('one', handsOf('one'))
    const two = await loop.runner('two', handsOf('two'))
    const sid = await client.start(
      { prefer: one.id },
      { agent: 'script', workspace: 'scratch', mode: 'full' },
    )
    await client.command(sid, 'prompt', { text: 'write' })
    const before = await client.untilEntries(sid, 'it has written', noted(1))
    expect(notices(before)).toContain('Scratch files are not stored')
    await client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
    await client.untilEntries(sid, 'it is told', (all) => notices(all).includes('The scratch files are gone'))
    await client.command(sid, 'prompt', { text: 'look' })
    const entries = await client.untilEntries(sid, 'it has looked', noted(2))
    expect(notes(entries)).toEqual(['a', '0'])
  })
})
