import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { GitWorkspace } from '../src/workspace/git-workspace.ts'
import {
  Courier,
  filesOf,
  folder,
  git,
  openGitWorkspace,
  put,
  repository,
  restoreGitWorkspace,
  SHORT,
  SID,
} from './workspace-ground.ts'

/** What git says about a work tree: all that should be the same after a move. */
function state(root: string): Record<string, string> {
  const ask = (...args: string[]): string => git(root, ...args)
  return {
    status: ask('status', '--porcelain=v2', '--branch', '--untracked-files=all').replace(
      /^# branch.oid.*$/m,
      '',
    ),
    staged: ask('diff', '--cached', '--raw', '--no-abbrev'),
    unmerged: ask('ls-files', '-u'),
    unstaged: ask('diff'),
    says: ask('status').replace(/^(HEAD detached.*|Not currently on any branch.)$/m, ''),
  }
}

const folders = (root: string): string[] =>
  readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !join(entry.parentPath, entry.name).includes('.git'))
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .toSorted()

interface Move {
  source: GitWorkspace
  target: GitWorkspace
  notices: string[]
}

/** Lets `work` happen in a session's work tree, then moves the session to a machine without a clone, or with `clone`. */
async function move(person: string, work: (root: string) => void, clone?: string): Promise<Move> {
  const source = await openGitWorkspace({ repository: person, data: folder(), sid: SID })
  const courier = new Courier()
  await courier.take(source)
  work(source.root)
  const checkpoint = await courier.take(source)
  const target = await restoreGitWorkspace({
    ...{ data: folder(), sid: SID, packs: courier.packs, checkpoint },
    ...(clone === undefined ? {} : { repository: clone }),
  })
  // What had to get another name is new.
  if (target.notices.length === 0) expect(await target.checkpoint()).toBeUndefined()
  return { source, target, notices: target.notices }
}

/** Two branches that change one line each in their own way. */
function conflicting(root: string): void {
  git(root, 'checkout', '-q', '-b', 'theirs')
  put(root, { 'a.txt': 'theirs\n', 'only-theirs.txt': 't\n' })
  git(root, 'add', '-A')
  git(root, 'commit', '-q', '-m', 'theirs')
  git(root, 'checkout', '-q', '-b', 'ours', 'HEAD~1')
  put(root, { 'a.txt': 'ours\n' })
  git(root, 'commit', '-q', '-a', '-m', 'ours')
}

const fails = (root: string, ...args: string[]): void => {
  expect(() => git(root, ...args)).toThrow()
}

describe('K1: what was staged', () => {
  test('arrives staged: edited, deleted, renamed, new, with other content on disk, made executable, only intended', async () => {
    const person = repository({
      'a.txt': '1\n',
      'b.txt': '1\n',
      'c.txt': '1\n',
      'd.txt': 'long enough\n',
      'e.sh': '#\n',
    })
    const { source, target } = await move(person, (root) => {
      put(root, { 'a.txt': 'staged\n', 'new.txt': 'n\n', 'intent.txt': 'i\n', 'odd\nname 😀.txt': 'o\n' })
      git(root, 'rm', '-q', '--cached', 'b.txt')
      git(root, 'mv', 'd.txt', 'moved.txt')
      chmodSync(join(root, 'e.sh'), 0o755)
      git(root, 'add', 'a.txt', 'new.txt', 'e.sh', 'odd\nname 😀.txt')
      git(root, 'add', '-N', 'intent.txt')
      put(root, { 'a.txt': 'later\n', 'c.txt': 'not staged\n' })
    })
    expect(state(target.root)).toEqual(state(source.root))
    expect(filesOf(target.root)).toEqual(filesOf(source.root))
    expect(git(target.root, 'show', ':a.txt')).toBe('staged\n')
    expect(state(target.root)['status']).toContain('1 .A N... 000000 000000 100644')
  })

  test('before the first commit arrives staged, on a branch that has none', async () => {
    const person = join(folder(), 'young')
    mkdirSync(person)
    git(person, 'init', '-q')
    put(person, { 'a.txt': 'a\n', 'b.txt': 'b\n' })
    const { source, target } = await move(person, (root) => {
      put(root, { 'c.txt': 'c\n' })
      git(root, 'add', 'a.txt', 'c.txt')
      put(root, { 'c.txt': 'later\n' })
    })
    expect(git(source.root, 'status')).toContain('No commits yet')
    expect(state(target.root)).toEqual(state(source.root))
    expect(Object.keys(filesOf(target.root))).toEqual(['a.txt', 'b.txt', 'c.txt'])
    git(target.root, 'commit', '-q', '-m', 'first')
    expect(git(target.root, 'log', '--format=%s')).toBe('first\n')
  })

  test('a name that is not UTF-8 arrives staged too', async () => {
    const { source, target } = await move(repository(), (root) => {
      writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x66, 0xff, 0xfe])]), 'x')
      mkdirSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x64, 0xff])]))
      writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x64, 0xff, 0x2f, 0x78])]), 'y')
      git(root, 'add', '-A')
    })
    expect(state(target.root)).toEqual(state(source.root))
    expect(filesOf(target.root)).toEqual(filesOf(source.root))
    expect(Object.keys(filesOf(target.root))).toContain('d\xff/x')
  })
})

