import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import type { BlobStore } from '@baton/shared/blobs.ts'
import { BatonError } from '@baton/shared/errors.ts'
import type { CheckpointEntry } from '@baton/shared/journal.ts'
import { Checkpoints } from '../src/session/checkpoints.ts'
import { packOf } from '../src/workspace/pack-file.ts'
import { tipOf, type Workspace } from '../src/workspace/workspace.ts'
import {
  bytesOf,
  Courier,
  filesOf,
  folder,
  git,
  goneAway,
  openGitWorkspace,
  put,
  repository,
  restoreGitWorkspace,
  SID,
  withCode,
} from './workspace-ground.ts'

const GB = 2 ** 30

/** A file of zeros that takes no room. */
function sparse(path: string, bytes: number): void {
  writeFileSync(path, '')
  truncateSync(path, bytes)
}

describe('K7: a checkpoint of few changes', () => {
  test('stores only these, also the first one', async () => {
    const person = repository({ 'a.txt': 'a', 'b.txt': 'b', 'c.txt': 'c' })
    put(person, { 'b.txt': 'changed', 'd.txt': 'd' })
    const { wrapper, taken } = noting()
    const options = { repository: person, data: folder(), git: wrapper }
    await openGitWorkspace({ ...options, sid: SID })
    expect(taken()).toEqual(['b.txt', 'd.txt'])
    const settings = { place: 'in-place' as const, carry: [] }
    const inPlace = await openGitWorkspace({ ...options, sid: 'inPlace_00000000004', settings })
    await inPlace.checkpoint()
    expect(taken()).toEqual(['b.txt', 'd.txt'])
    await inPlace.close()
  })

  test('reads only these, and its pack does not grow with what changed before', async () => {
    const files = Object.fromEntries(
      Array.from({ length: 600 }, (_, n) => [`d${n % 30}/f${n}.txt`, `${n}\n`.repeat(50)]),
    )
    const { wrapper, taken } = noting()
    const source = await openGitWorkspace({
      repository: repository(files),
      data: folder(),
      sid: SID,
      git: wrapper,
    })
    const courier = new Courier()
    await courier.take(source)
    for (let round = 0; round < 8; round++) {
      taken()
      const changed = Array.from({ length: 3 }, (_, n) => `d${n}/f${round * 30 + n}.txt`)
      for (const path of changed) put(source.root, { [path]: randomBytes(1000) })
      await courier.take(source)
      expect(taken()).toEqual(changed.toSorted())
      expect(courier.packs.at(-1)?.length).toBeLessThan(2 * 3000)
    }
  })
})

/** A git that notes which files it is told to store; `taken` gives those since it was last asked. */
function noting(): { wrapper: string; taken: () => string[] } {
  const log = join(folder(), 'log')
  const wrapper = join(folder(), 'git')
  const script = `#!/bin/sh
case "$*" in
*"update-index --add --remove"*) tee -a ${log} | git "$@" ;;
*) exec git "$@" ;;
esac
`
  writeFileSync(wrapper, script)
  writeFileSync(log, '')
  chmodSync(wrapper, 0o755)
  const taken = (): string[] => {
    const paths = readFileSync(log, 'utf8').split('\0').filter(Boolean).toSorted()
    writeFileSync(log, '')
    return paths
  }
  return { wrapper, taken }
}

