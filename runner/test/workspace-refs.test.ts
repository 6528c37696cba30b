import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  Courier,
  folder,
  git,
  move,
  openGitWorkspace,
  put,
  repository,
  restoreGitWorkspace,
  SHORT,
  SID,
} from './workspace-ground.ts'

describe('K2: branches, tags and stashes made since the session began', () => {
  function work(root: string): void {
    git(root, 'branch', 'aside')
    put(root, { 'b.txt': 'b' })
    git(root, 'add', '-A')
    git(root, 'commit', '-q', '-m', 'two')
    git(root, 'tag', 'light')
    git(root, 'tag', '-a', '-m', 'words', 'heavy')
    git(root, 'checkout', '-q', '-b', 'topic/deep')
    put(root, { 'c.txt': 'c' })
    git(root, 'add', '-A')
    git(root, 'commit', '-q', '-m', 'three')
    put(root, { 'c.txt': 'stashed', 'untracked.txt': 'u' })
    git(root, 'stash', '-q', '-u', '-m', 'first')
    put(root, { 'c.txt': 'again' })
    git(root, 'stash', '-q', '-m', 'second')
    git(root, 'checkout', '-q', `baton/${SHORT}`)
  }
  const refs = (root: string): string =>
    git(root, 'for-each-ref', '--format=%(objectname) %(objecttype) %(refname)', 'refs/heads', 'refs/tags')

  test('arrive, and those that were there before stay behind', async () => {
    const person = repository()
    git(person, 'branch', 'old')
    git(person, 'tag', 'v0')
    put(person, { 'a.txt': 'mine' })
    git(person, 'stash', '-q')
    const { source, target, notices } = await move(person, work)
    const expected = refs(source.root)
      .split('\n')
      .filter((line) => !/(old|v0|main)$/.test(line))
    expect(refs(target.root).split('\n')).toEqual(expected)
    expect(git(target.root, 'stash', 'list')).toBe(
      `stash@{0}: On topic/deep: second\nstash@{1}: On topic/deep: first\n`,
    )
    git(target.root, 'checkout', '-q', 'topic/deep')
    git(target.root, 'stash', 'pop', '-q', 'stash@{1}')
    expect(readFileSync(join(target.root, 'untracked.txt'), 'utf8')).toBe('u')
    expect(notices).toEqual([])
  })

  test('I11: a ref of that name with other content is not moved; the other name is told', async () => {
    const person = repository()
    const clone = join(folder(), 'clone')
    git(person, 'clone', '-q', '.', clone)
    put(clone, { 'x.txt': 'x' })
    git(clone, 'add', '-A')
    git(clone, 'commit', '-q', '-m', 'mine')
    git(clone, 'branch', 'aside')
    git(clone, 'tag', 'light')
    git(clone, 'branch', 'topic')
    const before = refs(clone).split('\n')
    const { source, target, notices } = await move(person, work, clone)
    const after = refs(clone).split('\n')
    expect(after).toEqual(expect.arrayContaining(before))
    expect(git(clone, 'rev-parse', `baton/${SHORT}-aside`)).toBe(git(source.root, 'rev-parse', 'aside'))
    expect(git(clone, 'rev-parse', `baton-${SHORT}-light`)).toBe(git(source.root, 'rev-parse', 'light'))
    expect(git(clone, 'rev-parse', `baton/${SHORT}-topic-deep`)).toBe(
      git(source.root, 'rev-parse', 'topic/deep'),
    )
    expect(notices.toSorted()).toEqual([
      `aside is something else here, so the session's is baton/${SHORT}-aside.`,
      `light is something else here, so the session's is baton-${SHORT}-light.`,
      `topic/deep is something else here, so the session's is baton/${SHORT}-topic-deep.`,
    ])
    expect(git(target.root, 'stash', 'list').split('\n')).toHaveLength(3)
  })

  test('go on there and come home', async () => {
    const home = folder()
    const person = repository()
    const source = await openGitWorkspace({ repository: person, data: home, sid: SID })
    const courier = new Courier()
    work(source.root)
    await courier.take(source)
    const away = await restoreGitWorkspace({
      data: folder(),
      sid: SID,
      packs: courier.packs,
      checkpoint: courier.last,
    })
    git(away.root, 'checkout', '-q', 'topic/deep')
    put(away.root, { 'd.txt': 'd' })
    git(away.root, 'add', '-A')
    git(away.root, 'commit', '-q', '-m', 'four')
    git(away.root, 'checkout', '-q', `baton/${SHORT}`)
    await courier.take(away)
    const options = {
      repository: person,
      data: home,
      sid: SID,
      packs: courier.packs,
      checkpoint: courier.last,
    }
    const back = await restoreGitWorkspace(options)
    expect(git(person, 'log', '--format=%s', 'topic/deep')).toBe('four\nthree\ntwo\nstart\n')
    expect(back.notices).toEqual([])
    expect(git(person, 'stash', 'list').split('\n')).toHaveLength(3)
  })
})

test("K2: two sessions in one clone do not take each other's branches", async () => {
  const person = repository()
  const other = await openGitWorkspace({ repository: person, data: folder(), sid: 'other_session-00002' })
  const courier = new Courier()
  const source = await openGitWorkspace({ repository: person, data: folder(), sid: SID })
  await other.checkpoint()
  git(other.root, 'checkout', '-q', '-b', 'baton/other_se-more')
  const checkpoint = await courier.take(source)
  expect(checkpoint.state).toBeUndefined()
  expect(existsSync(join(source.root, '.git'))).toBe(true)
})
