import { execFileSync } from 'node:child_process'
import { chmodSync, existsSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Checkpoint } from '../src/workspace/workspace.ts'
import {
  Courier,
  filesOf,
  folder,
  git,
  openGitWorkspace,
  put,
  repository,
  restoreGitWorkspace,
  SID,
  withCode,
} from './workspace-ground.ts'

const empty = new Uint8Array()

function emptyRepository(...options: string[]): string {
  const path = folder()
  git(path, 'init', '-q', ...options)
  return path
}

test.each([
  ['a folder that is not there', 'workspace-missing', () => join(folder(), 'nothing')],
  ['a bare repository', 'workspace-not-git', () => emptyRepository('--bare')],
])('%s is refused: %s', async (_, code, make) => {
  const data = folder()
  await expect(openGitWorkspace({ repository: make(), data, sid: SID })).rejects.toEqual(withCode(code))
  expect(existsSync(join(data, 'worktrees', SID))).toBe(false)
})

interface Moved {
  data: string
  root: string
  packs: Uint8Array[]
  before: Checkpoint
  checkpoint: Checkpoint
}

/** A session with two packs; the runner of `data` has got the first. */
async function moved(): Promise<Moved> {
  const source = await openGitWorkspace({ repository: repository(), data: folder(), sid: SID })
  const courier = new Courier()
  const before = await courier.take(source)
  const data = folder()
  const first = { data, sid: SID, packs: [...courier.packs], checkpoint: before }
  const { root } = await restoreGitWorkspace(first)
  put(source.root, { 'a.txt': 'changed\n', 'b.txt': 'new\n' })
  const checkpoint = await courier.take(source)
  return { data, root, packs: courier.packs, before, checkpoint }
}

describe('a checkpoint that is not whole', () => {
  test.each<[string, (first: Uint8Array, last: Uint8Array) => Uint8Array[]]>([
    ['no pack at all', () => []],
    ['the newest pack is missing', (first) => [first]],
    ['the newest pack is cut short', (first, last) => [first, last.subarray(0, last.length - 30)]],
    ['the newest pack ends in its head', (first, last) => [first, last.subarray(0, 40)]],
    [
      'one bit is flipped',
      (first, last) => [first, last.map((byte, n) => (n === last.length - 40 ? byte ^ 1 : byte))],
    ],
    ['something else is in its place', (first) => [first, new TextEncoder().encode('not a bundle\n\n')]],
  ])('F46: %s: refused, and no file is touched', async (_, spoil) => {
    const { data, root, packs, checkpoint } = await moved()
    put(root, { 'local.txt': 'local' })
    const files = filesOf(root)
    const spoiled = { data, sid: SID, packs: spoil(packs[0] ?? empty, packs[1] ?? empty), checkpoint }
    await expect(restoreGitWorkspace(spoiled)).rejects.toEqual(withCode('checkpoint-torn'))
    expect(filesOf(root)).toEqual(files)
    const whole = await restoreGitWorkspace({ data, sid: SID, packs, checkpoint })
    expect(Object.keys(filesOf(whole.root))).toEqual(['a.txt', 'b.txt'])
  })

  test('F46: an earlier pack is missing on a runner that has none: refused, and no work tree is made', async () => {
    const { packs, checkpoint } = await moved()
    const data = folder()
    const partial = { data, sid: SID, packs: packs.slice(1), checkpoint }
    await expect(restoreGitWorkspace(partial)).rejects.toEqual(withCode('checkpoint-torn'))
    expect(existsSync(join(data, 'worktrees', SID))).toBe(false)
  })

  test.each(['tree', 'head'] as const)('F45: the journal names another %s: refused', async (field) => {
    const { data, root, packs, before, checkpoint } = await moved()
    const files = filesOf(root)
    const other = { ...checkpoint, [field]: field === 'tree' ? before.tree : before.commit }
    const options = { data, sid: SID, packs, checkpoint: other }
    await expect(restoreGitWorkspace(options)).rejects.toEqual(withCode('checkpoint-torn'))
    expect(filesOf(root)).toEqual(files)
  })

  test('F45: a commit that is here without all its files is not taken for whole', async () => {
    const { data, root, packs, checkpoint } = await moved()
    const files = filesOf(root)
    const elsewhere = folder()
    await restoreGitWorkspace({ data: elsewhere, sid: SID, packs, checkpoint })
    // As when git was killed while it unpacked: commit and tree have arrived, the files have not.
    const [from, to] = [elsewhere, data].map((place) => join(place, 'repos', `${SID}.git`))
    for (const type of ['commit', 'tree'] as const) {
      const input = execFileSync('git', ['cat-file', type, checkpoint[type]], { cwd: from })
      execFileSync('git', ['hash-object', '-w', '-t', type, '--stdin'], { cwd: to, input })
    }
    const options = { data, sid: SID, checkpoint }
    await expect(restoreGitWorkspace({ ...options, packs: [] })).rejects.toEqual(withCode('checkpoint-torn'))
    expect(filesOf(root)).toEqual(files)
    await restoreGitWorkspace({ ...options, packs })
    expect(Object.keys(filesOf(root))).toEqual(['a.txt', 'b.txt'])
  })
})

describe('trouble on the way', () => {
  /** A git that fails as if the disk were full when it is asked to do `verb`. */
  function fullDisk(verb: string): string {
    const path = join(folder(), 'git')
    const script = `#!/bin/sh
for arg in "$@"; do
  if [ "$arg" = ${verb} ]; then
    echo "error: file write error: No space left on device" >&2
    exit 128
  fi
done
exec git "$@"
`
    put(join(path, '..'), { git: script })
    chmodSync(path, 0o755)
    return path
  }

  test('a full disk is named, the files stay, and it goes on when there is room', async () => {
    const options = { repository: repository(), data: folder(), sid: SID }
    await openGitWorkspace(options)
    const full = await openGitWorkspace({ ...options, git: fullDisk('update-index') })
    put(full.root, { 'b.txt': 'b' })
    await expect(full.checkpoint()).rejects.toEqual(withCode('disk-full'))
    const roomy = await openGitWorkspace(options)
    expect(Object.keys(filesOf(roomy.root))).toEqual(['a.txt', 'b.txt'])
    expect(await roomy.checkpoint()).toBeDefined()
  })

  test.each(['index-pack', 'worktree', 'read-tree'])(
    'a disk that is full at %s: named, and the next attempt succeeds',
    async (verb) => {
      const source = await openGitWorkspace({ repository: repository(), data: folder(), sid: SID })
      const courier = new Courier()
      put(source.root, { 'b.txt': 'b' })
      const checkpoint = await courier.take(source)
      const options = { data: folder(), sid: SID, packs: courier.packs, checkpoint }
      const attempt = restoreGitWorkspace({ ...options, git: fullDisk(verb) })
      await expect(attempt).rejects.toEqual(withCode('disk-full'))
      const target = await restoreGitWorkspace(options)
      expect(filesOf(target.root)).toEqual(filesOf(source.root))
      expect(target.kept).toBeUndefined()
    },
  )

  test('a work tree that was removed is told, not made up', async () => {
    const workspace = await openGitWorkspace({ repository: repository(), data: folder(), sid: SID })
    rmSync(workspace.root, { recursive: true })
    await expect(workspace.checkpoint()).rejects.toEqual(withCode('workspace-missing'))
  })

  test('no git on the machine is said in words', async () => {
    const options = { repository: repository(), data: folder(), sid: SID, git: '/nonexistent/git' }
    await expect(openGitWorkspace(options)).rejects.toThrow('git is not installed')
  })
})
