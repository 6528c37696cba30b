import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  Courier,
  folder,
  git,
  goneAway,
  inPlace,
  openGitWorkspace,
  put,
  repository,
  restoreGitWorkspace,
  SID,
  state,
} from './workspace-ground.ts'

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

  test('K1 I11: files that take the place of one travel, and overwrite nothing of it at home', async () => {
    const person = withModule()
    put(person, { 'lib/lib.txt': 'edited by the person\n' })
    const { data, away, courier, home } = await goneAway(person, inPlace)
    git(away.root, 'rm', '-q', '--cached', 'lib')
    put(away.root, { 'lib/lib.txt': 'vendored\n' })
    await courier.take(away)
    const third = await restoreGitWorkspace({
      ...{ data: folder(), sid: SID, packs: courier.packs },
      checkpoint: courier.last,
    })
    expect(readFileSync(join(third.root, 'lib/lib.txt'), 'utf8')).toBe('vendored\n')
    const back = await home()
    expect(readFileSync(join(person, 'lib/lib.txt'), 'utf8')).toBe('vendored\n')
    const [place = ''] = /\S+kept\/\S+-1/.exec(back.notices.join('\n')) ?? []
    expect(place).toContain(data)
    expect(readFileSync(join(place, 'lib/lib.txt'), 'utf8')).toBe('edited by the person\n')
    expect(existsSync(join(person, 'lib/.git'))).toBe(true)
  })

  test('K1: so do those that a person has put in its place before a session begins', async () => {
    const person = withModule()
    git(person, 'rm', '-q', '--cached', 'lib')
    rmSync(join(person, 'lib/.git'))
    const source = await openGitWorkspace({ repository: person, data: folder(), sid: SID })
    expect(readFileSync(join(source.root, 'lib/lib.txt'), 'utf8')).toBe('lib\n')
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
    const { courier, away, home } = await goneAway(person, inPlace)
    put(away.root, { 'a.txt': 'agent\n' })
    await courier.take(away)
    put(person, { 'lib/lib.txt': 'mine\n', 'lib/new.txt': 'n' })
    await home()
    expect(readFileSync(join(person, 'a.txt'), 'utf8')).toBe('agent\n')
    expect(readFileSync(join(person, 'lib/lib.txt'), 'utf8')).toBe('mine\n')
    expect(existsSync(join(person, 'lib/new.txt'))).toBe(true)
    expect(git(person, 'status', '--porcelain')).toContain('lib')
  })
})
