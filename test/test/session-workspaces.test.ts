/** Sessions and their files on real repositories: what moves, what is kept, what is told. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import { blobKey } from '@baton/relay/keys.ts'
import { createHands } from '@baton/runner/daemon/hands.ts'
import type { RunnerOptions } from '@baton/runner/daemon/runner.ts'
import type { Opened } from '@baton/shared/entries.ts'
import type { EffectRequest, Json } from '@baton/shared/guest.ts'
import { Loop, type TestTool } from '../src/loop.ts'
import { git, makeRepo } from '../src/repo.ts'
import { emit, prompt, resultOf, tool } from '../src/script-asks.ts'
import type { Program } from '../src/script-harness.ts'
import { until } from '../src/until.ts'

/** Waits for a prompt, lets the tool `work` do what stands there, and so on. */
const worker: Program = function* () {
  yield {}
  let told: EffectRequest[] = []
  for (let id = 1; ; id += 3) {
    const said = resultOf(yield { ask: [...told, prompt(id)] }) as { text?: string }
    const done = resultOf(yield { ask: [tool(id + 1, 'work', { script: said.text ?? '' })] })
    told = [emit(id + 2, done)]
  }
}

const textOf = (value: Json | undefined): string =>
  typeof value === 'string' ? value : JSON.stringify(value)

/** Lines of `write PATH TEXT`. */
const work: TestTool = {
  access: 'run',
  run: async ({ script }, _, { root }) => {
    for (const line of textOf(script).split('\n')) {
      const [, path = '', text = ''] = line.split(' ')
      writeFileSync(join(root, path), text)
    }
    return root
  },
}

const notices = (entries: Opened[]): string[] =>
  entries.flatMap((entry) =>
    entry.kind === 'event' && entry.body.type === 'notice'
      ? [(entry.body.data as { message: string }).message]
      : [],
  )
const answers = (entries: Opened[]): Json[] =>
  entries.flatMap((entry) => (entry.kind === 'event' && entry.body.type === 'note' ? [entry.body.data] : []))
const checkpoints = (entries: Opened[]): number => entries.filter(({ kind }) => kind === 'checkpoint').length

class Place implements AsyncDisposable {
  readonly loop: Loop
  readonly repo: string

  private constructor(loop: Loop, repo: string) {
    this.loop = loop
    this.repo = repo
  }

  static async open(config?: object): Promise<Place> {
    const loop = await Loop.open({ program: worker, tools: { work } })
    const repo = join(loop.folder, 'repo')
    mkdirSync(repo)
    makeRepo(repo)
    if (config) writeFileSync(join(repo, 'baton.config.ts'), `export default ${JSON.stringify(config)}`)
    return new Place(loop, repo)
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.loop[Symbol.asyncDispose]()
  }

  /** A runner with the repository, or with another folder, and what the daemon does with files. */
  async runner(name: string, folder = this.repo): Promise<{ id: string; data: string }> {
    const data = join(this.loop.folder, `data-${name}`)
    mkdirSync(data)
    const times = { park_after_ms: 60_000, finish_within_ms: 30_000 }
    const hands: RunnerOptions['hands'] = await createHands({
      data,
      folders: [folder],
      env: {},
      name,
      ...times,
    })
    const { openWorkspace, restoreWorkspace } = hands
    const { id } = await this.loop.runner(name, { openWorkspace, restoreWorkspace })
    return { id, data }
  }

  start(prefer: string, settings?: Record<string, Json>): Promise<string> {
    const start = { agent: 'script', workspace: this.repo, mode: 'full' as const }
    return this.loop.client.start({ prefer }, { ...start, ...(settings ? { settings } : {}) })
  }

  /** Lets the agent do something; gives the root that it did it in. */
  async work(sid: string, script: string): Promise<Json> {
    const { client } = this.loop
    const before = answers(await client.entries(sid)).length
    await client.command(sid, 'prompt', { text: script })
    const entries = await client.untilEntries(sid, 'it is done', (all) => answers(all).length > before)
    return (answers(entries).at(-1) as { text?: string }).text ?? answers(entries).at(-1) ?? null
  }

  async move(sid: string, to: string): Promise<void> {
    const { client } = this.loop
    await client.command(sid, 'move', { label: 'there' }, { place: { prefer: to } })
    await until('it has moved', async () => (await client.info(sid)).holder === to)
  }
}

