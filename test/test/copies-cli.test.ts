/** Fork, export and import as people call them: real runners, real repositories, real files. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import type { Opened } from '@baton/shared/entries.ts'
import { transcriptOf } from '@baton/shared/transcript.ts'
import { Cluster, type ClusterRunner } from '../src/cluster.ts'
import { command } from '../src/command.ts'
import { git, treeOf } from '../src/repo.ts'
import { until } from '../src/until.ts'

const CANARY = 'canary-prompt-51e7'
const PASSPHRASE = 'correct horse battery staple'

/** The agent waits for the next prompt, not for one that steers. */
const turnEnded = (entries: Opened[]): boolean =>
  entries.filter(
    (entry) => entry.kind === 'intent' && entry.body.kind === 'prompt' && entry.body.prompt?.steer !== true,
  ).length >= 2
const copied = (entries: Opened[]): boolean =>
  entries.some((entry) => entry.kind === 'received' && entry.body.kind === 'start' && entry.body.copied)

let cluster: Cluster
let one: ClusterRunner
beforeAll(async () => {
  cluster = await Cluster.open({ script: 'edit' })
  // Sessions that are left waiting take no room from the next test's.
  one = await cluster.runner('one', { args: ['--capacity', '20'] })
})
afterAll(() => cluster[Symbol.asyncDispose]())

interface Ran {
  code: number | null
  output: string
  json: { sid?: string; file?: string; error?: { code: string; message: string } } & Record<string, unknown>
}

/** Runs `baton … --json` to its end, as the device of a runner. */
async function baton(on: ClusterRunner, args: string[], env: NodeJS.ProcessEnv = {}): Promise<Ran> {
  const process = await cluster.ground.baton([...args, '--json', '--data', on.data], { env })
  const { code } = await process.exit
  const line = process.output.trim().split('\n').at(-1) ?? ''
  return { code, output: process.output, json: line.startsWith('{') ? JSON.parse(line) : {} }
}

/** A session that waits for the decision on its first write. */
async function waiting(): Promise<string> {
  const sid = await cluster.session(one, 'ask')
  await cluster.client.command(sid, 'prompt', { text: `Make a plan. ${CANARY}` })
  await until('it waits for a decision', async () => (await cluster.client.pending(sid)).length > 0)
  await cluster.client.untilEntries(sid, 'its files are stored', (all) =>
    all.some(({ kind }) => kind === 'checkpoint'),
  )
  return sid
}

/** Approves all that is asked for, to the end of the turn. */
function finish(sid: string, on = cluster): Promise<Opened[]> {
  return approvedUntil(sid, 'the turn has ended', turnEnded, on)
}

/** Approves all that is asked for until the journal is as wanted. */
async function approvedUntil(
  sid: string,
  what: string,
  reached: (entries: Opened[]) => boolean,
  { client } = cluster,
): Promise<Opened[]> {
  const decided = new Set<number>()
  return until(what, async () => {
    for (const { effect, digest } of await client.pending(sid)) {
      if (decided.has(effect)) continue
      decided.add(effect)
      await client.decide(sid, effect, digest)
    }
    return reached(await client.poll(sid)) && client.entries(sid)
  })
}

describe('baton fork', () => {
  it('X1: in the middle of a turn gives a session of its own, with files and a branch of its own', async () => {
    const sid = await waiting()
    const before = await cluster.client.entries(sid)
    const requests = (await cluster.model.state()).count
    const ran = await baton(one, ['fork', sid])
    expect(ran.code, ran.output).toBe(0)
    const copy = ran.json.sid ?? ''
    expect(copy).not.toBe(sid)
    expect(await cluster.client.entries(sid), 'the origin').toEqual(before)
    expect((await cluster.model.state()).count, 'model requests').toBe(requests)

    const forked = await finish(copy)
    expect(existsSync(join(cluster.worktree(one, sid), 'notes/plan.md'))).toBe(false)
    expect(existsSync(join(cluster.worktree(one, copy), 'notes/plan.md'))).toBe(true)
    const entries = await finish(sid)
    expect(transcriptOf(forked)).toEqual(transcriptOf(entries))
    expect(treeOf(cluster.worktree(one, copy))).toEqual(treeOf(cluster.worktree(one, sid)))
    const branch = (of: string): string => git(cluster.worktree(one, of), 'branch', '--show-current')
    expect(branch(copy)).toBe(`baton/${copy.slice(0, 8)}`)
    expect(branch(sid)).toBe(`baton/${sid.slice(0, 8)}`)
  })

  it('X1: goes on on another runner that has no clone, with a prompt of its own', async () => {
    const other = await cluster.ground.newFolder('elsewhere')
    git(other, 'init', '--quiet')
    const two = await cluster.runner('two', { args: ['--workspace', other] })
    const sid = await waiting()
    const ran = await baton(one, ['fork', sid, '--on', 'two', 'And then?'])
    expect(ran.code, ran.output).toBe(0)
    const copy = ran.json.sid ?? ''
    const entries = await approvedUntil(copy, 'the prompt was taken', (all) =>
      JSON.stringify(transcriptOf(all)).includes('And then?'),
    )
    expect(entries.some((entry) => entry.kind === 'lease' && entry.lease.holder === two.id)).toBe(true)
    expect(existsSync(join(cluster.worktree(two, copy), 'notes/plan.md'))).toBe(true)
  })
})

