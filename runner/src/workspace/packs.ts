/** Packs of checkpoints: made from a repository, and brought into one. */
import { appendFile, mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { BatonError } from '@baton/shared/errors.ts'
import { CHECKPOINT_REF, readBundle, SHALLOW_REFS, writeBundle, type Bundle } from './bundle.ts'
import type { GitProgram } from './git-program.ts'
import { hasCommit, type Repository } from './repository.ts'
import type { Shadow } from './shadow.ts'
import type { Checkpoint } from './workspace.ts'

/** Packs, oldest first. A function is called when its pack is needed; an iterable is read whole, once. */
export type PackSource = AsyncIterable<Uint8Array> | readonly (Uint8Array | (() => Promise<Uint8Array>))[]

const PACK_TIMEOUT_MS = 600_000

/** One pass over a PackSource, kept: packs are asked for at most once each. */
export class PackList {
  readonly #source: PackSource
  readonly #got = new Map<number, Bundle>()
  #all: Uint8Array[] | undefined

  constructor(source: PackSource) {
    this.#source = source
  }

  async length(): Promise<number> {
    return (await this.#array()).length
  }

  async get(index: number): Promise<Bundle> {
    const known = this.#got.get(index)
    if (known) return known
    const entry = (await this.#array())[index]
    if (entry === undefined) throw new BatonError('checkpoint-torn', `(pack ${index + 1} is missing)`)
    const bundle = readBundle(typeof entry === 'function' ? await entry() : entry)
    this.#got.set(index, bundle)
    return bundle
  }

  async #array(): Promise<readonly (Uint8Array | (() => Promise<Uint8Array>))[]> {
    if (!(Symbol.asyncIterator in this.#source)) return this.#source
    if (this.#all) return this.#all
    const all: Uint8Array[] = []
    for await (const bytes of this.#source) all.push(bytes)
    this.#all = all
    return all
  }
}

/** Makes the pack of a commit; see Workspace.pack. */
export async function makePack(
  shadow: Shadow,
  repository: Repository,
  commit: string,
  since: string | undefined,
): Promise<Uint8Array> {
  const brings = new Map([[CHECKPOINT_REF, commit]])
  if (since === undefined) {
    for (const [n, oid] of (await shallowCommits(shadow, commit)).entries()) {
      brings.set(`${SHALLOW_REFS}${n}`, oid)
    }
  }
  const args = ['pack-objects', '--revs', '--thin', '--stdout', '--delta-base-offset', '--quiet']
  const pack = await shadow.run(args, {
    input: since === undefined ? `${commit}\n` : `${commit}\n^${since}\n`,
    timeout_ms: PACK_TIMEOUT_MS,
  })
  return writeBundle({ format: repository.format, needs: since === undefined ? [] : [since], brings, pack })
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
 * needed. Throws BatonError `checkpoint-torn`; whole packs that came in by then stay, unreferenced.
 */
export async function applyPacks(
  git: GitProgram,
  repository: Repository,
  packs: PackList,
  checkpoint: Checkpoint,
): Promise<void> {
  if (await isWhole(git, repository, checkpoint)) return
  for (const bundle of await missingPacks(git, repository, packs)) await bringIn(git, repository, bundle)
  if (await isWhole(git, repository, checkpoint)) return
  const short = checkpoint.commit.slice(0, 12)
  throw new BatonError('checkpoint-torn', `(the packs do not hold ${short} as the journal tells it)`)
}

/** Is the commit as told, and is every file of it there? */
async function isWhole(git: GitProgram, repository: Repository, checkpoint: Checkpoint): Promise<boolean> {
  const cwd = repository.common
  const { commit, tree, head } = checkpoint
  const [names, files] = await Promise.all([
    git.run(['rev-parse', '--quiet', `${commit}^{tree}`, `${commit}^1`], { cwd }),
    git.run(['rev-list', '--objects', '--quiet', '--max-count=1', commit], {
      cwd,
      timeout_ms: PACK_TIMEOUT_MS,
    }),
  ])
  return names.code === 0 && names.stdout.toString('utf8') === `${tree}\n${head}\n` && files.code === 0
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
  const newest = (await packs.length()) - 1
  if (newest < 0) return false
  const needed = await missingPacks(git, repository, packs).catch(() => [])
  if (needed[0] && needed[0].needs.length > 0) return true
  if (needed[0]?.format !== repository.format) return false
  await mkdir(probe, { recursive: true })
  try {
    const args = ['init', '--quiet', '--bare', '--template=', `--object-format=${repository.format}`, probe]
    await git.bytes(args, { cwd: probe })
    const apart: Repository = { ...repository, common: probe, objects: join(probe, 'objects') }
    for (const bundle of needed) await bringIn(git, apart, bundle)
    const ends = await git.text(['rev-list', '--max-parents=0', checkpoint.head], { cwd: probe })
    for (const end of ends.split('\n')) if (await hasCommit(git, repository, end)) return true
    return false
  } finally {
    await rm(probe, { recursive: true, force: true })
  }
}

/** From the newest pack back to the first whose needs are met here. */
async function missingPacks(git: GitProgram, repository: Repository, packs: PackList): Promise<Bundle[]> {
  const needed: Bundle[] = []
  for (let index = (await packs.length()) - 1; index >= 0; index--) {
    const bundle = await packs.get(index)
    needed.unshift(bundle)
    const have = await Promise.all(bundle.needs.map((oid) => hasCommit(git, repository, oid)))
    if (have.every(Boolean)) return needed
  }
  throw new BatonError('checkpoint-torn', '(an earlier pack is missing)')
}

/** Stores a pack. index-pack makes it visible only when it is whole, so a crash in between leaves nothing half. */
async function bringIn(git: GitProgram, repository: Repository, bundle: Bundle): Promise<void> {
  const args = ['index-pack', '--stdin', '--fix-thin']
  const result = await git.run(args, {
    cwd: repository.common,
    input: bundle.pack,
    timeout_ms: PACK_TIMEOUT_MS,
  })
  if (result.code !== 0) {
    const words = result.stderr.trim().split('\n').at(-1) ?? ''
    throw new BatonError('checkpoint-torn', `(${words.replace(/^fatal: /, '')})`)
  }
  const ends = [...bundle.brings].filter(([ref]) => ref.startsWith(SHALLOW_REFS)).map(([, oid]) => oid)
  if (ends.length === 0) return
  const path = join(repository.common, 'shallow')
  const listed = await readFile(path, 'utf8').catch(() => '')
  for (const end of ends.filter((oid) => !listed.includes(oid))) {
    const parent = await git.run(['cat-file', '-e', `${end}^1`], { cwd: repository.common })
    if (parent.code !== 0) await appendFile(path, `${end}\n`)
  }
}
