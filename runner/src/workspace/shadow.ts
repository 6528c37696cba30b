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
import { copyFile, mkdir, readdir, readFile, rm, stat, statfs, writeFile } from 'node:fs/promises'
import { isAbsolute, join, relative } from 'node:path'
import { BatonError } from '@baton/shared/errors.ts'
import { fullPath, isText, joinPaths, listPaths, shownPath, splitPaths } from './byte-paths.ts'
import { failure, gitEnvironment, OFFLINE, type GitOptions, type GitProgram } from './git-program.ts'
import type { Coming } from './in-the-way.ts'
import { megabytes } from './megabytes.ts'
import type { Repository } from './repository.ts'
import { withoutStrays } from './strays.ts'
import { sizesOf, takeLarge, type Large } from './sizes.ts'

/** Files as they are, whatever `.gitattributes` says; nothing is run for it. */
export const RAW_ATTRIBUTES = '* -text -ident -filter !eol !working-tree-encoding !crlf\n'
/** Files may vanish or grow while git reads them, when something runs in the background. */
const STORE_TRIES = 4
const STORE_TIMEOUT_MS = 600_000
/** Folders named in one command line. */
const FOLDERS_AT_ONCE = 500
const EMPTY_MAX = 10_000
/** From this size on it is looked whether there is room for a file. */
const NOTED_BYTES = 16 << 20
/** Secrets stay where they are, unless the person names the file. What git tracks travels all the same. */
const ALWAYS_IGNORED = ['.env']

