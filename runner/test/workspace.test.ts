import { execSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  Courier,
  filesOf,
  folder,
  git,
  put,
  repository,
  SHORT,
  SID,
  status,
  openGitWorkspace,
  restoreGitWorkspace,
} from './workspace-ground.ts'

describe('a new session', () => {
  test('I11: it sees what the person sees: edited, staged, deleted and untracked files, but not ignored ones', async () => {
    const person = repository({
      'edited.txt': '1\n',
      'staged.txt': '1\n',
      'gone.txt': '1\n',
      '.gitignore': 'secret.env\n',
    })
    put(person, { 'edited.txt': '2\n', 'staged.txt': '2\n', 'new/file.txt': 'n\n', 'secret.env': 'KEY=1\n' })
    git(person, 'add', 'staged.txt')
    unlinkSync(join(person, 'gone.txt'))
    const { root } = await openGitWorkspace({ repository: person, data: folder(), sid: SID })
    const { 'secret.env': ignored, ...seen } = filesOf(person)
    expect(ignored).toBeDefined()
    expect(filesOf(root)).toEqual(seen)
    expect(status(root)).toBe(
      [`## baton/${SHORT}`, ' M edited.txt', ' D gone.txt', ' M staged.txt', '?? new/file.txt', ''].join(
        '\n',
      ),
    )
  })

  test('I11: opening and checkpoints leave the files, index, branch and status of the person as they are', async () => {
    const person = repository({ 'a.txt': '1\n', 'b.txt': '1\n' })
    put(person, { 'a.txt': '2\n', 'c.txt': '1\n' })
    git(person, 'add', 'a.txt')
    const look = (): unknown[] => [
      filesOf(person),
      readFileSync(join(person, '.git/index')),
      git(person, 'rev-parse', 'HEAD', '--abbrev-ref', 'HEAD'),
    ]
    const before = look()
    const workspace = await openGitWorkspace({ repository: person, data: folder(), sid: SID })
    put(workspace.root, { 'a.txt': 'agent\n' })
    await workspace.checkpoint()
    expect(look()).toEqual(before)
    expect(status(person)).toBe('## main\nM  a.txt\n?? c.txt\n')
  })

  test('the difference from its start to its checkpoint is the part of the agent, and applies on edited files', async () => {
    const lines = Array.from({ length: 20 }, (_, i) => `${i}\n`)
    const person = repository({ 'a.txt': lines.join(''), 'b.txt': 'b\n', '.gitignore': '.env\n' })
    const mine = ['mine\n', ...lines.slice(1)]
    put(person, { 'a.txt': mine.join(''), 'new.txt': 'mine\n', '.env': 'KEY=1\n' })
    const settings = { place: 'worktree' as const, carry: ['.env'] }
    const workspace = await openGitWorkspace({ repository: person, data: folder(), sid: SID, settings })
    const done = [...mine.slice(0, -1), 'agent\n'].join('')
    put(workspace.root, { 'a.txt': done, 'picture.bin': new Uint8Array([0, 1, 255]) })
    unlinkSync(join(workspace.root, 'b.txt'))
    await workspace.checkpoint()
    const between = [`refs/baton/${SID}/start`, `refs/baton/${SID}/checkpoint`]
    expect(git(person, 'diff', '--name-status', ...between)).toBe('M\ta.txt\nD\tb.txt\nA\tpicture.bin\n')
    // As README.md and docs/workspaces.md say it.
    execSync(`git diff --binary ${between.join(' ')} | git apply`, { cwd: person })
    expect(filesOf(person)).toEqual(filesOf(workspace.root))
    expect(readFileSync(join(person, 'a.txt'), 'utf8')).toBe(done)
  })

  test('opened from a folder inside the clone, it holds the whole clone', async () => {
    const person = repository({ 'sub/a.txt': 'a', 'b.txt': 'b' })
    const { root } = await openGitWorkspace({ repository: join(person, 'sub'), data: folder(), sid: SID })
    expect(Object.keys(filesOf(root)).sort()).toEqual(['b.txt', 'sub/a.txt'])
  })

  test('a data folder inside the clone is not taken for work', async () => {
    const person = repository()
    const data = join(person, 'odd [data]')
    mkdirSync(data)
    const { root } = await openGitWorkspace({ repository: person, data, sid: SID })
    expect(Object.keys(filesOf(root))).toEqual(['a.txt'])
  })

  test('files that a sparse checkout leaves out do not count as deleted', async () => {
    const person = repository({ 'in/a.txt': 'a', 'out/b.txt': 'b' })
    git(person, 'sparse-checkout', 'set', 'in')
    expect(existsSync(join(person, 'out'))).toBe(false)
    const { root } = await openGitWorkspace({ repository: person, data: folder(), sid: SID })
    expect(status(root)).toBe(`## baton/${SHORT}\n`)
  })

  test('I11: opened again after a crash it is as the agent left it', async () => {
    const options = { repository: repository(), data: folder(), sid: SID }
    const first = await openGitWorkspace(options)
    put(first.root, { 'a.txt': 'agent\n', 'b.txt': 'agent\n' })
    const left = filesOf(first.root)
    const again = await openGitWorkspace(options)
    expect(again.root).toBe(first.root)
    expect(filesOf(again.root)).toEqual(left)
    expect(await again.checkpoint()).toBeDefined()
  })

  test('a work tree that a crash left half-made is made anew', async () => {
    const options = { repository: repository({ 'a.txt': 'a', 'b.txt': 'b' }), data: folder(), sid: SID }
    const first = await openGitWorkspace(options)
    writeFileSync(join(options.data, 'checkpoints', SID, 'making'), '')
    unlinkSync(join(first.root, 'a.txt'))
    const again = await openGitWorkspace(options)
    expect(Object.keys(filesOf(again.root))).toEqual(['a.txt', 'b.txt'])
  })

  test('I11: something else in its place is moved aside', async () => {
    const data = folder()
    put(join(data, 'worktrees', SID), { 'precious.txt': 'p' })
    const { root } = await openGitWorkspace({ repository: repository(), data, sid: SID })
    expect(Object.keys(filesOf(root))).toEqual(['a.txt'])
    expect(readFileSync(join(`${root}.kept-1`, 'precious.txt'), 'utf8')).toBe('p')
  })
})