describe('K8: what is too large', () => {
  test('a file of 2 GB stays behind and is told once; all else travels; nothing is lost on the way home', async () => {
    const person = repository({ 'a.txt': 'a', 'grows.bin': 'small' })
    const data = folder()
    const source = await openGitWorkspace({ repository: person, data, sid: SID })
    const courier = new Courier()
    await courier.take(source)
    const objects = (): number => Number(/size: (\d+)/.exec(git(person, 'count-objects', '-v'))?.[1])
    const before = objects()
    sparse(join(source.root, 'huge.bin'), 2 * GB)
    sparse(join(source.root, 'grows.bin'), 1.5 * GB)
    put(source.root, { 'b.txt': 'b', 'a.txt': 'changed' })
    const checkpoint = await courier.take(source)
    expect(source.left()).toEqual([
      'huge.bin (2.0 GB) stays on this machine: at most 1.0 GB of changed files travel at once. All other files travel.',
      'grows.bin (1.5 GB) stays on this machine: at most 1.0 GB of changed files travel at once. All other files travel.',
    ])
    expect(objects() - before).toBeLessThan(100)
    put(source.root, { 'b.txt': 'bb' })
    await source.checkpoint()
    expect(source.left()).toEqual([])

    const away = await restoreGitWorkspace({ data: folder(), sid: SID, packs: courier.packs, checkpoint })
    expect(Object.keys(filesOf(away.root))).toEqual(['a.txt', 'b.txt', 'grows.bin'])
    put(away.root, { 'c.txt': 'c' })
    await courier.take(away)
    put(source.root, { 'b.txt': 'b' })
    const home = await restoreGitWorkspace({
      repository: person,
      data,
      sid: SID,
      packs: courier.packs,
      checkpoint: courier.last,
    })
    expect(statSync(join(home.root, 'huge.bin')).size).toBe(2 * GB)
    expect(statSync(join(home.root, 'grows.bin')).size).toBe(1.5 * GB)
    expect(existsSync(join(home.root, 'c.txt'))).toBe(true)
  })

  test('a large file of the person is not copied into the work tree, and told', async () => {
    const person = repository({ 'a.txt': 'a' })
    sparse(join(person, 'huge.bin'), 2 * GB)
    put(person, { 'b.txt': 'b' })
    const source = await openGitWorkspace({ repository: person, data: folder(), sid: SID })
    expect(source.left()).toEqual([
      "huge.bin (2.0 GB) is not in the session's work tree: at most 1.0 GB of changed files travel at once. All other files travel.",
    ])
    expect(Object.keys(filesOf(source.root))).toEqual(['a.txt', 'b.txt'])
  })

  test('I11: one that was changed elsewhere, too, is moved aside, and told', async () => {
    const person = repository({ 'grows.bin': 'small' })
    const { source, courier, away, home } = await goneAway(person)
    put(away.root, { 'grows.bin': 'other' })
    await courier.take(away)
    sparse(join(source.root, 'grows.bin'), 1.5 * GB)
    const back = await home()
    const aside = readdirSync(back.root).find((name) => name.startsWith('grows.bin.kept-')) ?? ''
    expect(statSync(join(back.root, aside)).size).toBe(1.5 * GB)
    expect(statSync(join(back.root, 'grows.bin')).size).toBe(5)
    expect(back.notices).toEqual([`grows.bin was too large to be kept on a branch; it is now ${aside}.`])
  })

  test('a pack beyond the limit is refused, and leaves no file', async () => {
    const data = folder()
    const source = await openGitWorkspace({
      repository: repository({ 'a.bin': randomBytes(50_000) }),
      data,
      sid: SID,
    })
    const checkpoint = await source.checkpoint()
    const tip = checkpoint ? tipOf(checkpoint) : ''
    await expect(source.pack(tip, undefined, 10_000)).rejects.toEqual(withCode('too-large'))
    expect(readdirSync(join(data, 'checkpoints', SID)).filter((name) => name.startsWith('pack'))).toEqual([])
    expect((await bytesOf(await source.pack(tip, undefined, Infinity))).length).toBeGreaterThan(50_000)
  })
})

describe('K8: packs at the relay', () => {
  const blobs: BlobStore = { put: async () => 'b'.repeat(64), get: async () => new Uint8Array(10) }
  const oid = 'a'.repeat(40)

  test('are fetched a few pieces at a time', async () => {
    let under = 0
    const counting: BlobStore = {
      ...blobs,
      get: async () => {
        under++
        return new Uint8Array(10)
      },
    }
    const entry: CheckpointEntry = {
      ...{ kind: 'git', commit: oid, tree: oid, head: oid, branch: 'main' },
      packs: [{ blobs: Array.from({ length: 50 }, (_, n) => String(n)), bytes: 500 }],
    }
    const [pack] = new Checkpoints(counting, 's', new Uint8Array(32), undefined).packs(entry)
    let read = 0
    for await (const piece of pack?.pieces(100) ?? []) {
      read += piece.length
      expect(under).toBeLessThanOrEqual(read / 10 + 2)
    }
    expect(read).toBe(500)
  })

  test('F45: of another length than the journal tells are refused', async () => {
    const entry: CheckpointEntry = {
      ...{ kind: 'git', commit: oid, tree: oid, head: oid, branch: 'main' },
      packs: [{ blobs: ['1', '2'], bytes: 21 }],
    }
    const [pack] = new Checkpoints(blobs, 's', new Uint8Array(32), undefined).packs(entry)
    const read = async (): Promise<void> => {
      for await (const _ of pack?.pieces(100) ?? []) void _
    }
    await expect(read()).rejects.toEqual(withCode('bad-blob'))
  })

  test('a chain that would grow too large is replaced by one whole pack', async () => {
    let version = 0
    const asked: (string | undefined)[] = []
    const workspace: Workspace = {
      root: '/w',
      checkpoint: async () => {
        const commit = String(++version).repeat(40).slice(0, 40)
        return { kind: 'git', commit, tree: oid, head: oid, branch: 'main' }
      },
      pack: async (_, since) => {
        asked.push(since)
        if (since !== undefined && version === 3) throw new BatonError('too-large')
        return packOf(new Uint8Array(10))
      },
      about: async () => ({ path: '/w', branch: 'main', platform: 'test' }),
      close: async () => undefined,
    }
    const checkpoints = new Checkpoints(blobs, 's', new Uint8Array(32), undefined)
    const packs: number[] = []
    for (let n = 0; n < 3; n++) {
      const draft = await checkpoints.store(workspace)
      if (draft?.kind === 'checkpoint') packs.push(draft.body.packs.length)
    }
    expect(packs).toEqual([1, 2, 1])
    expect(asked).toEqual([undefined, '1'.repeat(40), '2'.repeat(40), undefined])
  })
})