export interface Stored {
  tree: string
  /** Empty folders; git has no place for them. */
  empty: string[]
  /** Files that are too large to travel. */
  large: Large[]
}

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
  }

  /**
   * Creates the folder's files, or freshens them; the index is left. `hide`: absolute path never stored, e.g. the data folder.
   * `ignore`: further patterns.
   */
  async prepare(repository: Repository, hide: string, ignore: readonly string[] = []): Promise<void> {
    await mkdir(join(this.dir, 'info'), { recursive: true })
    await Promise.all([
      mkdir(join(this.dir, 'refs'), { recursive: true }),
      mkdir(join(this.dir, 'objects'), { recursive: true }),
    ])
    const inside = relative(this.root, hide)
    const hidden =
      inside === '' || inside.startsWith('..') || isAbsolute(inside) ? '' : `/${escapePattern(inside)}/\n`
    const ignored = await readFile(join(repository.common, 'info', 'exclude'), 'utf8').catch(() => '')
    const shallow = await readFile(join(repository.common, 'shallow'), 'utf8').catch(() => '')
    await Promise.all([
      writeFile(join(this.dir, 'HEAD'), 'ref: refs/heads/none\n'),
      writeFile(join(this.dir, 'config'), await this.#settings(repository)),
      writeFile(join(this.dir, 'info', 'attributes'), RAW_ATTRIBUTES),
      writeFile(
        join(this.dir, 'info', 'exclude'),
        [ignored, ...ALWAYS_IGNORED, ...ignore, hidden].join('\n'),
      ),
      shallow === ''
        ? rm(join(this.dir, 'shallow'), { force: true })
        : writeFile(join(this.dir, 'shallow'), shallow),
      this.unlock(),
    ])
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
        const { empty, large } = await this.#update()
        return { tree: await this.tree(), empty, large }
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
  async layOver(from: string, to: string, left: readonly string[]): Promise<'laid' | 'refused' | 'differs'> {
    this.#known = undefined
    const args = ['read-tree', '-m', '-u', '--no-recurse-submodules', from, to]
    const options = { cwd: this.root, env: this.#env, timeout_ms: LAY_TIMEOUT_MS }
    const result = await this.#git.run(args, options)
    if (result.code !== 0) {
      if (REFUSAL.test(result.stderr)) return 'refused'
      throw failure(args, result)
    }
    const except = new Set(left)
    return (await this.#differingFiles()).some((path) => !except.has(path)) ? 'differs' : 'laid'
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
  async #update(): Promise<{ empty: string[]; large: Large[] }> {
    const [changed, others] = await Promise.all([this.#changed(), this.#others()])
    const within = await this.#filesIn(others.folders)
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
      within.files.length > 0 || within.nested.length > 0 ? (await this.#others()).folders : others.folders
    return { empty: await this.#emptyIn(bare), large }
  }

  /** Files that the index lists and that may differ from it. */
  async #changed(): Promise<{ written: string[]; gone: string[]; modules: string[] }> {
    const args = ['diff-files', '--raw', '-z', '--no-renames', '--no-abbrev', '--ignore-submodules=dirty']
    const fields = (await this.run(args)).toString('latin1').split('\0')
    const found = { written: [] as string[], gone: [] as string[], modules: [] as string[] }
    for (let i = 0; i + 1 < fields.length; i += 2) {
      const [, mode] = (fields[i] ?? '').split(' ')
      const path = fields[i + 1] ?? ''
      if (mode === '000000') found.gone.push(path)
      else if (mode === '160000') found.modules.push(path)
      else found.written.push(path)
    }
    return found
  }

  /** Files that the index does not list and that are not ignored; whole folders of them as one. */
  async #others(): Promise<{ files: string[]; folders: string[] }> {
    const args = ['ls-files', '-z', '--others', '--directory', '--exclude-standard']
    const paths = splitPaths(await this.run(args, { timeout_ms: STORE_TIMEOUT_MS }))
    return {
      files: paths.filter((path) => !path.endsWith('/')),
      folders: paths.filter((path) => path.endsWith('/')).map((path) => path.slice(0, -1)),
    }
  }

  /** `nested`: repositories below the folders, or the folders themselves. */
  async #filesIn(folders: readonly string[]): Promise<{ files: string[]; nested: string[] }> {
    const paths = await this.#listIn(folders, ['--others', '--exclude-standard'])
    return {
      files: paths.filter((path) => !path.endsWith('/')),
      nested: paths.filter((path) => path.endsWith('/')).map((path) => path.slice(0, -1)),
    }
  }

  async #listIn(folders: readonly string[], options: string[]): Promise<string[]> {
    const paths: string[] = []
    const args = ['ls-files', '-z', ...options, '--']
    const limits = { timeout_ms: STORE_TIMEOUT_MS }
    // A command line is text: a name that is none can't be put on it.
    if (!folders.every(isText)) return splitPaths(await this.run(args, limits))
    for (let at = 0; at < folders.length; at += FOLDERS_AT_ONCE) {
      const specs = folders.slice(at, at + FOLDERS_AT_ONCE).map((path) => `:(literal)${shownPath(path)}`)
      paths.push(...splitPaths(await this.run([...args, ...specs], limits)))
    }
    return paths
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

  /** Empty folders in folders that hold no file that is stored. */
  async #emptyIn(folders: readonly string[]): Promise<string[]> {
    if (folders.length === 0) return []
    const some = folders.slice(0, EMPTY_MAX)
    const ignored = new Set(
      (await this.#listIn(some, ['--others', '--ignored', '--directory', '--exclude-standard'])).map((path) =>
        path.replace(/\/$/, ''),
      ),
    )
    const empty: string[] = []
    const look = async (path: string): Promise<void> => {
      if (ignored.has(path) || empty.length >= EMPTY_MAX) return
      const entries = await namesIn(fullPath(this.root, path))
      if (entries?.length === 0) empty.push(path)
      if (!entries || entries.some(({ name }) => name === '.git')) return
      for (const entry of entries) if (entry.isFolder) await look(`${path}/${entry.name}`)
    }
    for (const path of some) await look(path)
    return empty.toSorted()
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

  async #settings(repository: Repository): Promise<string> {
    const [excludes, quirks] = await Promise.all([
      this.#personalExcludes(),
      this.#git.run(['config', '--local', '--get-regexp', '^core\\.(ignorecase|precomposeunicode)$'], {
        cwd: repository.common,
      }),
    ])
    const sha256 = repository.format === 'sha256'
    const lines = ['[core]', `repositoryformatversion = ${sha256 ? 1 : 0}`, 'bare = false']
    for (const line of quirks.stdout.toString('utf8').split('\n')) {
      const [name, value] = line.split(' ')
      if (name?.startsWith('core.') && value) lines.push(`${name.slice('core.'.length)} = ${value}`)
    }
    if (excludes !== undefined) lines.push(`excludesFile = ${JSON.stringify(excludes)}`)
    if (sha256) lines.push('[extensions]', 'objectFormat = sha256')
    return `${lines.join('\n')}\n`
  }

  /** What this person ignores everywhere (`.DS_Store`, `.idea`) is not part of the work. */
  async #personalExcludes(): Promise<string | undefined> {
    const { HOME, XDG_CONFIG_HOME } = gitEnvironment()
    if (HOME === undefined) return undefined
    const result = await this.#git.run(['config', '--global', '--type=path', '--get', 'core.excludesFile'], {
      cwd: this.dir,
      env: { GIT_CONFIG_GLOBAL: join(HOME, '.gitconfig') },
    })
    const named = result.code === 0 ? result.stdout.toString('utf8').trim() : ''
    return named || join(XDG_CONFIG_HOME ?? join(HOME, '.config'), 'git', 'ignore')
  }
}

async function namesIn(folder: Buffer): Promise<{ name: string; isFolder: boolean }[] | undefined> {
  const entries = await readdir(folder, { encoding: 'buffer', withFileTypes: true }).catch(() => undefined)
  return entries?.map((entry) => ({ name: entry.name.toString('latin1'), isFolder: entry.isDirectory() }))
}

/** Changes whenever the file is replaced or written. */
export async function stampOf(path: string): Promise<string> {
  const info = await stat(path, { bigint: true }).catch(() => undefined)
  return info ? `${info.ino}:${info.size}:${info.mtimeNs}` : 'none'
}

/** A path as an ignore pattern that means only itself. */
function escapePattern(path: string): string {
  return path.replaceAll(/[\\*?[\]!# ]/g, '\\$&')
}
