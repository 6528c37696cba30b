import {
  chmodSync,
  existsSync,
  readFileSync,
  statSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { restoreWorkspace } from '../src/workspace/restore.ts'
import type { Workspace } from '../src/workspace/workspace.ts'
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

describe('a move', () => {
  test('I11: all that git can hold arrives as it was: odd names, modes, links, empty files, deletions', async () => {
    const person = repository({
      'keep.txt': 'k\n',
      'delete.txt': 'd\n',
      'run.sh': '#!/bin/sh\n',
      'dir/old.txt': 'o',
    })
    const source = await openGitWorkspace({ repository: person, data: folder(), sid: SID })
    const { root } = source
    put(root, {
      'with space.txt': '1',
      'line\nbreak\ttab.txt': '2',
      'smile-😀-ü.txt': '3',
      '-dash': '4',
      ':(glob)*': '5',
      '"quoted"': '6',
      'back\\slash': '7',
      'empty.txt': '',
      'binary.bin': Uint8Array.from({ length: 512 }, (_, n) => n % 256),
      'crlf.txt': 'a\r\nb\nc\r\n',
      '#hash': '8',
      'dir/new/deep.txt': '9',
    })
    writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.from([0x66, 0xff, 0xfe])]), 'not UTF-8')
    chmodSync(join(root, 'run.sh'), 0o755)
    symlinkSync('keep.txt', join(root, 'link'))
    symlinkSync('nowhere/at all', join(root, 'dangling'))
    unlinkSync(join(root, 'delete.txt'))
    const courier = new Courier()
    const checkpoint = await courier.take(source)
    const target = await restoreGitWorkspace({ data: folder(), sid: SID, packs: courier.packs, checkpoint })
    expect(filesOf(target.root)).toEqual(filesOf(root))
    expect(Object.keys(filesOf(root))).toHaveLength(18)
    expect(status(target.root)).toBe(status(root))
    expect(target.kept).toBeUndefined()
    expect(await target.checkpoint()).toBeUndefined()
  })

  test('bytes are exact whatever .gitattributes says; no filter, hook or signature of the person runs', async () => {
    const person = repository({ 'a.txt': 'a\n' })
    const marker = join(folder(), 'ran')
    const tattle = `sh -c 'echo filter >> "${marker}"; cat'`
    const hooks = ['post-checkout', 'reference-transaction', 'post-index-change', 'pre-commit', 'pre-auto-gc']
    for (const hook of hooks) {
      put(person, { [`.git/hooks/${hook}`]: `#!/bin/sh\necho ${hook} >> "${marker}"\n` })
      chmodSync(join(person, '.git/hooks', hook), 0o755)
    }
    put(person, {
      '.gitattributes': '*.txt text eol=lf filter=tattle ident\n*.u16 working-tree-encoding=UTF-16LE\n',
      'crlf.txt': 'x\r\ny\n$Id$\r\n',
      'wide.u16': Buffer.from('wide', 'utf16le'),
    })
    const settings = {
      'filter.tattle.clean': tattle,
      'filter.tattle.smudge': tattle,
      'filter.tattle.required': 'true',
      'core.autocrlf': 'true',
      'commit.gpgSign': 'true',
      'gpg.program': '/bin/false',
      'core.fsmonitor': `sh -c 'echo fsmonitor >> "${marker}"'`,
    }
    for (const [name, value] of Object.entries(settings)) git(person, 'config', name, value)
    const source = await openGitWorkspace({ repository: person, data: folder(), sid: SID })
    expect(filesOf(source.root)).toEqual(filesOf(person))
    put(source.root, { 'more.txt': '1\r\n2\n' })
    const courier = new Courier()
    const checkpoint = await courier.take(source)
    const options = { repository: person, data: folder(), sid: SID, packs: courier.packs, checkpoint }
    const target = await restoreGitWorkspace(options)
    expect(filesOf(target.root)).toEqual(filesOf(source.root))
    expect(existsSync(marker)).toBe(false)
  })

  test('commits, branch and rewritten history of the agent arrive; what was uncommitted is uncommitted', async () => {
    const source = await openGitWorkspace({ repository: repository(), data: folder(), sid: SID })
    const courier = new Courier()
    await courier.take(source)
    put(source.root, { 'b.txt': 'b' })
    git(source.root, 'add', '-A')
    git(source.root, 'commit', '-q', '-m', 'one')
    await courier.take(source)
    git(source.root, 'commit', '-q', '--amend', '-m', 'better')
    git(source.root, 'checkout', '-q', '-b', 'feature/x')
    put(source.root, { 'c.txt': 'c', 'b.txt': 'bb' })
    const checkpoint = await courier.take(source)
    const options = { data: folder(), sid: SID, packs: courier.packs }
    const target = await restoreGitWorkspace({ ...options, checkpoint })
    expect(git(target.root, 'log', '--format=%s')).toBe('better\nstart\n')
    expect(status(target.root)).toBe('## feature/x\n M b.txt\n?? c.txt\n')
    expect((await target.about()).branch).toBe('feature/x')

    git(source.root, 'checkout', '-q', '--detach')
    const detached = await courier.take(source)
    const again = await restoreGitWorkspace({ ...options, checkpoint: detached })
    expect(status(again.root)).toMatch(/^## HEAD \(no branch\)/)
    expect(again.kept).toBeUndefined()
  })

  test('only packs that are missing here are asked for', async () => {
    const data = folder()
    const source = await openGitWorkspace({ repository: repository(), data: folder(), sid: SID })
    const courier = new Courier()
    const asked: number[] = []
    const restore = async (): Promise<Workspace> => {
      const packs = courier.packs.map((pack, n) => ({ bytes: pack.length, pieces: () => asks(pack, n) }))
      return (await restoreWorkspace({ data, sid: SID, packs, checkpoint: courier.last })).workspace
    }
    async function* asks(pack: Uint8Array, n: number): AsyncGenerator<Uint8Array> {
      asked.push(n)
      yield pack
    }
    await courier.take(source)
    await restore()
    expect(asked.splice(0)).toEqual([0])
    for (const name of ['b', 'c']) {
      put(source.root, { [name]: name })
      await courier.take(source)
    }
    const target = await restore()
    expect(new Set(asked.splice(0))).toEqual(new Set([1, 2]))
    expect(filesOf(target.root)).toEqual(filesOf(source.root))
    await restore()
    expect(asked).toEqual([])
  })

  test('a clone that is behind is used, one of other history is left alone', async () => {
    const person = repository()
    const behind = join(folder(), 'behind')
    git(person, 'clone', '-q', '.', behind)
    put(person, { 'b.txt': 'b' })
    git(person, 'add', '-A')
    git(person, 'commit', '-q', '-m', 'two')
    const courier = new Courier()
    const checkpoint = await courier.take(
      await openGitWorkspace({ repository: person, data: folder(), sid: SID }),
    )
    const options = { sid: SID, packs: courier.packs, checkpoint }
    const used = await restoreGitWorkspace({ ...options, repository: behind, data: folder() })
    expect(git(behind, 'worktree', 'list')).toContain(used.root)

    const other = repository({ 'other.txt': 'o' })
    const refs = git(other, 'for-each-ref')
    const data = folder()
    const apart = await restoreGitWorkspace({ ...options, repository: other, data })
    expect(filesOf(apart.root)).toEqual(filesOf(used.root))
    expect(git(other, 'for-each-ref')).toBe(refs)
    expect(() => git(other, 'cat-file', '-e', checkpoint.commit)).toThrow()
    expect(existsSync(join(data, 'repos', `${SID}.git`))).toBe(true)
    expect(existsSync(join(data, 'repos', `${SID}.git.probe`))).toBe(false)
  })

  test('a shallow clone can be left, and does not make a full one shallow', async () => {
    const origin = repository()
    for (const n of [1, 2, 3]) {
      put(origin, { 'a.txt': `${n}\n` })
      git(origin, 'commit', '-q', '-a', '-m', String(n))
    }
    const shallow = join(folder(), 'shallow')
    git(origin, 'clone', '-q', '--depth', '1', `file://${origin}`, shallow)
    const courier = new Courier()
    await courier.take(await openGitWorkspace({ repository: shallow, data: folder(), sid: SID }))
    const options = { sid: SID, packs: courier.packs }
    const target = await restoreGitWorkspace({ ...options, data: folder(), checkpoint: courier.last })
    expect(git(target.root, 'log', '--format=%s')).toBe('3\n')
    expect(git(target.root, 'fsck', '--connectivity-only')).not.toMatch(/missing|broken/)
    put(target.root, { 'b.txt': 'b' })
    await courier.take(target)
    const back = { ...options, repository: origin, data: folder(), checkpoint: courier.last }
    const home = await restoreGitWorkspace(back)
    expect(filesOf(home.root)).toEqual(filesOf(target.root))
    expect(git(origin, 'worktree', 'list')).toContain(home.root)
    expect(existsSync(join(origin, '.git/shallow'))).toBe(false)
  })

  test('a repository that uses SHA-256 moves too', async () => {
    const person = repository({ 'a.txt': 'a' }, '--object-format=sha256')
    const source = await openGitWorkspace({ repository: person, data: folder(), sid: SID })
    const courier = new Courier()
    await courier.take(source)
    put(source.root, { 'b.txt': 'b' })
    const checkpoint = await courier.take(source)
    expect(checkpoint.commit).toHaveLength(64)
    const target = await restoreGitWorkspace({ data: folder(), sid: SID, packs: courier.packs, checkpoint })
    expect(filesOf(target.root)).toEqual(filesOf(source.root))
  })

  test('two runners may share one clone', async () => {
    const person = repository()
    const here = folder()
    const courier = new Courier()
    const first = await openGitWorkspace({ repository: person, data: here, sid: SID })
    put(first.root, { 'b.txt': '1' })
    await courier.take(first)
    const options = { repository: person, sid: SID, packs: courier.packs }
    const second = await restoreGitWorkspace({ ...options, data: folder(), checkpoint: courier.last })
    put(second.root, { 'c.txt': '2' })
    git(second.root, 'add', '-A')
    git(second.root, 'commit', '-q', '-m', 'there')
    put(second.root, { 'd.txt': '3' })
    await courier.take(second)
    const back = await restoreGitWorkspace({ ...options, data: here, checkpoint: courier.last })
    expect(back.kept).toBeUndefined()
    expect(filesOf(back.root)).toEqual(filesOf(second.root))
    expect(status(back.root)).toBe(status(second.root))
  })
})

