/** A call that changes a file, whose runner is killed when the file is in place and nothing tells so yet: it is done once. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Opened } from '@baton/shared/entries.ts'
import { Cluster } from '../src/cluster.ts'
import { alive } from '../src/processes.ts'
import { git } from '../src/repo.ts'
import { until } from '../src/until.ts'

const PRELOAD = join(import.meta.dirname, '../src/torture/after-write.ts')
const BEFORE = 'one\ntwo\n'

interface Place {
  place: 'in-place' | 'worktree' | 'no-git'
  /** Has anything of the files been stored before? */
  stores: 'at-once' | 'never'
}
interface Seen {
  entries: Opened[]
  /** The file at last. */
  text: string
  /** The file as it is kept on a branch. */
  kept: string | undefined
  branch: string
}

/** `meanwhile`: what a person does to the file while no runner is there. */
async function killed(
  script: string,
  { place, stores }: Place,
  meanwhile?: (file: string) => void,
): Promise<Seen> {
  await using cluster = await Cluster.open({
    script,
    lease_ms: 1000,
    repo: { extra: { 'list.txt': BEFORE } },
  })
  const { client } = cluster
  const plain = await cluster.ground.newFolder('plain')
  writeFileSync(join(plain, 'list.txt'), BEFORE)
  const workspace = place === 'no-git' ? plain : cluster.repo
  const env = { NODE_OPTIONS: `--import=${PRELOAD}`, AFTER_WRITE: 'list.txt', AFTER_WRITE_STORES: stores }
  const one = await cluster.runner('one', { env, workspace })
  const settings = place === 'in-place' ? { settings: { place } } : {}
  const sid = await client.start({ prefer: one.id }, { agent: 'coder', workspace, mode: 'full', ...settings })
  if (stores === 'at-once') await client.untilEntries(sid, 'the files are stored', hasCheckpoint)
  await client.command(sid, 'prompt', { text: 'Do it.' })
  await until('the runner is dead', () => !alive(one.process.pid))
  const cut = await client.entries(sid)
  expect(hasCheckpoint(cut)).toBe(stores === 'at-once')
  expect(outcomeOfChange(cut)).toBeUndefined()
  const file =
    place === 'worktree' ? join(cluster.worktree(one, sid), 'list.txt') : join(workspace, 'list.txt')
  expect(readFileSync(file, 'utf8')).not.toBe(BEFORE)
  meanwhile?.(file)
  const { data, device } = one
  await cluster.runner('one', { data, device, workspace })
  const entries = await client.untilEntries(sid, 'the turn has ended', hasEnded)
  const branch = `baton/kept/${sid.slice(0, 8)}-1`
  const isKept = git(cluster.repo, 'branch', '--list', branch) !== ''
  return {
    ...{ entries, branch, text: readFileSync(file, 'utf8') },
    kept: isKept ? git(cluster.repo, 'show', `${branch}:list.txt`) : undefined,
  }
}

const INSERT = { script: 'insert', after: 'one\nmore\ntwo\n', told: 'Edited list.txt: one replacement.' }
const INSERT_ALL = { script: 'insert-all', after: 'oone\ntwoo\n', told: 'Edited list.txt: 2 replacements.' }

const hasCheckpoint = (entries: Opened[]): boolean => entries.some(({ kind }) => kind === 'checkpoint')
const hasEnded = (entries: Opened[]): boolean =>
  entries.some(
    (entry) => entry.kind === 'event' && entry.body.type === 'turn' && stateOf(entry.body.data) === 'end',
  )
const stateOf = (data: unknown): unknown =>
  typeof data === 'object' && data !== null && 'state' in data ? data.state : undefined

/** The result of the call that changes the file. */
function outcomeOfChange(entries: Opened[]): Record<string, unknown> | undefined {
  const calls = entries.flatMap((entry) =>
    entry.kind === 'intent' && entry.body.tool ? [entry.body.effect] : [],
  )
  const ends = entries.flatMap((entry) =>
    entry.kind === 'outcome' && calls.includes(entry.body.effect) ? [entry.body] : [],
  )
  expect(ends.length).toBeLessThanOrEqual(1)
  return ends[0]?.result as Record<string, unknown> | undefined
}

const notices = (entries: Opened[]): string[] =>
  entries.flatMap((entry) =>
    entry.kind === 'event' && entry.body.type === 'notice'
      ? [(entry.body.data as { message: string }).message]
      : [],
  )

// The rest of what can be combined is in runner/test/tools-attempts.test.ts.
it.each<Place & { script: string; after: string; told: string }>([
  { place: 'in-place', stores: 'never', ...INSERT },
  { place: 'worktree', stores: 'never', ...INSERT_ALL },
  { place: 'worktree', stores: 'at-once', ...INSERT },
  { place: 'no-git', stores: 'never', ...INSERT },
])('I5 I7 I11 K16: $script, $place, stored before: $stores', async ({ script, after, told, ...where }) => {
  const { entries, text, kept } = await killed(script, where)
  expect(text).toBe(after)
  expect(outcomeOfChange(entries)).toMatchObject({
    text: told,
    is_error: false,
    detail: { path: 'list.txt' },
  })
  // Nobody but the agent changed anything.
  expect(notices(entries).slice(1)).toEqual([])
  expect(kept).toBeUndefined()
})

describe('a person changed the file before the runner came back', () => {
  const add = (file: string): void => writeFileSync(file, `${readFileSync(file, 'utf8')}mine\n`)

  it('I11 K16: nothing stored before: it stays as it is, and the agent is told to look', async () => {
    const { entries, text } = await killed('insert', { place: 'in-place', stores: 'never' }, add)
    expect(text).toBe('one\nmore\ntwo\nmine\n')
    const { text: told, is_error } = outcomeOfChange(entries) ?? {}
    expect(is_error).toBe(true)
    expect(told).toContain('was cut off before, and list.txt has changed since')
  })

  it('I11 K10: stored before: what lay there is kept, in words that are true of both', async () => {
    const { entries, text, branch, kept } = await killed(
      'insert',
      { place: 'in-place', stores: 'at-once' },
      add,
    )
    expect(text).toBe('one\nmore\ntwo\n')
    expect(notices(entries)).toContain(
      `Changes here that are in no checkpoint of the session are kept on branch ${branch}: list.txt.`,
    )
    expect(kept).toBe('one\nmore\ntwo\nmine')
  })
})
