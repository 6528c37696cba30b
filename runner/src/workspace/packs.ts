/** Packs of checkpoints: made from a repository, and brought into one. Always through files, never whole in memory. */
import { appendFile, mkdir, open, readFile, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { BatonError } from '@baton/shared/errors.ts'
import { CHECKPOINT_REF, readHead, SHALLOW_REFS, writeHead, type BundleHead } from './bundle.ts'
import { diskError } from '../files/replace.ts'
import type { GitProgram } from './git-program.ts'
import { megabytes } from './megabytes.ts'
import { packFile, streamOf } from './pack-file.ts'
import { hasCommit, type Repository } from './repository.ts'
import type { Shadow } from './shadow.ts'
import { tipOf, type Checkpoint, type PackFile, type Pieces } from './workspace.ts'

const PACK_TIMEOUT_MS = 600_000
const PIECE_BYTES = 8 << 20
/** Stays free when a pack is fetched. */
const RESERVE_BYTES = 64 << 20

/** A pack that has been fetched into a file. */
interface Fetched extends BundleHead {
  path: string
  /** Where the pack itself begins. */
  start: number
}

/** All packs of a checkpoint, oldest first. Each is fetched when it is needed, once, into a file below `dir`. */
export class PackList implements AsyncDisposable {
  readonly #packs: readonly Pieces[]
  readonly #dir: string
  readonly #got = new Map<number, Promise<Fetched>>()

  constructor(packs: readonly Pieces[], dir: string) {
    this.#packs = packs
    this.#dir = dir
  }

  get length(): number {
    return this.#packs.length
  }

  get(index: number): Promise<Fetched> {
    const known = this.#got.get(index)
    if (known) return known
    const fetched = this.#fetch(index)
    this.#got.set(index, fetched)
    return fetched
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.allSettled(this.#got.values())
    await rm(this.#dir, { recursive: true, force: true })
  }

  async #fetch(index: number): Promise<Fetched> {
    const pack = this.#packs[index]
    if (pack === undefined) throw new BatonError('checkpoint-torn', `(pack ${index + 1} is missing)`)
    await mkdir(this.#dir, { recursive: true })
    const disk = await statfs(this.#dir)
    const free = disk.bavail * disk.bsize
    // Once more as much is needed when git takes it in.
    if (2 * pack.bytes + RESERVE_BYTES > free && pack.bytes > RESERVE_BYTES) {
      throw new BatonError(
        'disk-full',
        `(${this.#dir}: ${megabytes(2 * pack.bytes)} needed, ${megabytes(free)} free)`,
      )
    }
    const path = join(this.#dir, String(index))
    let head: (BundleHead & { start: number }) | undefined
    try {
      await using file = await open(path, 'w')
      for await (const piece of pack.pieces(PIECE_BYTES)) {
        head ??= readHead(piece)
        await file.write(piece)
      }
    } catch (error) {
      throw diskError(error)
    }
    if (!head) throw new BatonError('checkpoint-torn', '(an empty pack)')
    return { ...head, path }
  }
}

/** Makes the pack of a tip in a file at `path`; see Workspace.pack. */
export async function makePack(
  shadow: Shadow,
  repository: Repository,
  path: string,
  { tip, since, bytes_max }: { tip: string; since: string | undefined; bytes_max: number },
): Promise<PackFile> {
  const brings = new Map([[CHECKPOINT_REF, tip]])
  if (since === undefined) {
    for (const [n, oid] of (await shallowCommits(shadow, tip)).entries())
      brings.set(`${SHALLOW_REFS}${n}`, oid)
  }
  // --shallow: what `since` holds is left out although the tip does not descend from it.
  const args = ['pack-objects', '--revs', '--thin', '--shallow', '--stdout', '--delta-base-offset', '--quiet']
  try {
    await using file = await open(path, 'w')
    const head = writeHead({ format: repository.format, needs: since === undefined ? [] : [since], brings })
    await file.write(head)
    let bytes = head.length
    await shadow.run(args, {
      input: since === undefined ? `${tip}\n` : `${tip}\n^${since}\n^${since}^@\n`,
      timeout_ms: PACK_TIMEOUT_MS,
      sink: async (piece) => {
        bytes += piece.length
        // Before the disk is full of what nobody would take.
        if (bytes > bytes_max) {
          throw new BatonError('too-large', `(the workspace has more than ${megabytes(bytes_max)} to carry)`)
        }
        await file.write(piece)
      },
    })
  } catch (error) {
    await rm(path, { force: true })
    throw diskError(error)
  }
  return packFile(path)
}

/** Commits of the history whose parents a shallow clone lacks. The reader has to know them to be the ends. */
async function shallowCommits(shadow: Shadow, commit: string): Promise<string[]> {
  const file = await readFile(join(shadow.dir, 'shallow'), 'utf8').catch(() => '')
  if (file === '') return []
  const listed = new Set(file.split('\n'))
  const ends = await shadow.text(['rev-list', '--max-parents=0', commit])
  return ends.split('\n').filter((oid) => listed.has(oid))
}

/**
 * Makes the checkpoint's objects present and whole in the repository. Reads packs from the newest back, only as many as are
 * needed. Throws BatonError `checkpoint-torn`, `disk-full`; whole packs that came in by then stay, unreferenced.
 */
export async function applyPacks(
  git: GitProgram,
  repository: Repository,
  packs: PackList,
  checkpoint: Checkpoint,
): Promise<void> {
  if (await isWhole(git, repository, checkpoint)) return
  for (const pack of await missingPacks(git, repository, packs)) await bringIn(git, repository, pack)
  if (await isWhole(git, repository, checkpoint)) return
  const short = checkpoint.commit.slice(0, 12)
  throw new BatonError('checkpoint-torn', `(the packs do not hold ${short} as the journal tells it)`)
}

/** Is everything as told, and is every file of it there? */
async function isWhole(git: GitProgram, repository: Repository, checkpoint: Checkpoint): Promise<boolean> {
  const cwd = repository.common
  const { commit, tree, head, state } = checkpoint
  const tips = state === undefined ? [commit] : [commit, state, `${state}^@`]
  const [shown, above, files, all] = await Promise.all([
    git.run(['cat-file', 'commit', commit], { cwd }),
    state === undefined ? undefined : git.run(['cat-file', 'commit', state], { cwd }),
    state === undefined
      ? undefined
      : git.run(['rev-parse', '--verify', '--quiet', `${state}:files`], { cwd }),
    git.run(['rev-list', '--objects', '--quiet', '--no-walk', ...tips], { cwd, timeout_ms: PACK_TIMEOUT_MS }),
  ])
  if (shown.code !== 0 || all.code !== 0 || (above && above.code !== 0)) return false
  const told = readCommit(shown.stdout)
  if (above && readCommit(above.stdout).parents[0] !== commit) return false
  const whole = files?.code === 0 ? files.stdout.toString('latin1').trim() : told.tree
  return whole === tree && told.parents.join() === head
}

function readCommit(raw: Buffer): { tree: string | undefined; parents: string[] } {
  const head = raw.toString('latin1').split('\n\n', 1)[0] ?? ''
  const parents = [...head.matchAll(/^parent ([0-9a-f]+)$/gm)].map((match) => match[1] ?? '')
  return { tree: /^tree ([0-9a-f]+)$/m.exec(head)?.[1], parents }
}

/**
 * Does the repository hold a part of the session's history? Looked up in a repository of its own, so that foreign objects
 * don't get into the person's.
 */
export async function sharesHistory(
  git: GitProgram,
  repository: Repository,
  packs: PackList,
  checkpoint: Checkpoint,
  probe: string,
): Promise<boolean> {
  if (packs.length === 0) return false
  const needed = await missingPacks(git, repository, packs).catch(() => [])
  if (needed[0] && needed[0].needs.length > 0) return true
  if (needed[0]?.format !== repository.format) return false
  await mkdir(probe, { recursive: true })
  try {
    const args = ['init', '--quiet', '--bare', '--template=', `--object-format=${repository.format}`, probe]
    await git.bytes(args, { cwd: probe })
    const apart: Repository = { ...repository, common: probe, objects: join(probe, 'objects') }
    for (const pack of needed) await bringIn(git, apart, pack)
    const ends = await git.text(['rev-list', '--max-parents=0', checkpoint.head || tipOf(checkpoint)], {
      cwd: probe,
    })
    for (const end of ends.split('\n')) if (await hasCommit(git, repository, end)) return true
    return false
  } finally {
    await rm(probe, { recursive: true, force: true })
  }
}

/** From the newest pack back to the first whose needs are met here. */
async function missingPacks(git: GitProgram, repository: Repository, packs: PackList): Promise<Fetched[]> {
  const needed: Fetched[] = []
  for (let index = packs.length - 1; index >= 0; index--) {
    const pack = await packs.get(index)
    needed.unshift(pack)
    const have = await Promise.all(pack.needs.map((oid) => hasCommit(git, repository, oid)))
    if (have.every(Boolean)) return needed
  }
  throw new BatonError('checkpoint-torn', '(an earlier pack is missing)')
}

/** Stores a pack. index-pack makes it visible only when it is whole, so a crash in between leaves nothing half. */
async function bringIn(git: GitProgram, repository: Repository, pack: Fetched): Promise<void> {
  const args = ['index-pack', '--stdin', '--fix-thin']
  const result = await git.run(args, {
    cwd: repository.common,
    input: streamOf(pack.path, pack.start),
    timeout_ms: PACK_TIMEOUT_MS,
  })
  if (result.code !== 0) {
    const words = result.stderr.trim().split('\n').at(-1) ?? ''
    throw new BatonError('checkpoint-torn', `(${words.replace(/^fatal: /, '')})`)
  }
  const ends = [...pack.brings].filter(([ref]) => ref.startsWith(SHALLOW_REFS)).map(([, oid]) => oid)
  if (ends.length === 0) return
  const path = join(repository.common, 'shallow')
  const listed = await readFile(path, 'utf8').catch(() => '')
  for (const end of ends.filter((oid) => !listed.includes(oid))) {
    const parent = await git.run(['cat-file', '-e', `${end}^1`], { cwd: repository.common })
    if (parent.code !== 0) await appendFile(path, `${end}\n`)
  }
}
