/** The files of a virtual workspace as tools use them. */
import { posix } from 'node:path'
import { BatonError } from '@baton/shared/errors.ts'
import { Refusal } from '../tools/define.ts'
import { FILE_BYTES } from '../tools/files.ts'
import type { Found, Search } from '../tools/git-search.ts'
import type { Listing } from '../tools/listing.ts'
import type { InnerPath } from '../tools/paths.ts'
import type { SessionFiles } from '../tools/session-files.ts'
import { searchTree } from './search.ts'
import { Shell, type Ran } from './shell.ts'
import { assertCarried, withChange, type Node, type Tree } from './tree.ts'
import { ROOT } from './root.ts'

const LINES_MAX = 2_000
const HIDDEN = new Set(['.git', 'node_modules'])
const LINKS_MAX = 40
const FILE_MODE = 0o644
const FOLDER_MODE = 0o755

export class VirtualFiles implements SessionFiles {
  #tree: Tree
  readonly #shell = new Shell()
  /** One change at a time, and none before the one before it is part of a checkpoint; see `change`. */
  #last: Promise<void> = Promise.resolve()
  #captured = (): void => undefined
  #isOver = false

  constructor(tree: Tree) {
    this.#tree = tree
  }

  get tree(): Tree {
    return this.#tree
  }

  /** Gives the tree for a checkpoint. What waits to change it goes on. */
  capture(): Tree {
    this.#captured()
    return this.#tree
  }

  async place(path: string, use: 'read' | 'write'): Promise<InnerPath> {
    if (path.includes('\0')) throw new Refusal('The path contains a NUL character. Give a path without it.')
    const asked = posix.resolve(ROOT, path)
    const real = this.#follow(asked, path)
    if (real !== ROOT && !real.startsWith(`${ROOT}/`)) {
      const todo = 'Use a path inside the workspace, relative to its root.'
      throw new Refusal(`${path} leads out of the workspace. ${todo}`, 'outside-workspace')
    }
    const node = this.#tree.get(inner(real))
    if (use === 'write' && node?.type === 'link')
      throw new Refusal(`${path} is a link to something that does not exist.`)
    return { real, shown: posix.relative(ROOT, asked) || '.' }
  }

  async read({ real, shown }: InnerPath): Promise<Buffer | undefined> {
    const node = this.#tree.get(inner(real))
    if (real === ROOT || node?.type === 'folder')
      throw new Refusal(`${shown} is a folder. List it with glob: ${shown}/*`)
    if (node?.type !== 'file') return undefined
    if (node.bytes.length > FILE_BYTES) {
      const size = `${(node.bytes.length / (1 << 20)).toFixed(1)} MB`
      throw new Refusal(
        `${shown} is too large (${size}). Use grep, or bash with sed -n 'FROM,TOp'.`,
        'too-large',
      )
    }
    return Buffer.from(node.bytes)
  }

