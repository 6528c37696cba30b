import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  Courier,
  filesOf,
  folder,
  git,
  goneAway,
  inPlace,
  openGitWorkspace,
  OTHER,
  put,
  repository,
  restoreGitWorkspace,
  SHORT,
  SID,
  status,
  withCode,
} from './workspace-ground.ts'

/** All that checkpoints must not touch. */
const look = (root: string): unknown => ({
  files: filesOf(root),
  index: readFileSync(join(root, '.git/index')).toString('hex'),
  head: readFileSync(join(root, '.git/HEAD'), 'utf8'),
  branches: git(root, 'for-each-ref', 'refs/heads', 'refs/tags', 'refs/stash'),
})

describe('in place', () => {
  test('K4: checkpoints leave files, index, HEAD and branches of the folder as they are', async () => {
    const person = repository({ 'a.txt': '1\n', 'b.txt': '1\n' })
    put(person, { 'a.txt': '2\n', 'b.txt': 'staged\n', 'new.txt': 'n' })
    git(person, 'add', 'b.txt')
    put(person, { 'b.txt': 'later\n' })
    const before = look(person)
    const workspace = await openGitWorkspace({
      repository: person,
      data: folder(),
      sid: SID,
      settings: inPlace,
    })
    expect(workspace.root).toBe(person)
    const courier = new Courier()
    await courier.take(workspace)
    await workspace.close()
    expect(look(person)).toEqual(before)
  })

  test('K4: there and back: the folder gets what the agent did elsewhere, on its own branch', async () => {
    const person = repository({ 'a.txt': '1\n', 'b.txt': '1\n' })
    put(person, { 'b.txt': 'mine, staged\n', 'note.txt': 'mine' })
    git(person, 'add', 'b.txt')
    const { courier, away, home } = await goneAway(person, inPlace)
    expect(status(away.root)).toBe('## main\nM  b.txt\n?? note.txt\n')
    put(away.root, { 'a.txt': 'agent\n' })
    git(away.root, 'commit', '-q', '-m', 'by the agent', 'a.txt')
    put(away.root, { 'open.txt': 'o' })
    await courier.take(away)
    const back = await home()
    expect(back.root).toBe(person)
    expect(back.notices).toEqual([])
    expect(filesOf(person)).toEqual(filesOf(away.root))
    expect(status(person)).toBe('## main\nM  b.txt\n?? note.txt\n?? open.txt\n')
    expect(git(person, 'log', '--format=%s')).toBe('by the agent\nstart\n')
  })

  test('K10: edits and commits that the person made meanwhile are kept, and their branch is not moved back', async () => {
    const person = repository({ 'a.txt': '1\n', 'b.txt': '1\n' })
    const { courier, away, home } = await goneAway(person, inPlace)
    put(away.root, { 'a.txt': 'agent\n', 'theirs.txt': 't' })
    git(away.root, 'add', '-A')
    git(away.root, 'commit', '-q', '-m', 'by the agent')
    await courier.take(away)

    put(person, { 'b.txt': 'person\n' })
    git(person, 'commit', '-q', '-a', '-m', 'by the person')
    put(person, { 'a.txt': 'person\n', 'untracked.txt': 'u' })
    const mine = git(person, 'rev-parse', 'main')
    const { kept = '', notices } = await home()
    expect(filesOf(person)).toEqual(filesOf(away.root))
    expect(git(person, 'rev-parse', 'main')).toBe(mine)
    expect(git(person, 'branch', '--show-current')).toBe(`baton/${SHORT}\n`)
    expect(git(person, 'log', '--format=%s', kept)).toContain('by the person')
    expect(git(person, 'show', `${kept}:a.txt`)).toBe('person\n')
    expect(git(person, 'show', `${kept}:untracked.txt`)).toBe('u')
    expect(notices).toEqual([
      `Changes here that are in no checkpoint of the session are kept on branch ${kept}: a.txt, b.txt, untracked.txt.`,
      `Changed on both sides: a.txt. The session's are in place; compare with: git diff ${kept}`,
      `Your branch main has commits of its own and stays as it is; the session's are on baton/${SHORT}.`,
    ])
  })

  test('K4: a sparse folder stays sparse, and what it leaves out does not count as deleted', async () => {
    const person = repository({ 'in/a.txt': 'a', 'out/b.txt': 'b' })
    git(person, 'sparse-checkout', 'set', 'in')
    const workspace = await openGitWorkspace({
      repository: person,
      data: folder(),
      sid: SID,
      settings: inPlace,
    })
    put(person, { 'in/a.txt': 'changed' })
    const checkpoint = await workspace.checkpoint()
    expect(git(person, 'ls-tree', '-r', '--name-only', checkpoint?.tree ?? '')).toBe('in/a.txt\nout/b.txt\n')
    expect(existsSync(join(person, 'out'))).toBe(false)
    await workspace.close()
  })

  test('K5: a second session in the folder is refused while the first works there, and may begin when it rests', async () => {
    const person = repository()
    const first = { repository: person, data: folder(), sid: SID, settings: inPlace }
    const workspace = await openGitWorkspace(first)
    const second = { repository: person, data: folder(), sid: OTHER, settings: inPlace }
    await expect(openGitWorkspace(second)).rejects.toEqual(withCode('workspace-in-use'))
    expect((await openGitWorkspace(first)).root).toBe(person)
    await workspace.close()
    const next = await openGitWorkspace(second)
    expect(next.root).toBe(person)
    await next.close()
  })

  test.each([
    ['is gone', { pid: 2 ** 22 + 1 }],
    ['has the number of one that ended', { pid: process.ppid, born: '1' }],
  ])('K5: a note of a process that %s does not keep anybody out', async (_, who) => {
    const person = repository()
    const note = JSON.stringify({ sid: OTHER, open: true, ...who })
    writeFileSync(join(person, '.git/baton-session.json'), note)
    const options = { repository: person, data: folder(), sid: SID, settings: inPlace }
    const workspace = await openGitWorkspace(options)
    expect(workspace.root).toBe(person)
    await workspace.close()
  })

  test('K5: a runner in another process keeps others out', async () => {
    const person = repository()
    const note = JSON.stringify({ sid: OTHER, open: true, pid: process.ppid })
    writeFileSync(join(person, '.git/baton-session.json'), note)
    const options = { repository: person, data: folder(), sid: SID, settings: inPlace }
    await expect(openGitWorkspace(options)).rejects.toEqual(withCode('workspace-in-use'))
  })

  test('K5: one that comes back after another has worked there gets a folder of its own, and the folder stays', async () => {
    const person = repository()
    const data = folder()
    const courier = new Courier()
    const source = await openGitWorkspace({ repository: person, data, sid: SID, settings: inPlace })
    put(person, { 'b.txt': 'first' })
    await courier.take(source)
    await source.close()
    const next = await openGitWorkspace({ repository: person, data, sid: OTHER, settings: inPlace })
    put(person, { 'b.txt': 'second' })
    const files = filesOf(person)
    const back = { repository: person, data, sid: SID, packs: courier.packs, checkpoint: courier.last }
    const home = await restoreGitWorkspace(back)
    expect(home.root).toBe(join(data, 'worktrees', SID))
    expect(home.notices).toEqual([
      `${person} is in use by another session or gone; this one goes on in ${home.root}.`,
    ])
    expect(readFileSync(join(home.root, 'b.txt'), 'utf8')).toBe('first')
    expect(filesOf(person)).toEqual(files)
    await next.close()
  })
})