describe('baton export and import', () => {
  it('X7, F45: a file becomes the session that it was, also when the origin is gone', async () => {
    const sid = await waiting()
    const file = join(cluster.ground.folder, 'session.baton')
    const exported = await baton(one, ['export', sid, file])
    expect(exported.code, exported.output).toBe(0)
    const bytes = readFileSync(file)
    expect(exported.json).toMatchObject({ file, bytes: bytes.length, sealed: 'account' })
    expect(bytes.includes(CANARY), 'the file can be read').toBe(false)
    // Nothing is overwritten.
    expect((await baton(one, ['export', sid, file])).json.error?.code).toBe('file-unusable')

    const imported = await baton(one, ['import', file])
    expect(imported.code, imported.output).toBe(0)
    const copy = imported.json.sid ?? ''
    const entries = await finish(copy)
    expect(transcriptOf(entries)).toEqual(transcriptOf(await finish(sid)))
    expect(treeOf(cluster.worktree(one, copy))).toEqual(treeOf(cluster.worktree(one, sid)))
  })

  it('X7: a file that was cut or changed anywhere is refused, and nothing is started', async () => {
    const sid = await waiting()
    const whole = join(cluster.ground.folder, 'whole.baton')
    const sessions = async (): Promise<number> => (await cluster.client.link.ask('list', {})).sessions.length
    const before = await sessions()
    for (const flag of ['--plain', '']) {
      await baton(one, ['export', sid, `${whole}${flag}`, ...(flag ? [flag] : [])])
      const bytes = readFileSync(`${whole}${flag}`)
      const damaged: [string, Buffer][] = [
        ['cut in the middle', bytes.subarray(0, bytes.length >> 1)],
        ['without its last byte', bytes.subarray(0, -1)],
        ['with something behind it', Buffer.concat([bytes, Buffer.from('x')])],
        ['with a flipped bit', flipped(bytes, bytes.length - 2000)],
      ]
      for (const [what, content] of damaged) {
        const file = join(cluster.ground.folder, 'damaged.baton')
        writeFileSync(file, content)
        const imported = command('import', file, '--trust', '--data', one.data)
        await expect(imported, `${what} ${flag}`).rejects.toMatchObject({ code: 'copy-torn' })
      }
    }
    const ran = await baton(one, ['import', join(cluster.ground.folder, 'damaged.baton'), '--trust'])
    expect(ran).toMatchObject({ code: 1, json: { error: { code: 'copy-torn' } } })
    expect(await sessions()).toBe(before)
  })

  it('X8: another account needs the passphrase and has to say that it trusts the file', async () => {
    await using foreign = await Cluster.open({ script: 'edit' })
    const theirs = await foreign.runner('theirs')
    const sid = await waiting()
    const [own, shared, plain] = ['own', 'shared', 'plain'].map((name) =>
      join(cluster.ground.folder, name),
    ) as [string, string, string]
    const env = { BATON_PASSPHRASE: PASSPHRASE }
    await baton(one, ['export', sid, own])
    expect((await baton(one, ['export', sid, shared, '--passphrase'], env)).code).toBe(0)
    await baton(one, ['export', sid, plain, '--plain'])
    expect(readFileSync(plain).includes(CANARY), 'plain is plain').toBe(true)
    expect(readFileSync(shared).includes(CANARY)).toBe(false)

    const refused = async (code: string, file: string, flags: string[], passphrase?: string) => {
      vi.stubEnv('BATON_PASSPHRASE', passphrase)
      const imported = command('import', file, ...flags, '--data', theirs.data)
      await expect(imported).rejects.toMatchObject({ code })
      vi.unstubAllEnvs()
    }
    await refused('copy-foreign', own, ['--trust'])
    await refused('copy-untrusted', plain, [])
    await refused('copy-untrusted', shared, [], PASSPHRASE)
    await refused('copy-foreign', shared, ['--trust'], 'something else')
    await refused('copy-foreign', join(foreign.repo, 'README.md'), ['--trust'])

    const ran = await baton(theirs, ['import', shared, '--trust'], env)
    expect(ran.code, ran.output).toBe(0)
    const copy = ran.json.sid ?? ''
    const entries = await foreign.client.untilEntries(copy, 'it has started', copied)
    expect(JSON.stringify(transcriptOf(entries))).toContain(CANARY)
    await finish(copy, foreign)
    expect(existsSync(join(foreign.worktree(theirs, copy), 'notes/plan.md'))).toBe(true)
  })
})

function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes)
  copy[at] = (copy[at] ?? 0) ^ 1
  return copy
}
