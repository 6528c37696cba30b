import { existsSync, mkdirSync, readFileSync, rmSync, unlinkSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { WorkspaceSettings } from '../src/workspace/settings.ts'
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
  status,
} from './workspace-ground.ts'

const OTHER = 'z9Q_sessionTwo-000002'
const withCode = (code: string): unknown => expect.objectContaining({ name: 'BatonError', code })
const inPlace: WorkspaceSettings = { place: 'in-place', carry: [] }
const carrying = (...carry: string[]): WorkspaceSettings => ({ place: 'worktree', carry })

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
    const data = folder()
    const source = await openGitWorkspace({ repository: person, data, sid: SID, settings: inPlace })
    const courier = new Courier()
    await courier.take(source)
    await source.close()
    const away = await restoreGitWorkspace({
      data: folder(),
      sid: SID,
      packs: courier.packs,
      checkpoint: courier.last,
    })
    expect(status(away.root)).toBe('## main\nM  b.txt\n?? note.txt\n')
    put(away.root, { 'a.txt': 'agent\n' })
    git(away.root, 'commit', '-q', '-m', 'by the agent', 'a.txt')
    put(away.root, { 'open.txt': 'o' })
    await courier.take(away)
    const back = { repository: person, data, sid: SID, packs: courier.packs, checkpoint: courier.last }
    const home = await restoreGitWorkspace(back)
    expect(home.root).toBe(person)
    expect(home.notices).toEqual([])
    expect(filesOf(person)).toEqual(filesOf(away.root))
    expect(status(person)).toBe('## main\nM  b.txt\n?? note.txt\n?? open.txt\n')
    expect(git(person, 'log', '--format=%s')).toBe('by the agent\nstart\n')
  })

  test('K10: edits and commits that the person made meanwhile are kept, and their branch is not moved back', async () => {
    const person = repository({ 'a.txt': '1\n', 'b.txt': '1\n' })
    const data = folder()
    const source = await openGitWorkspace({ repository: person, data, sid: SID, settings: inPlace })
    const courier = new Courier()
    await courier.take(source)
    await source.close()
    const away = await restoreGitWorkspace({
      data: folder(),
      sid: SID,
      packs: courier.packs,
      checkpoint: courier.last,
    })
    put(away.root, { 'a.txt': 'agent\n', 'theirs.txt': 't' })
    git(away.root, 'add', '-A')
    git(away.root, 'commit', '-q', '-m', 'by the agent')
    await courier.take(away)

    put(person, { 'b.txt': 'person\n' })
    git(person, 'commit', '-q', '-a', '-m', 'by the person')
    put(person, { 'a.txt': 'person\n', 'untracked.txt': 'u' })
    const mine = git(person, 'rev-parse', 'main')
    const back = { repository: person, data, sid: SID, packs: courier.packs, checkpoint: courier.last }
    const { kept = '', notices } = await restoreGitWorkspace(back)
    expect(filesOf(person)).toEqual(filesOf(away.root))
    expect(git(person, 'rev-parse', 'main')).toBe(mine)
    expect(git(person, 'branch', '--show-current')).toBe(`baton/${SHORT}\n`)
    expect(git(person, 'log', '--format=%s', kept)).toContain('by the person')
    expect(git(person, 'show', `${kept}:a.txt`)).toBe('person\n')
    expect(git(person, 'show', `${kept}:untracked.txt`)).toBe('u')
    expect(notices).toEqual([
      `Changes that were made here meanwhile are kept on branch ${kept}: a.txt, b.txt, untracked.txt.`,
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

describe('K3: ignored files', () => {
  const files = {
    '.gitignore': '.env*\nconfig/local/\nnode_modules/\n*.key\n',
    'a.txt': 'a\n',
  }
  const ignored = {
    '.env': 'SECRET=1',
    '.env.local': 'LOCAL=1',
    'config/local/x.json': '{}',
    'config/local/.env': 'SECRET=2',
    'node_modules/m/index.js': 'm',
    'deep/er/one.key': 'k',
  }

  test.each<[string, string[], string[]]>([
    ['none unless named', [], []],
    ['a file', ['.env.local'], ['.env.local']],
    ['a folder, but no .env in it', ['config/local'], ['config/local/x.json']],
    ['a pattern, but no .env by it', ['.env*', '**/*.key'], ['.env.local', 'deep/er/one.key']],
    ['.env when it is named exactly', ['.env', 'config/local/.env'], ['.env', 'config/local/.env']],
    ['what is not there is no error', ['nothing', 'no/such/*'], []],
  ])('travel when they are named: %s', async (_, carry, expected) => {
    const person = repository(files)
    put(person, ignored)
    const source = await openGitWorkspace({
      repository: person,
      data: folder(),
      sid: SID,
      settings: carrying(...carry),
    })
    const courier = new Courier()
    const checkpoint = await courier.take(source)
    const target = await restoreGitWorkspace({ data: folder(), sid: SID, packs: courier.packs, checkpoint })
    for (const { root } of [source, target]) {
      expect(Object.keys(filesOf(root)).toSorted()).toEqual(['.gitignore', 'a.txt', ...expected].toSorted())
    }
    expect(await target.checkpoint()).toBeUndefined()
    // What the person would take over or publish has none of them.
    expect(git(person, 'ls-tree', '-r', '--name-only', checkpoint.commit)).toBe('.gitignore\na.txt\n')
  })

  test('those that appear, change or go later follow', async () => {
    const person = repository(files)
    put(person, ignored)
    const settings = carrying('.env.local', 'config/local')
    const source = await openGitWorkspace({ repository: person, data: folder(), sid: SID, settings })
    const courier = new Courier()
    await courier.take(source)
    const data = folder()
    const restore = (): ReturnType<typeof restoreGitWorkspace> =>
      restoreGitWorkspace({ data, sid: SID, packs: courier.packs, checkpoint: courier.last })
    await restore()
    put(source.root, { '.env.local': 'LOCAL=2', 'config/local/y.json': '[]' })
    unlinkSync(join(source.root, 'config/local/x.json'))
    await courier.take(source)
    const target = await restore()
    expect(filesOf(target.root)).toEqual(filesOf(source.root))
    expect(target.kept).toBeUndefined()
    // The machine without a clone knows from the checkpoint what else to carry.
    put(target.root, { 'config/local/z.json': 'z' })
    expect((await courier.take(target)).settings).toEqual({ carry: ['.env.local', 'config/local'] })
    const again = await restoreGitWorkspace({
      data: folder(),
      sid: SID,
      packs: courier.packs,
      checkpoint: courier.last,
    })
    expect(Object.keys(filesOf(again.root))).toContain('config/local/z.json')
  })

  test('I11: one that was changed on both sides is kept as a file, not on a branch', async () => {
    const person = repository(files)
    put(person, ignored)
    const data = folder()
    const settings = carrying('.env.local')
    const source = await openGitWorkspace({ repository: person, data, sid: SID, settings })
    const courier = new Courier()
    await courier.take(source)
    const away = await restoreGitWorkspace({
      data: folder(),
      sid: SID,
      packs: courier.packs,
      checkpoint: courier.last,
    })
    put(away.root, { '.env.local': 'THERE=1' })
    await courier.take(away)
    put(source.root, { '.env.local': 'HERE=1' })
    const back = { repository: person, data, sid: SID, packs: courier.packs, checkpoint: courier.last }
    const home = await restoreGitWorkspace(back)
    const place = join(data, 'kept', `${SHORT}-1`)
    expect(readFileSync(join(home.root, '.env.local'), 'utf8')).toBe('THERE=1')
    expect(readFileSync(join(place, '.env.local'), 'utf8')).toBe('HERE=1')
    expect(git(person, 'branch', '--list', 'baton/kept/*')).toBe('')
    expect(home.notices).toEqual([
      `Files that were changed here meanwhile are kept in ${place}: .env.local.`,
      `Changed on both sides: .env.local. The session's are in place; compare with: diff -r . ${place}`,
    ])
  })

  test('.env stays behind also where nothing ignores it, and is not lost', async () => {
    const person = repository()
    put(person, { '.env': 'SECRET=1' })
    const source = await openGitWorkspace({ repository: person, data: folder(), sid: SID })
    expect(Object.keys(filesOf(source.root))).toEqual(['a.txt'])
    put(source.root, { '.env': 'SECRET=2' })
    const courier = new Courier()
    const checkpoint = await courier.take(source)
    const target = await restoreGitWorkspace({ data: folder(), sid: SID, packs: courier.packs, checkpoint })
    expect(Object.keys(filesOf(target.root))).toEqual(['a.txt'])
    expect(readFileSync(join(source.root, '.env'), 'utf8')).toBe('SECRET=2')
  })
})

describe('K6: a folder without git', () => {
  function plain(): string {
    const path = join(folder(), 'papers')
    mkdirSync(path)
    put(path, {
      'a.txt': 'a\n',
      'sub/b.txt': 'b\n',
      'node_modules/x/index.js': 'x',
      '.venv/bin/python': 'p',
      '.env': 'SECRET=1',
      '.gitignore': '*.log\n',
      'run.log': 'l',
    })
    mkdirSync(join(path, 'void'))
    return path
  }

  test('there and back: files, deletions and empty folders; not what is installed or ignored', async () => {
    const person = plain()
    const data = folder()
    const source = await openGitWorkspace({ repository: person, data, sid: SID })
    expect(source.root).toBe(person)
    const before = filesOf(person)
    const courier = new Courier()
    const first = await courier.take(source)
    expect(first).toMatchObject({ kind: 'folder', head: '', branch: '' })
    expect(filesOf(person)).toEqual(before)
    expect(existsSync(join(person, '.git'))).toBe(false)
    await source.close()

    const away = await restoreGitWorkspace({
      data: folder(),
      sid: SID,
      packs: courier.packs,
      checkpoint: first,
    })
    expect(Object.keys(filesOf(away.root))).toEqual(['.gitignore', 'a.txt', 'sub/b.txt'])
    expect(existsSync(join(away.root, 'void'))).toBe(true)
    expect((await away.about()).branch).toBe('')
    put(away.root, { 'a.txt': 'agent\n', 'new.txt': 'n' })
    unlinkSync(join(away.root, 'sub/b.txt'))
    await courier.take(away)
    expect(courier.packs[1]?.length).toBeLessThan(1000)

    const home = await restoreGitWorkspace({
      repository: person,
      data,
      sid: SID,
      packs: courier.packs,
      checkpoint: courier.last,
    })
    expect(home.root).toBe(person)
    expect(home.notices).toEqual([])
    expect(Object.keys(filesOf(person))).toEqual(
      [
        '.env',
        '.gitignore',
        '.venv/bin/python',
        'a.txt',
        'new.txt',
        'node_modules/x/index.js',
        'run.log',
      ].toSorted(),
    )
    expect(readFileSync(join(person, 'a.txt'), 'utf8')).toBe('agent\n')
    await home.close()
  })

  test('K10: what was changed there meanwhile is kept as files', async () => {
    const person = plain()
    const data = folder()
    const source = await openGitWorkspace({ repository: person, data, sid: SID })
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
    put(person, { 'a.txt': 'person\n', 'sub/mine.txt': 'm', 'late.log': 'ignored' })
    const home = await restoreGitWorkspace({
      repository: person,
      data,
      sid: SID,
      packs: courier.packs,
      checkpoint: courier.last,
    })
    const place = join(data, 'kept', `${SHORT}-1`)
    expect(home.notices).toEqual([
      `Files that were changed here meanwhile are kept in ${place}: a.txt, sub/mine.txt.`,
      `Changed on both sides: a.txt. The session's are in place; compare with: diff -r . ${place}`,
    ])
    expect(readFileSync(join(person, 'a.txt'), 'utf8')).toBe('agent\n')
    expect(readFileSync(join(place, 'a.txt'), 'utf8')).toBe('person\n')
    expect(readFileSync(join(place, 'sub/mine.txt'), 'utf8')).toBe('m')
    expect(readFileSync(join(person, 'late.log'), 'utf8')).toBe('ignored')
    await home.close()
  })

  test('K5: a second session is refused while the first works there', async () => {
    const person = plain()
    const data = folder()
    const first = await openGitWorkspace({ repository: person, data, sid: SID })
    await expect(openGitWorkspace({ repository: person, data, sid: OTHER })).rejects.toEqual(
      withCode('workspace-in-use'),
    )
    await first.close()
  })

  test.each([
    ['the whole disk', '/'],
    ['the home folder', homedir()],
  ])('%s is refused', async (_, path) => {
    await expect(openGitWorkspace({ repository: path, data: folder(), sid: SID })).rejects.toEqual(
      withCode('workspace-unfit'),
    )
  })

  test('a folder that is gone when the session comes back is told, and nothing is lost', async () => {
    const person = plain()
    const data = folder()
    const source = await openGitWorkspace({ repository: person, data, sid: SID })
    const courier = new Courier()
    await courier.take(source)
    await source.close()
    rmSync(person, { recursive: true })
    const home = await restoreGitWorkspace({
      repository: person,
      data,
      sid: SID,
      packs: courier.packs,
      checkpoint: courier.last,
    })
    expect(home.notices[0]).toContain('this one goes on in')
    expect(readFileSync(join(home.root, 'sub/b.txt'), 'utf8')).toBe('b\n')
  })
})
