/**
 * A second git folder beside a session's work tree, through which its files are stored and laid out byte for byte.
 *
 * It borrows the repository's object store and has an index, settings and attributes of its own. So the person's index is never
 * touched, nothing of the repository's settings runs (filters, LFS, line endings, signing), and what `.gitattributes` says
 * about conversion is off: a file with CRLF or an LFS file travels as it lies on disk. The index stays between checkpoints, so
 * that `git add` reads only files whose stat changed, and so that a file that travelled once goes on travelling even where
 * the local ignore rules differ.
 *
 * What git can't store does not travel: empty folders, modes other than the executable bit, sockets and devices, the
 * content of submodules. A nested repository travels as plain files, without its history.
 */
import { lstat, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { isAbsolute, join, relative } from 'node:path'
import { BatonError } from '@baton/shared/errors.ts'
import { failure, gitEnvironment, type GitOptions, type GitProgram } from './git-program.ts'
import type { Repository } from './repository.ts'

const RAW_ATTRIBUTES = '* -text -ident -filter !eol !working-tree-encoding !crlf\n'
/** Files may vanish or grow while git reads them, when something runs in the background. */
const ADD_TRIES = 4
const LAY_TIMEOUT_MS = 600_000

export class Shadow {
  readonly dir: string
  readonly root: string
  readonly #git: GitProgram
  readonly #env: Record<string, string>
  readonly #index: string
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
    this.#env = {
      GIT_DIR: options.dir,
      GIT_WORK_TREE: options.root,
      GIT_OBJECT_DIRECTORY: options.repository.objects,
      GIT_INDEX_FILE: this.#index,
    }
  }

  /** Creates the folder's files, or freshens them; the index is left. `hide`: absolute path never stored, e.g. the data folder. */
  async prepare(repository: Repository, hide: string): Promise<void> {
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
      writeFile(join(this.dir, 'info', 'exclude'), `${ignored}\n${hidden}`),
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
  run(args: string[], options: Omit<GitOptions, 'cwd' | 'env'> = {}): Promise<Buffer> {
    return this.#git.bytes(args, { ...options, cwd: this.root, env: this.#env })
  }

  async text(args: string[], options: Omit<GitOptions, 'cwd' | 'env'> = {}): Promise<string> {
    return (await this.run(args, options)).toString('utf8').replace(/\n$/, '')
  }

  async exists(): Promise<boolean> {
    return (await stampOf(this.#index)) !== 'none'
  }

  /** Makes the index list the files of a commit or tree, without touching or reading any file. */
  async list(treeish: string): Promise<void> {
    await this.run(['read-tree', treeish])
    this.#known = undefined
  }

  /** Stores every file that is not ignored, and every file that the index lists. Returns the tree. */
  async store(): Promise<string> {
    await this.#add()
    // Git replaces the index by renaming whenever anything changed; the same file means the same tree.
    if (this.#known && this.#known.stamp === (await stampOf(this.#index))) return this.#known.tree
    const tree = await this.text(['write-tree'])
    this.#known = { stamp: await stampOf(this.#index), tree }
    return tree
  }

  /** Stores files although they may be ignored. Those that do not exist are passed over; false when that is all. */
  async include(paths: string[]): Promise<boolean> {
    const present: string[] = []
    for (const path of paths) {
      const info = await lstat(join(this.root, path)).catch(() => undefined)
      if (info && (info.isFile() || info.isSymbolicLink())) present.push(path)
    }
    if (present.length === 0) return false
    await this.run(['update-index', '--add', '-z', '--stdin'], { input: present.join('\0') })
    this.#known = undefined
    return true
  }

  /** Paths that the index lists. */
  async paths(): Promise<Set<string>> {
    return splitPaths(await this.run(['ls-files', '-z']))
  }

  /**
   * Makes the files equal a stored tree: writes what differs, removes what the index lists and the tree does not. Files that
   * the index does not list are left, unless the tree has something else there. Throws `checkpoint-torn` when a file is not
   * as stored afterwards (F45).
   */
  async lay(tree: string): Promise<void> {
    this.#known = undefined
    await this.run(['read-tree', '--reset', '-u', '--no-recurse-submodules', tree], {
      timeout_ms: LAY_TIMEOUT_MS,
    })
    const differing = await this.text(['diff-files', '--name-only', '--ignore-submodules=all'])
    if (differing !== '') {
      throw new BatonError(
        'checkpoint-torn',
        `(not as stored: ${differing.split('\n').slice(0, 3).join(', ')})`,
      )
    }
  }

  async #add(): Promise<void> {
    const args = ['-c', 'advice.addEmbeddedRepo=false', 'add', '-A', '--', '.']
    const empty: string[] = []
    for (let attempt = 1; ; attempt++) {
      const all = [...args, ...empty.map((path) => `:(exclude,literal)${path}`)]
      const result = await this.#git.run(all, { cwd: this.root, env: this.#env })
      const nested = nestedRepositories(result.stderr)
      if (result.code === 0 && nested.length === 0) return
      for (const path of nested) {
        // Once a file inside is listed, git takes the folder for an ordinary one.
        if (!(await this.#openNested(path))) empty.push(path)
      }
      if (nested.length > 0 && attempt < 64) continue
      const unreadable = /open\("(.*)"\): Permission denied/.exec(result.stderr)?.[1]
      if (unreadable !== undefined) throw new BatonError('workspace-unreadable', unreadable)
      const moving = /short read|unable to stat|file changed|No such file|unable to index file/i
      if (attempt >= ADD_TRIES || !moving.test(result.stderr)) throw failure(args, result)
    }
  }

  /** Lists the files of a nested repository one by one. False when there are none. */
  async #openNested(path: string): Promise<boolean> {
    const within = await this.#git.run(['ls-files', '-co', '--exclude-standard', '-z'], {
      cwd: join(this.root, path),
    })
    const files = [...splitPaths(within.stdout)].map((file) => `${path}/${file}`)
    await this.#git.run(['update-index', '--force-remove', '--', path], { cwd: this.root, env: this.#env })
    await this.include(files)
    return files.length > 0
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

export function splitPaths(output: Buffer): Set<string> {
  return new Set(
    output
      .toString('utf8')
      .split('\0')
      .filter((path) => path !== ''),
  )
}

function nestedRepositories(stderr: string): string[] {
  const found = stderr.matchAll(
    /^(?:warning: adding embedded git repository: (.+)|error: '(.+)\/' does not have a commit checked out)$/gm,
  )
  return [...new Set([...found].map((match) => match[1] ?? match[2] ?? ''))]
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
