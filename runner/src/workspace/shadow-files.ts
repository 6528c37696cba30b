/** Which files of a work tree differ from what a shadow's index lists, and which it does not list. Only names are looked at, and stat. */
import { readdir } from 'node:fs/promises'
import { fullPath, isText, shownPath, splitPaths } from './byte-paths.ts'
import type { GitOptions } from './git-program.ts'

const LOOK_TIMEOUT_MS = 600_000
/** Folders named in one command line. */
const FOLDERS_AT_ONCE = 500
const EMPTY_MAX = 10_000
/** How git passes over a folder; its words end somewhere in a long path. */
const CLOSED = /^warning: could not open directory '(.*?)\/?(?:': (.*))?$/gm

export class ShadowFiles {
  readonly #root: string
  readonly #run: (args: string[], options?: Omit<GitOptions, 'cwd'>) => Promise<Buffer>

  /** `run`: git, with the shadow's folder as its own. */
  constructor(root: string, run: (args: string[], options?: Omit<GitOptions, 'cwd'>) => Promise<Buffer>) {
    this.#root = root
    this.#run = run
  }

  /** Files that the index lists and that may differ from it. */
  async changed(): Promise<{ written: string[]; gone: string[]; modules: string[] }> {
    const args = ['diff-files', '--raw', '-z', '--no-renames', '--no-abbrev', '--ignore-submodules=dirty']
    const fields = (await this.#run(args)).toString('latin1').split('\0')
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

  /**
   * Files that the index does not list and that are not ignored; whole folders of them as one. `closed`: paths of folders, as text, that
   * could not be looked into.
   */
  async others(): Promise<{ files: string[]; folders: string[]; closed: string[] }> {
    const args = ['ls-files', '-z', '--others', '--directory', '--exclude-standard']
    const closed: string[] = []
    const paths = splitPaths(await this.#run(args, looking(closed)))
    return {
      closed,
      files: paths.filter((path) => !path.endsWith('/')),
      folders: paths.filter((path) => path.endsWith('/')).map((path) => path.slice(0, -1)),
    }
  }

  /** `nested`: repositories below the folders, or the folders themselves. `closed`: as above. */
  async filesIn(
    folders: readonly string[],
  ): Promise<{ files: string[]; nested: string[]; closed: string[] }> {
    const closed: string[] = []
    const paths = await this.#listIn(folders, ['--others', '--exclude-standard'], closed)
    return {
      closed,
      files: paths.filter((path) => !path.endsWith('/')),
      nested: paths.filter((path) => path.endsWith('/')).map((path) => path.slice(0, -1)),
    }
  }

  async #listIn(folders: readonly string[], options: string[], closed: string[] = []): Promise<string[]> {
    const paths: string[] = []
    const args = ['ls-files', '-z', ...options, '--']
    const limits = looking(closed)
    // A command line is text: a name that is none can't be put on it.
    if (!folders.every(isText)) return splitPaths(await this.#run(args, limits))
    for (let at = 0; at < folders.length; at += FOLDERS_AT_ONCE) {
      const specs = folders.slice(at, at + FOLDERS_AT_ONCE).map((path) => `:(literal)${shownPath(path)}`)
      paths.push(...splitPaths(await this.#run([...args, ...specs], limits)))
    }
    return paths
  }

  /** Empty folders in folders that hold no file that is stored. */
  async emptyIn(folders: readonly string[]): Promise<string[]> {
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
      const entries = await namesIn(fullPath(this.#root, path))
      if (entries?.length === 0) empty.push(path)
      if (!entries || entries.some(({ name }) => name === '.git')) return
      for (const entry of entries) if (entry.isFolder) await look(`${path}/${entry.name}`)
    }
    for (const path of some) await look(path)
    return empty.toSorted()
  }
}

function looking(closed: string[]): Omit<GitOptions, 'cwd'> {
  const warned = (words: string): void => {
    for (const [, path = '', why] of words.matchAll(CLOSED)) {
      // It went meanwhile.
      if (why !== 'No such file or directory') closed.push(path)
    }
  }
  return { timeout_ms: LOOK_TIMEOUT_MS, warned }
}

async function namesIn(folder: Buffer): Promise<{ name: string; isFolder: boolean }[] | undefined> {
  const entries = await readdir(folder, { encoding: 'buffer', withFileTypes: true }).catch(() => undefined)
  return entries?.map((entry) => ({ name: entry.name.toString('latin1'), isFolder: entry.isDirectory() }))
}