describe('K1: an operation under way goes on where it stopped', () => {
  test('a merge with conflicts', async () => {
    const { source, target } = await move(repository({ 'a.txt': '1\n' }), (root) => {
      conflicting(root)
      fails(root, 'merge', 'theirs')
    })
    expect(state(target.root)['unmerged']).not.toBe('')
    expect(state(target.root)).toEqual(state(source.root))
    put(target.root, { 'a.txt': 'both\n' })
    git(target.root, 'add', 'a.txt')
    git(target.root, 'commit', '-q', '--no-edit')
    expect(git(target.root, 'log', '-1', '--format=%s')).toBe("Merge branch 'theirs' into ours\n")
    expect(git(target.root, 'rev-list', '--parents', '-1', 'HEAD').trim().split(' ')).toHaveLength(3)
  })

  test('a rebase with conflicts', async () => {
    const { source, target } = await move(repository({ 'a.txt': '1\n' }), (root) => {
      conflicting(root)
      put(root, { 'z.txt': 'z\n' })
      git(root, 'add', '-A')
      git(root, 'commit', '-q', '-m', 'another')
      fails(root, 'rebase', 'theirs')
    })
    expect(state(target.root)['says']).toContain('rebase in progress')
    expect(state(target.root)).toEqual(state(source.root))
    put(target.root, { 'a.txt': 'both\n' })
    git(target.root, 'add', 'a.txt')
    git(target.root, '-c', 'core.editor=true', 'rebase', '--continue')
    expect(git(target.root, 'log', '--format=%s')).toBe('another\nours\ntheirs\nstart\n')
    expect(git(target.root, 'branch', '--show-current')).toBe('ours\n')
  })

  test.each(['cherry-pick', 'revert'])('a %s with conflicts', async (verb) => {
    const { source, target } = await move(repository({ 'a.txt': '1\n' }), (root) => {
      conflicting(root)
      put(root, { 'a.txt': 'more\n' })
      git(root, 'commit', '-q', '-a', '-m', 'more')
      fails(root, verb, verb === 'revert' ? 'HEAD~1' : 'theirs')
    })
    expect(state(target.root)).toEqual(state(source.root))
    git(target.root, verb, '--abort')
    expect(readFileSync(join(target.root, 'a.txt'), 'utf8')).toBe('more\n')
  })

  test('a bisection', async () => {
    const { source, target } = await move(repository({ 'a.txt': '0\n' }), (root) => {
      for (const n of [1, 2, 3, 4, 5]) {
        put(root, { 'a.txt': `${n}\n` })
        git(root, 'commit', '-q', '-a', '-m', String(n))
      }
      git(root, 'bisect', 'start', 'HEAD', 'HEAD~5')
    })
    expect(state(target.root)).toEqual(state(source.root))
    expect(git(target.root, 'bisect', 'log')).toBe(git(source.root, 'bisect', 'log'))
    expect(git(target.root, 'bisect', 'good')).toContain('revision')
  })

  test('a detached HEAD stays detached', async () => {
    const { target } = await move(repository(), (root) => {
      git(root, 'checkout', '-q', '--detach')
      put(root, { 'b.txt': 'b' })
      git(root, 'add', '-A')
      git(root, 'commit', '-q', '-m', 'apart')
    })
    expect(git(target.root, 'branch', '--show-current')).toBe('')
    expect(git(target.root, 'log', '--format=%s')).toBe('apart\nstart\n')
  })
})

