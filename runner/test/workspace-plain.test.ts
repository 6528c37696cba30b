import { existsSync, mkdirSync, readFileSync, rmSync, unlinkSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  Courier,
  filesOf,
  folder,
  goneAway,
  openGitWorkspace,
  OTHER,
  put,
  restoreGitWorkspace,
  SHORT,
  SID,
  withCode,
} from './workspace-ground.ts'

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
    const { data, courier, away, home } = await goneAway(person)
    put(away.root, { 'a.txt': 'agent\n' })
    await courier.take(away)
    put(person, { 'a.txt': 'person\n', 'sub/mine.txt': 'm', 'late.log': 'ignored' })
    const back = await home()
    const place = join(data, 'kept', `${SHORT}-1`)
    expect(back.notices).toEqual([
      `Files here that are in no checkpoint of the session are kept in ${place}: a.txt, sub/mine.txt.`,
      `Changed on both sides: a.txt. The session's are in place; compare with: diff -r . ${place}`,
    ])
    expect(readFileSync(join(person, 'a.txt'), 'utf8')).toBe('agent\n')
    expect(readFileSync(join(place, 'a.txt'), 'utf8')).toBe('person\n')
    expect(readFileSync(join(place, 'sub/mine.txt'), 'utf8')).toBe('m')
    expect(readFileSync(join(person, 'late.log'), 'utf8')).toBe('ignored')
    await back.close()
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