  async replace({ real, shown }: InnerPath, bytes: Uint8Array): Promise<void> {
    const path = inner(real)
    const set: [string, Node][] = []
    for (let folder = posix.dirname(path); folder !== '.'; folder = posix.dirname(folder)) {
      const node = this.#tree.get(folder)
      if (node && node.type !== 'folder')
        throw new Refusal(`A part of the path ${shown} is a file, not a folder.`)
      if (!node) set.push([folder, { type: 'folder', mode: FOLDER_MODE }])
    }
    const before = this.#tree.get(path)
    if (real === ROOT || before?.type === 'folder') throw new Refusal(`${shown} is a folder.`)
    const mode = before?.type === 'file' ? before.mode : FILE_MODE
    this.#take(
      withChange(this.#tree, {
        set: [...set, [path, { type: 'file', mode, bytes: Uint8Array.from(bytes) }]],
        removed: [],
      }),
    )
  }

  async list({ real }: InnerPath): Promise<Listing | undefined> {
    if (real !== ROOT && this.#tree.get(inner(real))?.type !== 'folder') return undefined
    return { paths: this.#under(real).map(({ path }) => path), isThere: async () => true }
  }

  async search(search: Search, { real, shown }: InnerPath, signal: AbortSignal): Promise<Found> {
    const node = this.#tree.get(inner(real))
    const isFolder = real === ROOT || node?.type === 'folder'
    if (!isFolder && node?.type !== 'file') throw new Refusal(`There is no file or folder ${shown}.`)
    const below = isFolder ? this.#under(real) : []
    const prefix = shown === '.' ? '' : `${shown}/`
    const files =
      node?.type === 'file'
        ? [{ shown, path: posix.basename(shown), bytes: node.bytes }]
        : below.flatMap(({ path, node: file }) =>
            file.type === 'file' ? [{ shown: prefix + path, path, bytes: file.bytes }] : [],
          )
    return searchTree({ search, files, lines_max: LINES_MAX }, signal)
  }

  /** Files and links below a folder, by path; what is installed is left out, as on a disk without git. */
  #under(real: string): { path: string; node: Node }[] {
    const prefix = real === ROOT ? '' : `${inner(real)}/`
    return [...this.#tree]
      .filter(([path, node]) => node.type !== 'folder' && path.startsWith(prefix))
      .map(([path, node]) => ({ path: path.slice(prefix.length), node }))
      .filter(
        ({ path }) =>
          !path
            .split('/')
            .slice(0, -1)
            .some((part) => HIDDEN.has(part)),
      )
      .toSorted((a, b) => (a.path < b.path ? -1 : 1))
  }

  /**
   * A change begins only when the checkpoint with the one before it has been taken. So the checkpoint that lands together with the
   * outcome of a call holds this call and none that is not over: after a crash the next call runs again on just these files.
   */
  async change<T>(work: () => Promise<T>): Promise<T> {
    const before = this.#last
    let done = (): void => undefined
    this.#last = new Promise<void>((resolve) => (done = resolve))
    await before
    if (this.#isOver) throw new BatonError('stopped')
    const tree = this.#tree
    try {
      return await work()
    } finally {
      if (this.#tree !== tree && !this.#isOver) this.#captured = done
      else done()
    }
  }

  /** Runs a command line. Only one that comes to its own end changes files. */
  async run(command: string, timeout_ms: number, signal: AbortSignal): Promise<Ran> {
    const ran = await this.#shell.run(command, this.#tree, timeout_ms, signal)
    if (ran.by === 'exit' && ran.change.set.length + ran.change.removed.length > 0)
      this.#take(withChange(this.#tree, ran.change))
    return ran
  }

  async end(): Promise<void> {
    this.#isOver = true
    this.#captured()
    await this.#shell.end()
  }

  #take(tree: Tree): void {
    try {
      assertCarried(tree)
    } catch (error) {
      if (error instanceof BatonError) throw new Refusal(`${error.message} Nothing was changed.`, error.code)
      throw error
    }
    this.#tree = tree
  }

  /** Follows links, of folders on the way and of the file itself. */
  #follow(asked: string, shown: string): string {
    let rest = asked.split('/').filter((part) => part !== '')
    let real = ''
    for (let links = 0; rest.length > 0;) {
      const [part = '', ...more] = rest
      const node = this.#tree.get(inner(`${real}/${part}`))
      rest = more
      if (node?.type !== 'link') {
        real = `${real}/${part}`
        continue
      }
      if (++links > LINKS_MAX) throw new Refusal(`${shown} is a link to itself.`)
      const target = posix.resolve(real === '' ? '/' : real, node.target)
      rest = [...target.split('/').filter((step) => step !== ''), ...rest]
      real = ''
    }
    return real === '' ? '/' : real
  }
}

function inner(real: string): string {
  return real.startsWith(`${ROOT}/`) ? real.slice(ROOT.length + 1) : ''
}