test('K1: empty folders arrive, those with only ignored files do not, and one that went is gone', async () => {
  const person = repository({ 'a.txt': 'a', '.gitignore': 'dist/\n' })
  const { source, target } = await move(person, (root) => {
    for (const path of ['empty', 'deep/er/est', 'half/void', 'out/dist', 'wei\nrd ü']) {
      mkdirSync(join(root, path), { recursive: true })
    }
    put(root, { 'half/file.txt': 'f', 'out/dist/built.js': 'b' })
    symlinkSync('empty', join(root, 'link'))
  })
  expect(folders(target.root)).toEqual([
    'deep',
    'deep/er',
    'deep/er/est',
    'empty',
    'half',
    'half/void',
    'wei\nrd ü',
  ])
  const courier = new Courier()
  put(source.root, { 'half/file.txt': 'again' })
  const data = folder()
  const before = await courier.take(source)
  const first = await restoreGitWorkspace({ data, sid: SID, packs: courier.packs, checkpoint: before })
  rmSync(join(source.root, 'empty'), { recursive: true })
  rmSync(join(source.root, 'half/void'), { recursive: true })
  const checkpoint = await courier.take(source)
  put(first.root, { 'deep/er/est/mine.txt': 'm' })
  const back = { data, sid: SID, packs: courier.packs, checkpoint }
  expect((await restoreGitWorkspace(back)).notices).toHaveLength(1)
  expect(folders(first.root)).toEqual(['deep', 'deep/er', 'deep/er/est', 'half', 'wei\nrd ü'])
})

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

test('K1: a file that was being written when the runner was killed does not travel, and is gone', async () => {
  const source = await openGitWorkspace({ repository: repository(), data: folder(), sid: SID })
  const strays = ['.baton-0a1b2c3d4e5f.tmp', 'new/.baton-0a1b2c3d4e5f.tmp']
  put(source.root, { ...Object.fromEntries(strays.map((path) => [path, 'half'])), '.baton-mine.tmp': 'kept' })
  for (const path of strays) utimesSync(join(source.root, path), 1, 1)
  const young = '.baton-ffffffffffff.tmp'
  put(source.root, { [young]: 'being written' })
  utimesSync(join(source.root, young), 4e9, 4e9)
  const checkpoint = await new Courier().take(source)
  const names = git(source.root, 'ls-tree', '-r', '--name-only', checkpoint.commit).split('\n')
  expect(names.filter((name) => name.includes('.baton-'))).toEqual(['.baton-mine.tmp'])
  for (const path of strays) expect(existsSync(join(source.root, path))).toBe(false)
  expect(existsSync(join(source.root, young))).toBe(true)
})