describe('coming back', () => {
  test('I11: changes that no checkpoint holds are kept on a branch before the checkpoint is laid out', async () => {
    const person = repository({ 'a.txt': '1\n', '.gitignore': 'ignored\n' })
    const here = folder()
    const courier = new Courier()
    const source = await openGitWorkspace({ repository: person, data: here, sid: SID })
    await courier.take(source)
    const options = { sid: SID, packs: courier.packs }
    const away = await restoreGitWorkspace({ ...options, data: folder(), checkpoint: courier.last })
    put(away.root, { 'a.txt': 'agent\n', ignored: 'theirs' })
    git(away.root, 'add', '-f', 'ignored')
    await courier.take(away)

    put(source.root, { 'a.txt': 'person\n', 'mine.txt': 'm', ignored: 'mine' })
    const back = { ...options, repository: person, data: here, checkpoint: courier.last }
    const home = await restoreGitWorkspace(back)
    expect(home.kept).toBe(`baton/kept/${SHORT}-1`)
    expect(filesOf(home.root)).toEqual(filesOf(away.root))
    const kept = ['a.txt', 'mine.txt'].map((path) => git(person, 'show', `${home.kept}:${path}`))
    expect(kept).toEqual(['person\n', 'm'])
    expect(readFileSync(join(here, 'kept', `${SHORT}-1`, 'ignored'), 'utf8')).toBe('mine')

    expect((await restoreGitWorkspace(back)).kept).toBeUndefined()
    put(home.root, { 'again.txt': '2' })
    expect((await restoreGitWorkspace(back)).kept).toBe(`baton/kept/${SHORT}-2`)
    expect(existsSync(join(home.root, 'again.txt'))).toBe(false)
  })

  test('I11: a commit that was made here meanwhile is kept', async () => {
    const person = repository()
    const data = folder()
    const courier = new Courier()
    const source = await openGitWorkspace({ repository: person, data, sid: SID })
    const checkpoint = await courier.take(source)
    put(source.root, { 'b.txt': 'b' })
    git(source.root, 'add', '-A')
    git(source.root, 'commit', '-q', '-m', 'by hand')
    const back = { repository: person, data, sid: SID, packs: courier.packs, checkpoint }
    const home = await restoreGitWorkspace(back)
    expect(git(person, 'log', '--format=%s', home.kept ?? '')).toContain('by hand')
    expect(git(home.root, 'log', '--format=%s')).toBe('start\n')
  })

  test('an equal state is not touched', async () => {
    const options = { repository: repository(), data: folder(), sid: SID }
    const source = await openGitWorkspace(options)
    put(source.root, { 'b.txt': 'b' })
    const checkpoint = await new Courier().take(source)
    const stamp = (): bigint[] => {
      const { ino, mtimeNs, ctimeNs } = statSync(join(source.root, 'b.txt'), { bigint: true })
      return [ino, mtimeNs, ctimeNs]
    }
    const before = stamp()
    const back = await restoreGitWorkspace({ ...options, packs: [], checkpoint })
    expect(stamp()).toEqual(before)
    expect(await back.checkpoint()).toBeUndefined()
  })

  test('I11: a branch of the person with the same name is not moved', async () => {
    const person = repository()
    const elsewhere = join(folder(), 'clone')
    git(person, 'clone', '-q', '.', elsewhere)
    git(elsewhere, 'branch', 'topic', 'HEAD')
    const source = await openGitWorkspace({ repository: person, data: folder(), sid: SID })
    git(source.root, 'checkout', '-q', '-b', 'topic')
    put(source.root, { 'b.txt': 'b' })
    git(source.root, 'add', '-A')
    git(source.root, 'commit', '-q', '-m', 'theirs')
    const courier = new Courier()
    const checkpoint = await courier.take(source)
    const at = git(elsewhere, 'rev-parse', 'topic')
    const options = { repository: elsewhere, data: folder(), sid: SID, packs: courier.packs, checkpoint }
    const target = await restoreGitWorkspace(options)
    expect(git(elsewhere, 'rev-parse', 'topic')).toBe(at)
    expect((await target.about()).branch).toBe(`baton/${SHORT}`)
    expect(filesOf(target.root)).toEqual(filesOf(source.root))
  })

  test('I11: a branch that the person is on is not shared, and a copy does not get the branch of its origin', async () => {
    const person = repository()
    const elsewhere = join(folder(), 'clone')
    git(person, 'clone', '-q', '.', elsewhere)
    const courier = new Courier()
    const source = await openGitWorkspace({
      ...{ repository: person, data: folder(), sid: SID },
      settings: { place: 'in-place', carry: [] },
    })
    const checkpoint = await courier.take(source)
    expect(checkpoint.branch).toBe('main')
    await source.close()
    const options = { packs: courier.packs, repository: elsewhere }
    const away = await restoreGitWorkspace({ ...options, data: folder(), sid: SID, checkpoint })
    expect((await away.about()).branch).toBe(`baton/${SHORT}`)
    put(away.root, { 'b.txt': 'b' })
    const later = await courier.take(away)
    const copy = await restoreGitWorkspace({
      ...options,
      data: folder(),
      sid: 'copyOfIt_000000003',
      checkpoint: later,
    })
    expect((await copy.about()).branch).toBe('baton/copyOfIt')
    expect(filesOf(copy.root)).toEqual(filesOf(away.root))
  })

  test('a merge that was under way here is not under way in the state that arrives', async () => {
    const options = { repository: repository({ 'a.txt': '1\n' }), data: folder(), sid: SID }
    const source = await openGitWorkspace(options)
    const courier = new Courier()
    const checkpoint = await courier.take(source)
    git(source.root, 'checkout', '-q', '-b', 'other')
    put(source.root, { 'a.txt': '2\n' })
    git(source.root, 'commit', '-q', '-a', '-m', '2')
    git(source.root, 'checkout', '-q', `baton/${SHORT}`)
    put(source.root, { 'a.txt': '3\n' })
    git(source.root, 'commit', '-q', '-a', '-m', '3')
    expect(() => git(source.root, 'merge', 'other')).toThrow()
    const back = await restoreGitWorkspace({ ...options, packs: courier.packs, checkpoint })
    expect(back.kept).toBeDefined()
    expect(git(back.root, 'status')).not.toMatch(/merg/)
    expect(status(back.root)).toBe(`## baton/${SHORT}\n`)
  })
})
