/** Calls that change a file and are cut off anywhere, then begun again: each is done once, and nothing of anybody else is lost. */
import { chmodSync, existsSync, readFileSync, rmSync, utimesSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import type { Json } from '@baton/shared/guest.ts'
import { Attempts, type Attempt } from '../src/tools/attempts.ts'
import { builtinTools } from '../src/tools/index.ts'
import type { ToolAnswer, ToolContext } from '../src/tools/tool.ts'
import { context, get, put, root, top, use } from './tools-ground.ts'
import * as ground from './workspace-ground.ts'

const DIGEST = 'd'.repeat(64)
type Input = { [key: string]: Json }

/** As after a start of the runner: it has read nothing, and has the notes of the one before. */
const fresh = (folder = top): Attempts => new Attempts(folder)
const attemptOf = (effect = 1, digest = DIGEST): Attempt => fresh().of(effect, digest, () => true)

async function call(name: string, input: Input, more: Partial<ToolContext> = {}): Promise<ToolAnswer> {
  const tool = builtinTools().find(({ spec }) => spec.name === name)
  if (!tool) throw new Error(`no tool ${name}`)
  return tool.execute(input, { ...context, readFiles: new Map(), attempt: attemptOf(), ...more })
}

/** Cut off when the note is written and the file is not. */
async function cutBefore(name: string, input: Input, more: Partial<ToolContext> = {}): Promise<void> {
  const attempt = attemptOf()
  const note: Attempt['note'] = async (change) => {
    await attempt.note(change)
    throw new Error('killed')
  }
  await expect(call(name, input, { ...more, attempt: { ...attempt, note } })).rejects.toThrow('killed')
}

const CALLS: [name: string, input: Input, before: string | undefined, after: string][] = [
  ['edit', { path: 'a.txt', old_string: 'foo', new_string: 'foo\nBAR' }, 'x\nfoo\n', 'x\nfoo\nBAR\n'],
  ['edit', { path: 'a.txt', old_string: 'o', new_string: 'oo', replace_all: true }, 'foo', 'foooo'],
  ['edit', { path: 'a.txt', old_string: 'foo', new_string: '' }, 'foofoo bar'.slice(3), ' bar'],
  [
    'edit',
    { path: 'a.txt', old_string: 'foo\n', new_string: 'foo\nfoo\n' },
    '\ufefffoo\r\n',
    '\ufefffoo\r\nfoo\r\n',
  ],
  ['write', { path: 'a.txt', content: 'new\n' }, undefined, 'new\n'],
  ['write', { path: 'a.txt', content: 'new\n' }, 'old\n', 'new\n'],
]

describe.each(CALLS)('%s %j', (name, input, before, after) => {
  let whole: ToolAnswer
  beforeEach(async () => {
    const lay = (): void =>
      before === undefined ? rmSync(join(root, 'a.txt'), { force: true }) : put('a.txt', before)
    lay()
    whole = await use(name, input)
    expect(get('a.txt')).toBe(after)
    expect(whole.is_error).toBe(false)
    lay()
  })

  test('K16 I7: cut off when the file is in place, it gives what it would have given, and changes nothing', async () => {
    expect(await call(name, input)).toEqual(whole)
    for (let again = 0; again < 3; again++) {
      expect(await call(name, input)).toEqual(whole)
      expect(get('a.txt')).toBe(after)
    }
  })

  test('K16: cut off before the file is in place, it is done', async () => {
    await cutBefore(name, input)
    expect(existsSync(join(root, 'a.txt')) ? get('a.txt') : undefined).toBe(before)
    expect(await call(name, input)).toEqual(whole)
    expect(get('a.txt')).toBe(after)
  })

  test('K16: when the files were laid out again as before it, it is done again', async () => {
    await call(name, input)
    if (before === undefined) rmSync(join(root, 'a.txt'))
    else put('a.txt', before)
    expect(await call(name, input)).toEqual(whole)
    expect(get('a.txt')).toBe(after)
  })

  test.each(['before', 'after'])(
    'K16 I11: cut off %s, and changed by a person since: untouched, and said so',
    async (cut) => {
      if (cut === 'before') await cutBefore(name, input)
      else await call(name, input)
      put('a.txt', `${cut === 'before' ? (before ?? '') : after}mine\n`)
      const mine = get('a.txt')
      const answer = await call(name, input)
      expect(answer).toMatchObject({ is_error: true, detail: { code: 'changed' } })
      expect(answer.text).toContain('This call was cut off before, and a.txt has changed since')
      expect(get('a.txt')).toBe(mine)
    },
  )

  test('K16: another call, or another effect of the same number, is a call of its own', async () => {
    await call(name, input)
    put('a.txt', before ?? 'other')
    for (const attempt of [attemptOf(2), attemptOf(1, 'e'.repeat(64))]) {
      expect((await call(name, input, { attempt })).is_error).toBe(false)
      expect(get('a.txt')).toBe(after)
      put('a.txt', before ?? 'other')
    }
  })
})

const INSERT = { path: 'a.txt', old_string: 'foo', new_string: 'foo\nBAR' }

test('K16: removed by a person since, a file is not made again', async () => {
  put('a.txt', 'foo\n')
  await call('edit', INSERT)
  rmSync(join(root, 'a.txt'))
  expect(await call('edit', INSERT)).toMatchObject({ is_error: true, detail: { code: 'changed' } })
  expect(existsSync(join(root, 'a.txt'))).toBe(false)
})

test('K16: what a file is to become is on the disk before it becomes that', async () => {
  put('a.txt', 'foo\n')
  const order: string[] = []
  const attempt = attemptOf()
  const note: Attempt['note'] = async (change) => {
    await attempt.note(change)
    order.push(
      JSON.stringify([get('a.txt'), readFileSync(join(top, 'changes.json'), 'utf8').includes(change.after)]),
    )
  }
  await call('edit', INSERT, { attempt: { ...attempt, note } })
  expect(order).toEqual([JSON.stringify(['foo\n', true])])
  // For nobody else: it tells what the file was.
  expect(statSync(join(top, 'changes.json')).mode & 0o777).toBe(0o600)
})

test('K16: a call that is cut off before it comes to the file leaves the file to the next attempt', async () => {
  put('a.txt', 'foo\n')
  const controller = new AbortController()
  const attempt = attemptOf()
  const earlier: Attempt['earlier'] = async () => {
    controller.abort()
    return attempt.earlier()
  }
  await expect(
    call('edit', INSERT, { signal: controller.signal, attempt: { ...attempt, earlier } }),
  ).rejects.toMatchObject({ code: 'stopped' })
  expect([get('a.txt'), await fresh().changes()]).toEqual(['foo\n', []])
})

test('K16: in place, a file that the first attempt had read need not be read again', async () => {
  put('a.txt', 'old\n')
  const input = { path: 'a.txt', content: 'new\n' }
  const unread = await call('write', input, { inPlace: true })
  expect(unread).toMatchObject({ is_error: true, detail: { code: 'unread' } })
  const readFiles = new Map<string, string>()
  await call('read', { path: 'a.txt' }, { readFiles })
  await cutBefore('write', input, { inPlace: true, readFiles })
  expect(await call('write', input, { inPlace: true })).toMatchObject({ is_error: false })
  expect(get('a.txt')).toBe('new\n')
})

test('a file that has new_string already is not touched', async () => {
  put('a.txt', 'neu\n')
  const long_ago = new Date(1e12)
  utimesSync(join(root, 'a.txt'), long_ago, long_ago)
  expect((await call('edit', { path: 'a.txt', old_string: 'alt', new_string: 'neu' })).text).toContain(
    'already has',
  )
  expect(statSync(join(root, 'a.txt')).mtime).toEqual(long_ago)
})

test('notes stay until the outcome is durable, also of two calls at once', async () => {
  put('a.txt', 'foo\n')
  put('b.txt', 'foo\n')
  const attempts = fresh()
  const open = new Set([1, 2, 3])
  const of = (effect: number): Attempt => attempts.of(effect, DIGEST, (other) => open.has(other))
  await Promise.all([
    call('edit', INSERT, { attempt: of(1) }),
    call('edit', { ...INSERT, path: 'b.txt' }, { attempt: of(2) }),
  ])
  const paths = async (): Promise<string[]> => (await fresh().changes()).map(({ path }) => path).toSorted()
  expect(await paths()).toEqual(['a.txt', 'b.txt'])
  await attempts.ended(2)
  expect(await paths()).toEqual(['a.txt'])
  // Of one whose end this process did not see, until the next note.
  open.delete(1)
  await call('edit', { ...INSERT, path: 'b.txt' }, { attempt: of(3) })
  expect(await paths()).toEqual(['b.txt'])
})

test.each(['', 'null', '{"a":1}', '[{"effect":1}]'])(
  'notes that were lost (%j) stop no call',
  async (text) => {
    put('a.txt', 'foo\n')
    put('../changes.json', text)
    expect((await call('edit', INSERT)).is_error).toBe(false)
    expect(get('a.txt')).toBe('foo\nBAR\n')
  },
)

describe('a workspace whose session comes back to its last checkpoint', () => {
  const { Courier, folder, git, inPlace, openGitWorkspace, repository, restoreGitWorkspace, SID, SHORT } =
    ground
  const file = (workspace: { root: string }): string => readFileSync(join(workspace.root, 'a.txt'), 'utf8')

  async function begun(settings?: typeof inPlace) {
    const person = repository({ 'a.txt': 'foo\n' })
    const data = folder()
    const where = { repository: person, data, sid: SID }
    const workspace = await openGitWorkspace({ ...where, ...(settings ? { settings } : {}) })
    const courier = new Courier()
    await courier.take(workspace)
    const back = () => restoreGitWorkspace({ ...where, packs: courier.packs, checkpoint: courier.last })
    return { person, workspace, back }
  }

  const edit = ({ root: at, attempts }: { root: string; attempts: Attempts }): Promise<ToolAnswer> =>
    call('edit', INSERT, { root: at, attempt: attempts.of(1, DIGEST, () => true) })

  test('K10 K16: what a call left that was cut off is not kept as a person’s, and is made again', async () => {
    const { person, workspace, back } = await begun()
    const first = await edit(workspace)
    const home = await back()
    expect([home.notices, file(home)]).toEqual([[], 'foo\n'])
    expect(git(person, 'branch', '--list', 'baton/kept/*')).toBe('')
    expect(await edit(home)).toEqual(first)
    expect(file(home)).toBe('foo\nBAR\n')
  })

  const KEPT = `Changes here that are in no checkpoint of the session are kept on branch baton/kept/${SHORT}-1`

  test('K10 K16 I11: anything beside it is kept with it', async () => {
    const { person, workspace, back } = await begun()
    await edit(workspace)
    ground.put(workspace.root, { 'mine.txt': 'mine' })
    expect((await back()).notices).toEqual([`${KEPT}: a.txt, mine.txt.`])
    expect(git(person, 'show', `baton/kept/${SHORT}-1:mine.txt`)).toBe('mine')
  })

  test('K10 K16 I11: what a person wrote into the file before or after it is kept', async () => {
    for (const when of ['before', 'after']) {
      const { person, workspace, back } = await begun()
      if (when === 'before') ground.put(workspace.root, { 'a.txt': 'mine\nfoo\n' })
      await edit(workspace)
      if (when === 'after') ground.put(workspace.root, { 'a.txt': `${file(workspace)}mine\n` })
      const mine = file(workspace)
      expect((await back()).notices).toEqual([`${KEPT}: a.txt.`])
      expect(git(person, 'show', `baton/kept/${SHORT}-1:a.txt`)).toBe(mine)
    }
  })

  test('K10 K16 I11: so is a mode that a person gave it, and a commit', async () => {
    const { workspace, back } = await begun()
    await edit(workspace)
    chmodSync(join(workspace.root, 'a.txt'), 0o755)
    expect((await back()).notices).toEqual([`${KEPT}: a.txt.`])
    const other = await begun()
    await edit(other.workspace)
    git(other.workspace.root, 'commit', '--quiet', '--no-gpg-sign', '-am', 'mine')
    expect((await other.back()).notices[0]).toContain(KEPT)
  })

  test('K12 K16: in a person’s own folder, given back while the call was cut off, it is made once', async () => {
    const { workspace, back } = await begun(inPlace)
    const first = await edit(workspace)
    await workspace.close()
    const home = await back()
    expect([home.notices, file(home)]).toEqual([[], 'foo\nBAR\n'])
    expect(await edit(home)).toEqual(first)
    expect(file(home)).toBe('foo\nBAR\n')
  })

  test('K16: where the files could not be stored and stay, it is made once', async () => {
    const { workspace, back } = await begun()
    const first = await edit(workspace)
    await workspace.hold()
    const home = await back()
    expect(await edit(home)).toEqual(first)
    expect(file(home)).toBe('foo\nBAR\n')
  })
})