describe('submodules', () => {
  /** A repository with a submodule that is checked out. */
  function withModule(): string {
    const library = repository({ 'lib.txt': 'lib\n' })
    const person = repository()
    git(person, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', library, 'lib')
    git(person, 'commit', '-q', '-m', 'with lib')
    return person
  }

  test('K8: which commit they are at travels; that their files do not is told, once', async () => {
    const person = withModule()
    const source = await openGitWorkspace({ repository: person, data: folder(), sid: SID })
    const courier = new Courier()
    const checkpoint = await courier.take(source)
    expect(source.left()).toEqual([
      'Submodules do not travel, only which commit they are at: lib. Elsewhere run: git submodule update --init',
    ])
    const target = await restoreGitWorkspace({ data: folder(), sid: SID, packs: courier.packs, checkpoint })
    expect(git(target.root, 'ls-files', '-s', 'lib')).toBe(git(person, 'ls-files', '-s', 'lib'))
    expect(state(target.root)).toEqual(state(source.root))
    git(source.root, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'update', '--init')
    put(source.root, { 'lib/lib.txt': 'changed\n', 'b.txt': 'b' })
    await courier.take(source)
    expect(source.left()).toEqual(['What was changed in the submodule lib stays on this machine.'])
    expect(source.left()).toEqual([])
  })

  test('B10: looking at one runs nothing that its settings and attributes name', async () => {
    const source = await openGitWorkspace({ repository: withModule(), data: folder(), sid: SID })
    git(source.root, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'update', '--init')
    const canary = join(folder(), 'ran')
    const lib = join(source.root, 'lib')
    git(lib, 'config', 'filter.x.clean', `touch ${canary}; cat`)
    git(lib, 'config', 'core.fsmonitor', `touch ${canary}; false`)
    put(source.root, { 'lib/.gitattributes': '* filter=x\n', 'lib/lib.txt': 'LIB\n' })
    await source.checkpoint()
    expect(source.left().join()).toContain('What was changed in the submodule lib')
    expect(existsSync(canary)).toBe(false)
  })

  test('I11: what is in one is not touched when a session comes home, in place or not', async () => {
    const person = withModule()
    const home = folder()
    const settings = { place: 'in-place' as const, carry: [] }
    const source = await openGitWorkspace({ repository: person, data: home, sid: SID, settings })
    const courier = new Courier()
    await courier.take(source)
    await source.close()
    const away = await restoreGitWorkspace({
      data: folder(),
      sid: SID,
      packs: courier.packs,
      checkpoint: courier.last,
    })
    put(away.root, { 'a.txt': 'agent\n' })
    await courier.take(away)
    put(person, { 'lib/lib.txt': 'mine\n', 'lib/new.txt': 'n' })
    const back = { repository: person, data: home, sid: SID, packs: courier.packs, checkpoint: courier.last }
    await restoreGitWorkspace(back)
    expect(readFileSync(join(person, 'a.txt'), 'utf8')).toBe('agent\n')
    expect(readFileSync(join(person, 'lib/lib.txt'), 'utf8')).toBe('mine\n')
    expect(existsSync(join(person, 'lib/new.txt'))).toBe(true)
    expect(git(person, 'status', '--porcelain')).toContain('lib')
  })
})

test('K1 K4: in place, a merge with conflicts goes there, is ended there, and the folder gets the result', async () => {
  const person = repository({ 'a.txt': '1\n' })
  conflicting(person)
  fails(person, 'merge', 'theirs')
  const home = folder()
  const settings = { place: 'in-place' as const, carry: [] }
  const source = await openGitWorkspace({ repository: person, data: home, sid: SID, settings })
  const before = state(person)
  const courier = new Courier()
  await courier.take(source)
  await source.close()
  expect(state(person)).toEqual(before)
  const away = await restoreGitWorkspace({
    data: folder(),
    sid: SID,
    packs: courier.packs,
    checkpoint: courier.last,
  })
  expect(state(away.root)).toEqual(before)
  put(away.root, { 'a.txt': 'both\n' })
  git(away.root, 'add', '-A')
  git(away.root, 'commit', '-q', '--no-edit')
  await courier.take(away)
  const back = { repository: person, data: home, sid: SID, packs: courier.packs, checkpoint: courier.last }
  const { notices } = await restoreGitWorkspace(back)
  expect(notices).toEqual([])
  expect(state(person)).toEqual(state(away.root))
  expect(git(person, 'log', '-1', '--format=%s')).toBe("Merge branch 'theirs' into ours\n")
  expect(existsSync(join(person, '.git/MERGE_HEAD'))).toBe(false)
})
