/** Folders that the runner may not look into, or not change. */
import { spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import {
  Courier,
  folder,
  openGitWorkspace,
  put,
  repository,
  restoreGitWorkspace,
  SID,
} from './workspace-ground.ts'

/** Permissions do not bind root; without these capabilities they do. */
const BOUND = ['setpriv', '--bounding-set=-dac_override,-dac_read_search']
const isRoot = process.getuid?.() === 0
const canBind = !isRoot || spawnSync(BOUND[0] ?? '', [...BOUND.slice(1), 'true']).status === 0

/** A git that permissions bind. */
function boundGit(): string {
  const program = join(folder(), 'git')
  writeFileSync(program, `#!/bin/sh\nexec ${isRoot ? BOUND.join(' ') : ''} git "$@"\n`)
  chmodSync(program, 0o755)
  return program
}

const closed: string[] = []
function close(path: string, mode: number): void {
  chmodSync(path, mode)
  closed.push(path)
}
afterEach(() => {
  for (const path of closed.splice(0)) if (existsSync(path)) chmodSync(path, 0o755)
})

describe.skipIf(!canBind)('K8: a folder that the runner may not look into', () => {
  test('stays behind and is told once; all else travels', async () => {
    const person = repository()
    const workspace = await openGitWorkspace({
      repository: person,
      data: folder(),
      sid: SID,
      git: boundGit(),
    })
    const courier = new Courier()
    await courier.take(workspace)
    put(workspace.root, {
      'priv/secret.txt': 'x',
      'deep/priv/y.txt': 'y',
      'deep/seen.txt': 'seen',
      'new.txt': 'new',
    })
    close(join(workspace.root, 'priv'), 0)
    close(join(workspace.root, 'deep/priv'), 0)
    await courier.take(workspace)
    const told = workspace.left()
    expect(told.toSorted()).toEqual([
      expect.stringMatching(/^The folder deep\/priv stays on this machine: .*may not look into it/),
      expect.stringMatching(/^The folder priv stays on this machine: /),
    ])
    put(workspace.root, { 'more.txt': 'more' })
    const checkpoint = await courier.take(workspace)
    expect(workspace.left()).toEqual([])
    const away = await restoreGitWorkspace({ data: folder(), sid: SID, packs: courier.packs, checkpoint })
    for (const path of ['deep/seen.txt', 'new.txt', 'more.txt'])
      expect(existsSync(join(away.root, path))).toBe(true)
    expect(existsSync(join(away.root, 'priv'))).toBe(false)
  })

  test('is told, too, when a session begins beside it', async () => {
    const person = repository()
    put(person, { 'priv/secret.txt': 'x' })
    close(join(person, 'priv'), 0)
    const workspace = await openGitWorkspace({
      repository: person,
      data: folder(),
      sid: SID,
      git: boundGit(),
    })
    expect(workspace.left()).toEqual([
      expect.stringMatching(/^The folder priv is not in the session's work tree: /),
    ])
  })
})

test('K8: a file whose path is too long for git stays behind and is told', async () => {
  const workspace = await openGitWorkspace({ repository: repository(), data: folder(), sid: SID })
  const courier = new Courier()
  await courier.take(workspace)
  const start = process.cwd()
  try {
    process.chdir(workspace.root)
    for (let n = 0; n < 24; n++) {
      mkdirSync('n'.repeat(200))
      process.chdir('n'.repeat(200))
    }
    writeFileSync('file', 'x')
    process.chdir(workspace.root)
    writeFileSync('short.txt', 'short')
    await courier.take(workspace)
    expect(workspace.left()).toEqual([
      expect.stringMatching(/^The folder nnn.*… stays on this machine: .*too long/),
    ])
  } finally {
    process.chdir(start)
    spawnSync('rm', ['-rf', workspace.root])
  }
})

describe.skipIf(!canBind)('K10: a folder at home that the runner may not change', () => {
  test('keeps what was deleted elsewhere, which is told', async () => {
    const person = repository({ 'a.txt': 'a', 'ro/gone.txt': 'g', 'free.txt': 'f' })
    const data = folder()
    const program = boundGit()
    const source = await openGitWorkspace({ repository: person, data, sid: SID, git: program })
    const courier = new Courier()
    await courier.take(source)
    close(join(source.root, 'ro'), 0o555)
    await source.close()
    const away = await restoreGitWorkspace({
      ...{ data: folder(), sid: SID, packs: courier.packs, checkpoint: courier.last },
    })
    rmSync(join(away.root, 'ro'), { recursive: true })
    rmSync(join(away.root, 'free.txt'))
    await courier.take(away)
    const home = await restoreGitWorkspace({
      ...{ data, sid: SID, packs: courier.packs, checkpoint: courier.last, repository: person, git: program },
    })
    expect(existsSync(join(home.root, 'free.txt'))).toBe(false)
    expect(readFileSync(join(home.root, 'ro/gone.txt'), 'utf8')).toBe('g')
    expect(home.notices.join('\n')).toMatch(
      /^Deleted in the session, but this machine does not allow it.*: ro\/gone\.txt\./m,
    )
  })
})
