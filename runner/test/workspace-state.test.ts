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
import {
  Courier,
  filesOf,
  folder,
  git,
  move,
  openGitWorkspace,
  put,
  repository,
  restoreGitWorkspace,
  SID,
  state,
} from './workspace-ground.ts'

const folders = (root: string): string[] =>
  readdirSync(root, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isDirectory() && !join(entry.parentPath, entry.name).includes('.git'))
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .toSorted()

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