/** A disk of a few megabytes; undefined where mounting is not allowed. */
function smallDisk(megabytes: number): string | undefined {
  const path = folder()
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', path], { stdio: 'ignore' })
  } catch {
    return undefined
  }
  mounted.push(path)
  return path
}
const mounted: string[] = []
afterAll(() => {
  for (const path of mounted) execFileSync('umount', ['-l', path])
})

describe('K8: a full disk in the middle of a checkpoint', () => {
  const noise = (): Record<string, Uint8Array> =>
    Object.fromEntries(Array.from({ length: 8 }, (_, n) => [`noise-${n}.bin`, randomBytes(3 << 20)]))

  test('is told, the files stay, and the next checkpoint is whole', async ({ skip }) => {
    const disk = smallDisk(12)
    if (disk === undefined) return skip('mounting a small disk is not allowed here')
    // The repository is on the small disk, the work tree is not.
    const person = join(disk, 'project')
    execFileSync('git', ['clone', '-q', repository(), person])
    const data = folder()
    const source = await openGitWorkspace({ repository: person, data, sid: SID })
    const courier = new Courier()
    await courier.take(source)
    put(source.root, { ...noise(), 'a.txt': 'work' })
    const files = filesOf(source.root)
    await expect(source.checkpoint()).rejects.toEqual(withCode('disk-full'))
    expect(filesOf(source.root)).toEqual(files)
    for (let n = 1; n < 8; n++) rmSync(join(source.root, `noise-${n}.bin`))
    git(person, 'prune', '--expire=now')
    const checkpoint = await courier.take(source)
    const target = await restoreGitWorkspace({ data: folder(), sid: SID, packs: courier.packs, checkpoint })
    expect(Object.keys(filesOf(target.root))).toEqual(['a.txt', 'noise-0.bin'])
    expect(filesOf(target.root)).toEqual(filesOf(source.root))
  })

  test('also while a pack is made, and while one arrives', async ({ skip }) => {
    const [here, there] = [smallDisk(10), smallDisk(10)]
    if (here === undefined || there === undefined) return skip('mounting a small disk is not allowed here')
    const person = repository()
    const source = await openGitWorkspace({ repository: person, data: here, sid: SID })
    const courier = new Courier()
    await courier.take(source)
    put(source.root, { 'one.bin': randomBytes(3 << 20), 'two.bin': randomBytes(3 << 20) })
    const checkpoint = await source.checkpoint()
    const tip = checkpoint ? tipOf(checkpoint) : ''
    const pack = (): ReturnType<Workspace['pack']> => source.pack(tip, tipOf(courier.last), Infinity)
    await expect(pack()).rejects.toEqual(withCode('disk-full'))
    expect(Object.keys(filesOf(source.root))).toEqual(['a.txt', 'one.bin', 'two.bin'])

    // Elsewhere there is room for the work tree, or for the pack, but not for both.
    rmSync(join(source.root, 'two.bin'))
    const packs = [...courier.packs, await bytesOf(await pack())]
    const arriving = { sid: SID, packs, checkpoint: checkpoint ?? courier.last }
    await expect(restoreGitWorkspace({ ...arriving, data: there })).rejects.toEqual(withCode('disk-full'))
    const roomy = await restoreGitWorkspace({ ...arriving, data: folder() })
    expect(Object.keys(filesOf(roomy.root))).toEqual(['a.txt', 'one.bin', 'two.bin'])
  })

  test('large files are refused before they fill it', async ({ skip }) => {
    const disk = smallDisk(12)
    if (disk === undefined) return skip('mounting a small disk is not allowed here')
    const person = join(disk, 'project')
    execFileSync('git', ['clone', '-q', repository(), person])
    const source = await openGitWorkspace({ repository: person, data: folder(), sid: SID })
    await source.checkpoint()
    const before = execFileSync('du', ['-s', person]).toString('utf8')
    put(source.root, { 'large.bin': randomBytes(40 << 20) })
    await expect(source.checkpoint()).rejects.toThrow(/40 MB of large files to store, \d+ MB free/)
    expect(execFileSync('du', ['-s', person]).toString('utf8')).toBe(before)
    mkdirSync(join(disk, 'still-room'))
  })
})
