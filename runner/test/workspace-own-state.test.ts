/** What a person has staged or under way, or did on a branch of the session, when it comes home. */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { openWorkspace } from '../src/workspace/open.ts'
import {
  Courier,
  filesOf,
  folder,
  git,
  put,
  repository,
  restoreGitWorkspace,
  SHORT,
  SID,
  status,
} from './workspace-ground.ts'

async function away(person: string, place: 'in-place' | 'worktree', begin?: (root: string) => void) {
  const data = folder()
  const { workspace } = await openWorkspace({
    folder: person,
    data,
    sid: SID,
    settings: { carry: [], place },
  })
  begin?.(workspace.root)
  const courier = new Courier()
  put(workspace.root, { 'x.txt': 'x\n' })
  await courier.take(workspace)
  await workspace.close()
  const { packs } = courier
  const cloud = await restoreGitWorkspace({ data: folder(), sid: SID, packs, checkpoint: courier.last })
  put(cloud.root, { 'cloud.txt': 'c\n' })
  const home = async () => {
    await courier.take(cloud)
    return back()
  }
  const back = () =>
    restoreGitWorkspace({ data, sid: SID, packs, checkpoint: courier.last, repository: person })
  return { data, root: workspace.root, cloud, home, back }
}

/** Two branches that conflict; on main. */
function conflicting(): string {
  const person = repository()
  git(person, 'switch', '-qc', 'side')
  put(person, { 'a.txt': 'side\n' })
  git(person, 'commit', '-qam', 'side')
  git(person, 'switch', '-q', 'main')
  put(person, { 'a.txt': 'main\n' })
  git(person, 'commit', '-qam', 'main')
  return person
}

/** As the documentation says. */
function takeBack(root: string, notices: readonly string[], what: 'staged' | 'operation'): void {
  const kept = /kept in (\S+)\. /.exec(notices.join('\n'))?.[1] ?? ''
  const lines = [
    `r=${kept}`,
    'git switch -q --detach $r^1^1',
    'git restore --source=$r^1 --worktree .',
    'git show $r:staged | git update-index -z --index-info',
  ]
  if (what === 'operation') {
    lines.push(
      'git archive $r operation | tar -x --strip-components=1 -C "$(git rev-parse --absolute-git-dir)"',
    )
  }
  execFileSync('bash', ['-ec', lines.join('\n')], { cwd: root, stdio: 'pipe' })
}

test('I11 K14: in place, with a merge under way the folder is left alone until it has ended', async () => {
  const person = conflicting()
  const { home, back } = await away(person, 'in-place')
  expect(() => git(person, 'merge', 'side')).toThrow()
  put(person, { 'a.txt': 'resolved by hand\n' })
  git(person, 'add', 'a.txt')
  const before = [filesOf(person), status(person), git(person, 'for-each-ref', 'refs/heads')]
  const words = `a merge is under way in ${person}`
  await expect(home()).rejects.toMatchObject({
    code: 'workspace-busy',
    message: expect.stringContaining(words),
  })
  expect([filesOf(person), status(person), git(person, 'for-each-ref', 'refs/heads')]).toEqual(before)
  expect(existsSync(join(person, '.git/MERGE_HEAD'))).toBe(true)

  git(person, 'commit', '-qm', 'merged')
  const { kept, notices } = await back()
  expect(filesOf(person)).toHaveProperty('cloud.txt')
  expect(git(person, 'show', `${kept}:a.txt`)).toBe('resolved by hand\n')
  expect(git(person, 'log', '-1', '--format=%s', 'main')).toBe('merged\n')
  expect(notices.join('\n')).not.toContain('under way')
})

test('K5 K14: a folder that was refused is free for another session', async () => {
  const person = conflicting()
  const { data, home } = await away(person, 'in-place')
  expect(() => git(person, 'merge', 'side')).toThrow()
  await expect(home()).rejects.toMatchObject({ code: 'workspace-busy' })
  const settings = { carry: [], place: 'in-place' as const }
  const other = await openWorkspace({ folder: person, data, sid: 'z9Q_sessionTwo-000002', settings })
  await other.workspace.close()
})

test('I11 K14: what is staged is kept, told, and can be had back', async () => {
  const person = repository({ 'a.txt': 'a\n', 'b.txt': 'b\n' })
  const { home } = await away(person, 'in-place')
  put(person, { 'b.txt': 'staged only\n' })
  git(person, 'add', 'b.txt')
  put(person, { 'b.txt': 'b\n' })
  git(person, 'rm', '-q', '--cached', 'a.txt')
  const { notices } = await home()
  expect(notices).toEqual([
    expect.stringMatching(/^Here was what was staged \(a\.txt, b\.txt\), of which the session/),
  ])
  expect(status(person)).toBe('## main\n?? cloud.txt\n?? x.txt\n')
  git(person, 'stash', '-q', '-u')
  takeBack(person, notices, 'staged')
  expect(git(person, 'show', ':b.txt')).toBe('staged only\n')
  expect(readFileSync(join(person, 'b.txt'), 'utf8')).toBe('b\n')
  expect(git(person, 'ls-files', 'a.txt')).toBe('')
})

test('I11 K14: in a work tree of its own a merge is kept, told, and can be had back', async () => {
  const { root, home } = await away(conflicting(), 'worktree')
  expect(() => git(root, 'merge', 'side')).toThrow()
  put(root, { 'a.txt': 'resolved by hand\n' })
  git(root, 'add', 'a.txt')
  const { notices, kept } = await home()
  expect(notices[0]).toMatch(
    /^Here was a merge and what was staged \(a\.txt\), of which the session knows nothing/,
  )
  expect(git(root, 'show', `${kept}:a.txt`)).toBe('resolved by hand\n')
  expect(git(root, 'status')).not.toMatch(/merging|All conflicts fixed/)
  git(root, 'stash', '-q', '-u')
  takeBack(root, notices, 'operation')
  git(root, 'commit', '-qm', 'merged after all')
  expect(git(root, 'log', '-1', '--format=%p').trim().split(' ')).toHaveLength(2)
  expect(git(root, 'show', 'HEAD:a.txt')).toBe('resolved by hand\n')
})

test('I11 K2: commits that the person made on a branch of the session are not moved away', async () => {
  const person = repository()
  const { cloud, home } = await away(person, 'in-place', (root) => git(root, 'branch', 'topic'))
  const on = (root: string, message: string): string => {
    const commit = git(root, 'commit-tree', '-p', 'topic', '-m', message, 'topic^{tree}').trim()
    git(root, 'update-ref', 'refs/heads/topic', commit)
    return commit
  }
  const theirs = on(cloud.root, 'by the agent')
  const mine = on(person, 'by the person')
  const { notices } = await home()
  expect(git(person, 'rev-parse', 'topic').trim()).toBe(mine)
  expect(git(person, 'rev-parse', `baton/${SHORT}-topic`).trim()).toBe(theirs)
  expect(notices).toEqual([`topic is something else here, so the session's is baton/${SHORT}-topic.`])
})
