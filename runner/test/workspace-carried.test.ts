import { readFileSync, unlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  carrying,
  Courier,
  filesOf,
  folder,
  git,
  goneAway,
  openGitWorkspace,
  put,
  repository,
  restoreGitWorkspace,
  SHORT,
  SID,
} from './workspace-ground.ts'

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
    const { data, source, courier, away, home } = await goneAway(person, carrying('.env.local'))
    put(away.root, { '.env.local': 'THERE=1' })
    await courier.take(away)
    put(source.root, { '.env.local': 'HERE=1' })
    const back = await home()
    const place = join(data, 'kept', `${SHORT}-1`)
    expect(readFileSync(join(back.root, '.env.local'), 'utf8')).toBe('THERE=1')
    expect(readFileSync(join(place, '.env.local'), 'utf8')).toBe('HERE=1')
    expect(git(person, 'branch', '--list', 'baton/kept/*')).toBe('')
    expect(back.notices).toEqual([
      `Files here that are in no checkpoint of the session are kept in ${place}: .env.local.`,
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
