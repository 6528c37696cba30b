/**
 * A second git folder beside a session's work tree, through which its files are stored and laid out byte for byte.
 *
 * It borrows the repository's object store and has an index, settings and attributes of its own. So the person's index is never
 * touched, nothing of the repository's settings runs (filters, LFS, line endings, signing), and what `.gitattributes` says
 * about conversion is off: a file with CRLF or an LFS file travels as it lies on disk. The index stays between checkpoints, so
 * that `git add` reads only files whose stat changed, and so that a file that travelled once goes on travelling even where
 * the local ignore rules differ.
 *
 * What git can't store does not travel: modes other than the executable bit, sockets and devices, the content of submodules. A nested repository travels as plain files, without its history. Empty folders are found here and carried
 * beside the files.
 *
 * Only what `git diff-files` and `git ls-files --others` name is looked at: with 20 changes among 50,000 files that is two
 * passes of stat, and nothing is read but the 20.
 */
import { createHash } from 'node:crypto'
import { copyFile, readFile, rm, stat, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { BatonError } from '@baton/shared/errors.ts'
import { isText, joinPaths, listPaths, shownPath, splitPaths } from './byte-paths.ts'
import { failure, OFFLINE, type GitOptions, type GitProgram } from './git-program.ts'
import type { Coming } from './in-the-way.ts'
import { megabytes } from './megabytes.ts'
import type { Repository } from './repository.ts'
import { ShadowFiles } from './shadow-files.ts'
import { makeShadowFolder } from './shadow-folder.ts'
import { withoutStrays } from './strays.ts'
import { sizesOf, takeLarge, type Large } from './sizes.ts'

/** Files may vanish or grow while git reads them, when something runs in the background. */
const STORE_TRIES = 4
const STORE_TIMEOUT_MS = 600_000
/** From this size on it is looked whether there is room for a file. */
const NOTED_BYTES = 16 << 20

export interface Stored {
  tree: string
  /** Empty folders; git has no place for them. */
  empty: string[]
  /** Files that are too large to travel. */
  large: Large[]
  /** Folders, as text, that could not be looked into; they do not travel either. */
  closed: string[]
}

/** `refused`: nothing was touched. `undeleted`: files that this machine did not let go. */
export type LaidOver = { is: 'laid'; undeleted: string[] } | { is: 'refused' | 'differs' }

const LAY_TIMEOUT_MS = 600_000
/** How git says that files are not as it knows them. */
const REFUSAL = /Cannot merge|would lose untracked|would be (overwritten|removed) by merge/

export class Shadow {
  readonly dir: string
  readonly root: string
  readonly #git: GitProgram
  readonly #env: Record<string, string>
  readonly #index: string
  readonly #objects: string
  readonly #oidLength: number
  readonly #files: ShadowFiles
  readonly #since = Date.now()
  /** Stamp of the index file and the tree that it stands for. */
  #known: { stamp: string; tree: string } | undefined

  constructor(options: {
    git: GitProgram
    dir: string
    root: string
    repository: Repository
    index?: string
  }) {
    this.dir = options.dir
    this.root = options.root
    this.#git = options.git
    this.#index = join(options.dir, options.index ?? 'index')
    this.#objects = options.repository.objects
    this.#oidLength = options.repository.format === 'sha256' ? 64 : 40
    this.#env = {
      GIT_DIR: options.dir,
      GIT_WORK_TREE: options.root,
      GIT_OBJECT_DIRECTORY: options.repository.objects,
      GIT_INDEX_FILE: this.#index,
    }
    this.#files = new ShadowFiles(options.root, (args, how) => this.run(args, how))
  }

  /**
   * Creates the folder's files, or freshens them; the index is left. `hide`: absolute path never stored, e.g. the data folder.
   * `ignore`: further patterns.
   */
  async prepare(repository: Repository, hide: string, ignore: readonly string[] = []): Promise<void> {
    await makeShadowFolder(this.#git, this, { repository, hide, ignore })
    await this.unlock()
  }

  /** Removes a lock left by a git that was killed with its runner. Nobody else writes here. */
  unlock(): Promise<void> {
    return rm(`${this.#index}.lock`, { force: true })
  }

  /** Runs git with this folder as its own. */
  run(args: string[], options: Omit<GitOptions, 'cwd'> = {}): Promise<Buffer> {
    return this.#git.bytes(args, { ...options, cwd: this.root, env: { ...this.#env, ...options.env } })
  }

  async text(args: string[], options: Omit<GitOptions, 'cwd'> = {}): Promise<string> {
    return (await this.run(args, options)).toString('utf8').replace(/\n$/, '')
  }

  async exists(): Promise<boolean> {
    return (await stampOf(this.#index)) !== 'none'
  }

  /** Is there an index, with nothing missing? One that a loss of power cut short is removed: it can be listed again. */
  async isWhole(): Promise<boolean> {
    const bytes = await readFile(this.#index).catch(() => undefined)
    if (!bytes) return false
    const length = this.#oidLength / 2
    const sum = createHash(length === 32 ? 'sha256' : 'sha1').update(bytes.subarray(0, -length))
    if (bytes.length > length && sum.digest().equals(bytes.subarray(-length))) return true
    await rm(this.#index)
    return false
  }

  /** Makes the index list the files of a commit or tree, without touching any file; empty: of none. */
  async list(treeish: string): Promise<void> {
    this.#known = undefined
    await this.run(treeish === '' ? ['read-tree', '--empty'] : ['read-tree', treeish])
    if (treeish === '') return
    // Reads every file once, so that only those count as changed that are; says so by its exit code.
    const args = ['update-index', '-q', '--refresh', '--ignore-submodules']
    const options = { cwd: this.root, env: this.#env, timeout_ms: STORE_TIMEOUT_MS }
    await this.#git.run(args, options)
  }

  /** A sparse checkout leaves these out on purpose: absent is not deleted. */
  async sparse(paths: readonly string[]): Promise<void> {
    if (paths.length === 0) return
    await this.run(['update-index', '--skip-worktree', '-z', '--stdin'], { input: joinPaths(paths) })
    this.#known = undefined
  }

  /**
   * Stores every file that is not ignored, and every file that the index lists; not those that are too large.
   * Throws BatonError `workspace-unreadable`, `disk-full`.
   */
  async store(): Promise<Stored> {
    for (let attempt = 1; ; attempt++) {
      try {
        const rest = await this.#update()
        return { tree: await this.tree(), ...rest }
      } catch (error) {
        // A git that was killed leaves its lock.
        await this.unlock()
        const moving =
          /short read|unable to stat|file changed|No such file|unable to index file|beyond a symbolic/i
        const words = error instanceof Error ? error.message : ''
        const unreadable = /open\("(.*)"\): Permission denied/.exec(words)?.[1]
        if (unreadable !== undefined) throw new BatonError('workspace-unreadable', unreadable)
        if (attempt >= STORE_TRIES || !moving.test(words)) throw error
      }
    }
  }

  /** The tree that the index stands for. */
  async tree(): Promise<string> {
    // Git replaces the index by renaming whenever anything changed; the same file means the same tree.
    if (this.#known && this.#known.stamp === (await stampOf(this.#index))) return this.#known.tree
    const tree = await this.text(['write-tree'])
    this.#known = { stamp: await stampOf(this.#index), tree }
    return tree
  }

  /** The same without some paths. */
  async treeWithout(paths: readonly string[]): Promise<string> {
    if (paths.length === 0) return this.tree()
    const scratch = `${this.#index}.without`
    await copyFile(this.#index, scratch)
    const env = { GIT_INDEX_FILE: scratch }
    try {
      await this.run(['update-index', '--force-remove', '-z', '--stdin'], { input: joinPaths(paths), env })
      return await this.text(['write-tree'], { env })
    } finally {
      await rm(scratch, { force: true })
    }
  }

  /** Stores files although they may be ignored. Those that do not exist are passed over; gives the others. */
  async include(paths: readonly string[]): Promise<string[]> {
    const present = [...(await sizesOf(this.root, paths)).keys()]
    if (present.length === 0) return []
    await this.run(['update-index', '--add', '--replace', '-z', '--stdin'], { input: joinPaths(present) })
    this.#known = undefined
    return present
  }

  /** Ignored files that some pathspecs name and the index does not list. */
  async ignored(pathspecs: readonly string[]): Promise<string[]> {
    const args = ['ls-files', '-z', '--others', '--ignored', '--exclude-standard', '--', ...pathspecs]
    return splitPaths(await this.run(args))
  }

  /** Paths that the index lists. */
  async paths(): Promise<Set<string>> {
    return new Set(splitPaths(await this.run(['ls-files', '-z'])))
  }

  /**
   * Lets go of submodules that are none any more, whose files git would pass over. `modules`: those that there are. Gives the paths that
   * are left.
   */
  async keepModules(modules: ReadonlySet<string>): Promise<Set<string>> {
    const paths = new Set<string>()
    const gone: string[] = []
    for (const line of splitPaths(await this.run(['ls-files', '-s', '-z']))) {
      const path = line.slice(line.indexOf('\t') + 1)
      if (line.startsWith('160000') && !modules.has(path)) gone.push(path)
      else paths.add(path)
    }
    if (gone.length === 0) return paths
    await this.run(['update-index', '--force-remove', '-z', '--stdin'], { input: joinPaths(gone) })
    this.#known = undefined
    return paths
  }

  /** Paths whose content differs between two trees. `filter`: as git's --diff-filter. */
  async differing(from: string, to: string, filter?: string): Promise<string[]> {
    if (from === to) return []
    const args = ['diff-tree', '-r', '-z', '--name-only', '--no-renames', from, to]
    if (filter !== undefined) args.splice(1, 0, `--diff-filter=${filter}`)
    return splitPaths(await this.run(args))
  }

  /** What the second tree has otherwise than the first, or alone. */
  async coming(from: string, to: string): Promise<Coming> {
    const coming: Coming = { files: [], modules: [] }
    if (from === to) return coming
    const args = ['diff-tree', '-r', '-z', '--raw', '--no-renames', '--diff-filter=d', from, to]
    const fields = (await this.run(args)).toString('latin1').split('\0')
    for (let i = 0; i + 1 < fields.length; i += 2) {
      const [, mode] = (fields[i] ?? '').split(' ')
      coming[mode === '160000' ? 'modules' : 'files'].push(fields[i + 1] ?? '')
    }
    return coming
  }

  /** Lays a stored tree out in a folder that is empty. Throws `checkpoint-torn` when a file is not as stored afterwards (F45). */
  async lay(tree: string): Promise<void> {
    this.#known = undefined
    await this.run(['read-tree', '--reset', '-u', '--no-recurse-submodules', tree], {
      timeout_ms: LAY_TIMEOUT_MS,
    })
    const differing = await this.#differingFiles()
    if (differing.length > 0) {
      throw new BatonError('checkpoint-torn', `(not as stored: ${listPaths(differing)})`)
    }
  }

  /**
   * Makes the files equal tree `to`, which are stored as `from`: writes what differs, removes what only `from` has. `refused`: a file is
   * not as stored any more, or there is a new one in its place; nothing was touched. `differs`: a file is not as stored
   * afterwards, those in `left` aside.
   */
  async layOver(from: string, to: string, left: readonly string[]): Promise<LaidOver> {
    this.#known = undefined
    const args = ['read-tree', '-m', '-u', '--no-recurse-submodules', from, to]
    const options = { cwd: this.root, env: this.#env, timeout_ms: LAY_TIMEOUT_MS }
    const result = await this.#git.run(args, options)
    if (result.code !== 0) {
      if (REFUSAL.test(result.stderr)) return { is: 'refused' }
      throw failure(args, result)
    }
    const except = new Set(left)
    if ((await this.#differingFiles()).some((path) => !except.has(path))) return { is: 'differs' }
    // Git only warns of what it can not delete, and forgets it.
    const deleted = /unable to unlink/.test(result.stderr) ? await this.differing(from, to, 'D') : []
    return { is: 'laid', undeleted: [...(await sizesOf(this.root, deleted)).keys()] }
  }

  /** The first tree, with some paths as the second has them. */
  async treeWith(tree: string, other: string, paths: readonly string[]): Promise<string> {
    if (paths.length === 0) return tree
    const env = { GIT_INDEX_FILE: `${this.#index}.with` }
    try {
      await this.run(['read-tree', tree], { env })
      await this.run(['update-index', '--force-remove', '-z', '--stdin'], { input: joinPaths(paths), env })
      const wanted = new Set(paths)
      const lines = splitPaths(await this.run(['ls-tree', '-r', '-z', '--full-tree', other])).filter((line) =>
        wanted.has(line.slice(line.indexOf('\t') + 1)),
      )
      const input = joinPaths(lines)
      await this.run(['update-index', '--replace', '-z', '--index-info'], { input, env })
      return await this.text(['write-tree'], { env })
    } finally {
      await rm(env.GIT_INDEX_FILE, { force: true })
    }
  }

  async #differingFiles(): Promise<string[]> {
    return splitPaths(await this.run(['diff-files', '-z', '--name-only', '--ignore-submodules=all']))
  }

  /** Brings the index up to the files. */
  async #update(): Promise<Omit<Stored, 'tree'>> {
    const [changed, others] = await Promise.all([this.#files.changed(), this.#files.others()])
    const within = await this.#files.filesIn(others.folders)
    const fresh = await withoutStrays(this.root, [...others.files, ...within.files], this.#since)
    const wanted = await sizesOf(this.root, [...changed.written, ...fresh])
    const large = takeLarge(wanted)
    await this.#checkRoom(wanted)
    if (changed.gone.length > 0) {
      const nothing = '0'.repeat(this.#oidLength)
      const lines = changed.gone.map((path) => `0 ${nothing}\t${path}\0`).join('')
      await this.run(['update-index', '-z', '--index-info'], { input: Buffer.from(lines, 'latin1') })
    }
    const paths = [...wanted.keys(), ...changed.modules]
    if (paths.length > 0) {
      const args = ['update-index', '--add', '--remove', '--replace', '-z', '--stdin']
      await this.run(args, { input: joinPaths(paths), timeout_ms: STORE_TIMEOUT_MS })
    }
    for (const path of within.nested) await this.#openNested(path)
    // What is left of the folders now holds no file that is stored.
    const bare =
      within.files.length > 0 || within.nested.length > 0
        ? (await this.#files.others()).folders
        : others.folders
    const closed = [...new Set([...others.closed, ...within.closed])]
    return { empty: await this.#files.emptyIn(bare), large, closed }
  }

  /** Lists the files of a nested repository one by one; then git takes the folder for an ordinary one. */
  async #openNested(path: string): Promise<void> {
    if (!isText(path)) return
    const within = await this.#git.run(['ls-files', '-co', '--exclude-standard', '-z'], {
      cwd: join(this.root, shownPath(path)),
      env: OFFLINE,
    })
    await this.include(splitPaths(within.stdout).map((file) => `${path}/${file}`))
  }

  /** Large files need room before they are stored, so that the disk is not filled in vain. */
  async #checkRoom(sizes: ReadonlyMap<string, number>): Promise<void> {
    let bytes = 0
    for (const size of sizes.values()) if (size >= NOTED_BYTES) bytes += size
    if (bytes === 0) return
    const disk = await statfs(this.#objects)
    const free = disk.bavail * disk.bsize
    if (bytes + NOTED_BYTES <= free) return
    const words = `${megabytes(bytes)} of large files to store, ${megabytes(free)} free`
    throw new BatonError('disk-full', `(${this.#objects}: ${words})`)
  }
}

/** Changes whenever the file is replaced or written. */
export async function stampOf(path: string): Promise<string> {
  const info = await stat(path, { bigint: true }).catch(() => undefined)
  return info ? `${info.ino}:${info.size}:${info.mtimeNs}` : 'none'
}