describe('a checkpoint', () => {
  test('is undefined when nothing changed, also after a file was written with what it held', async () => {
    const workspace = await openGitWorkspace({ repository: repository(), data: folder(), sid: SID })
    expect(await workspace.checkpoint()).toBeDefined()
    expect(await workspace.checkpoint()).toBeUndefined()
    put(workspace.root, { 'a.txt': 'a\n' })
    expect(await workspace.checkpoint()).toBeUndefined()
    put(workspace.root, { 'a.txt': 'b\n' })
    expect(await workspace.checkpoint()).toBeDefined()
  })

  test('of equal states on equal commits is an equal commit', async () => {
    const workspace = await openGitWorkspace({ repository: repository(), data: folder(), sid: SID })
    put(workspace.root, { 'b.txt': '1' })
    const first = await workspace.checkpoint()
    put(workspace.root, { 'b.txt': '2' })
    expect((await workspace.checkpoint())?.commit).not.toBe(first?.commit)
    put(workspace.root, { 'b.txt': '1' })
    expect(await workspace.checkpoint()).toEqual(first)
  })

  test('sees changes of equal size that follow each other at once', async () => {
    const workspace = await openGitWorkspace({ repository: repository(), data: folder(), sid: SID })
    const trees = new Set<string | undefined>()
    for (let n = 0; n < 20; n++) {
      put(workspace.root, { 'a.txt': String.fromCharCode(97 + n) })
      trees.add((await workspace.checkpoint())?.tree)
    }
    expect(trees.size).toBe(20)
    expect(trees).not.toContain(undefined)
  })

  test('I11: an ignored file that was added by force travels, staged or committed', async () => {
    const person = repository({ '.gitignore': '*.log\n' })
    const workspace = await openGitWorkspace({ repository: person, data: folder(), sid: SID })
    put(workspace.root, { 'staged.log': '1', 'committed.log': '2', 'ignored.log': '3' })
    await workspace.checkpoint()
    git(workspace.root, 'add', '-f', 'committed.log')
    git(workspace.root, 'commit', '-q', '-m', 'c')
    git(workspace.root, 'add', '-f', 'staged.log')
    const checkpoint = await workspace.checkpoint()
    expect(git(person, 'ls-tree', '--name-only', checkpoint?.tree ?? '')).toBe(
      '.gitignore\ncommitted.log\nstaged.log\n',
    )
  })

  test('I11: a repository inside the work tree travels as plain files, an empty one does no harm', async () => {
    const workspace = await openGitWorkspace({ repository: repository(), data: folder(), sid: SID })
    put(workspace.root, { 'inner/x.txt': 'x', 'young/deep/y.txt': 'y' })
    for (const name of ['inner', 'young', 'empty']) {
      mkdirSync(join(workspace.root, name), { recursive: true })
      git(join(workspace.root, name), 'init', '-q')
    }
    git(join(workspace.root, 'inner'), 'add', '-A')
    git(join(workspace.root, 'inner'), 'commit', '-q', '-m', 'inner')
    put(workspace.root, { 'inner/later.txt': 'l' })
    const names = async (): Promise<string> =>
      git(workspace.root, 'ls-tree', '-r', '--name-only', (await workspace.checkpoint())?.tree ?? '')
    expect(await names()).toBe('a.txt\ninner/later.txt\ninner/x.txt\nyoung/deep/y.txt\n')
    put(workspace.root, { 'inner/more.txt': 'm' })
    expect(await names()).toContain('inner/more.txt')
  })

  test('a lock left by a killed git does not stop it', async () => {
    const options = { repository: repository(), data: folder(), sid: SID }
    const first = await openGitWorkspace(options)
    await first.checkpoint()
    put(first.root, { 'b.txt': 'b' })
    writeFileSync(join(options.data, 'checkpoints', SID, 'index.lock'), '')
    const again = await openGitWorkspace(options)
    expect(await again.checkpoint()).toBeDefined()
  })

  test('many at once are taken one after another', async () => {
    const workspace = await openGitWorkspace({ repository: repository(), data: folder(), sid: SID })
    const taken = await Promise.all([1, 2, 3].map(() => workspace.checkpoint()))
    expect(taken.filter((one) => one !== undefined)).toHaveLength(1)
    await workspace.close()
  })

  test('of a branch without a commit has no head, and the branch before travels along', async () => {
    const workspace = await openGitWorkspace({ repository: repository(), data: folder(), sid: SID })
    const courier = new Courier()
    await courier.take(workspace)
    git(workspace.root, 'checkout', '-q', '--orphan', 'fresh')
    put(workspace.root, { 'b.txt': 'b' })
    const checkpoint = await courier.take(workspace)
    expect(checkpoint).toMatchObject({ head: '', branch: 'fresh' })
    const target = await restoreGitWorkspace({ data: folder(), sid: SID, packs: courier.packs, checkpoint })
    expect(status(target.root)).toBe(status(workspace.root))
    expect(git(target.root, 'log', '--format=%s', `baton/${SHORT}`)).toBe('start\n')
  })
})

test('packs are git bundles, and later ones are small', async () => {
  const big = Uint8Array.from({ length: 300_000 }, () => Math.floor(Math.random() * 256))
  const source = await openGitWorkspace({
    repository: repository({ 'big.bin': big }),
    data: folder(),
    sid: SID,
  })
  const courier = new Courier()
  await courier.take(source)
  put(source.root, { 'b.txt': 'b' })
  await courier.take(source)
  const [first = '', second = ''] = courier.packs
  expect(first.length).toBeGreaterThan(300_000)
  expect(second.length).toBeLessThan(1_000)
  const place = folder()
  put(place, { '1.bundle': first, '2.bundle': second })
  git(place, 'clone', '-q', '--branch', 'checkpoint', '1.bundle', 'clone')
  expect(git(join(place, 'clone'), 'bundle', 'verify', '../2.bundle')).toContain(courier.last.commit)
  git(join(place, 'clone'), 'fetch', '-q', '../2.bundle', 'checkpoint')
  git(join(place, 'clone'), 'checkout', '-q', 'FETCH_HEAD')
  expect(Object.keys(filesOf(join(place, 'clone'))).sort()).toEqual(['b.txt', 'big.bin'])
})