describe('files', () => {
  it('I11 K10 K12: laptop, cloud, laptop, with edits made meanwhile: both exist, and person and agent are told', async () => {
    await using place = await Place.open()
    const { client } = place.loop
    const [laptop, cloud] = [await place.runner('laptop'), await place.runner('cloud', place.loop.folder)]
    const sid = await place.start(laptop.id)
    await place.work(sid, 'write both.txt first\nwrite agent.txt here')
    const home = join(laptop.data, 'worktrees', sid)
    await place.move(sid, cloud.id)
    expect(await place.work(sid, 'write both.txt agent')).toBe(join(cloud.data, 'worktrees', sid))
    writeFileSync(join(home, 'both.txt'), 'person')
    writeFileSync(join(home, 'mine.txt'), 'mine')
    await place.move(sid, laptop.id)
    const branch = `baton/kept/${sid.slice(0, 8)}-1`
    const told = [
      `Changes here that are in no checkpoint of the session are kept on branch ${branch}: both.txt, mine.txt.`,
      `Changed on both sides: both.txt. The session's are in place; compare with: git diff ${branch}`,
    ]
    expect(await place.work(sid, 'write end.txt e')).toBe(`${home}\n\n[Baton: ${told.join(' ')}]`)
    expect(await place.work(sid, 'write end.txt e')).toBe(home)
    expect(readFileSync(join(home, 'both.txt'), 'utf8')).toBe('agent')
    expect(existsSync(join(home, 'mine.txt'))).toBe(false)
    expect(git(place.repo, 'show', `${branch}:both.txt`)).toBe('person')
    expect(git(place.repo, 'show', `${branch}:mine.txt`)).toBe('mine')
    expect(notices(await client.entries(sid)).slice(1)).toEqual(told)
  })

  it('K5: a session that is to work in place says so; a second one there is refused in words', async () => {
    await using place = await Place.open()
    const { client } = place.loop
    const laptop = await place.runner('laptop')
    const sid = await place.start(laptop.id, { place: 'in-place' })
    expect(await place.work(sid, 'write new.txt n')).toBe(place.repo)
    expect(notices(await client.entries(sid))).toEqual([`Works in the folder itself: ${place.repo}`])
    expect(git(place.repo, 'status', '--porcelain')).toBe('?? new.txt')
    const second = await place.start(laptop.id, { place: 'in-place' })
    const entries = await client.untilEntries(second, 'it is refused', (all) =>
      all.some((entry) => entry.kind === 'event' && entry.body.type === 'failed'),
    )
    expect(JSON.stringify(entries)).toContain('workspace-in-use')
    const beside = await place.start(laptop.id)
    expect(await place.work(beside, 'write other.txt o')).toBe(join(laptop.data, 'worktrees', beside))
    expect(existsSync(join(place.repo, 'other.txt'))).toBe(false)
  })

  it('I11 K12: in place, what the person did while it was away and did nothing is stored before the agent changes it', async () => {
    await using place = await Place.open()
    const { client } = place.loop
    const [laptop, cloud] = [await place.runner('laptop'), await place.runner('cloud', place.loop.folder)]
    const sid = await place.start(laptop.id, { place: 'in-place' })
    await place.work(sid, 'write both.txt first')
    await place.move(sid, cloud.id)
    writeFileSync(join(place.repo, 'both.txt'), 'person')
    writeFileSync(join(place.repo, 'mine.txt'), 'mine')
    await place.move(sid, laptop.id)
    const told = `Changed in ${place.repo} since the session was last at work there, and left as they are: both.txt, mine.txt.`
    expect(await place.work(sid, 'write both.txt agent')).toBe(`${place.repo}\n\n[Baton: ${told}]`)
    expect(readFileSync(join(place.repo, 'both.txt'), 'utf8')).toBe('agent')
    expect(readFileSync(join(place.repo, 'mine.txt'), 'utf8')).toBe('mine')
    const entries = await client.entries(sid)
    expect(notices(entries)).toContain(told)
    const stored = entries.flatMap((entry) => (entry.kind === 'checkpoint' ? [entry.body.commit] : []))
    expect(stored.slice(1, -1).map((commit) => git(place.repo, 'show', `${commit}:both.txt`))).toEqual([
      'first',
      'person',
    ])
  })

  it('K9: the first tool on a machine waits for the set-up of the person’s config, and what became of it is told', async () => {
    await using place = await Place.open({
      workspace: { setup: 'sleep 0.3; cp README.md made.txt; echo made.txt >> .gitignore' },
    })
    const { client } = place.loop
    const [laptop, cloud] = [await place.runner('laptop'), await place.runner('cloud', place.loop.folder)]
    const sid = await place.start(laptop.id)
    await client.untilEntries(sid, 'the files are stored', (all) => checkpoints(all) === 1)
    await place.move(sid, cloud.id)
    const root = textOf(await place.work(sid, 'write a.txt a'))
    expect(existsSync(join(root, 'made.txt'))).toBe(true)
    const told = notices(await client.entries(sid)).filter((text) =>
      text.startsWith('Set-up on this machine: '),
    )
    expect(told.length).toBeGreaterThan(0)
  })

  it('F46: a machine that can not get the newest files refuses to work on older ones, in words', async () => {
    await using place = await Place.open()
    const { client, redis } = place.loop
    const [laptop, cloud] = [await place.runner('laptop'), await place.runner('cloud', place.loop.folder)]
    const sid = await place.start(laptop.id)
    await place.work(sid, 'write a.txt newest')
    const entries = await client.untilEntries(sid, 'both are stored', (all) => checkpoints(all) === 2)
    const newest = entries.findLast((entry) => entry.kind === 'checkpoint')
    const blob = newest?.kind === 'checkpoint' ? newest.body.packs.at(-1)?.blobs[0] : undefined
    await dropBlob(redis.path, sid, blob ?? '')
    await place.move(sid, cloud.id)
    expect(await place.work(sid, 'write b.txt b')).toEqual({ error: 'no-blob' })
    expect(existsSync(join(cloud.data, 'worktrees', sid))).toBe(false)
    await place.move(sid, laptop.id)
    expect(await place.work(sid, 'write b.txt b')).toBe(join(laptop.data, 'worktrees', sid))
    expect(readFileSync(join(laptop.data, 'worktrees', sid, 'a.txt'), 'utf8')).toBe('newest')
  })
})

/** Takes a blob out of the store, as a bad failover might. */
async function dropBlob(path: string, sid: string, hash: string): Promise<void> {
  const redis = new Redis(path)
  expect(await redis.del(blobKey(sid, hash))).toBe(1)
  redis.disconnect()
}
