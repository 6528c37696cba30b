/**
 * A workspace whose files live in the session: no folder on any machine, and a shell by just-bash that reaches none. `virtual`
 * ones are stored as other checkpoints are, each pack holding what has changed since the one before; `scratch` ones are not.
 */
import { randomBytes } from 'node:crypto'
import { BatonError } from '@baton/shared/errors.ts'
import type { Stay } from '../tools/stay.ts'
import { packOf } from '../workspace/pack-file.ts'
import type { Checkpoint, PackFile, Pieces, Workspace, WorkspaceAbout } from '../workspace/workspace.ts'
import { VirtualFiles } from './files.ts'
import { packChange, unpackChange } from './pack.ts'
import { ROOT } from './root.ts'
import type { ScratchTree } from './scratch.ts'
import { changeBetween, digestOf, withChange, type Tree } from './tree.ts'

export type VirtualKind = 'virtual' | 'scratch'

/** What a start command names instead of a folder. */
export function isVirtual(folder: string): folder is VirtualKind {
  return folder === 'virtual' || folder === 'scratch'
}

const EMPTY: Tree = new Map()
/** Trees that packs may be relative to. */
const KNOWN_MAX = 4
const PIECE_BYTES = 8 << 20

export class VirtualWorkspace implements Workspace {
  readonly root = ROOT
  readonly stay: Stay
  readonly #scratch: ScratchTree | undefined
  readonly #files: VirtualFiles
  /** Trees of the newest checkpoints by their name, the newest last. */
  readonly #known = new Map<string, Tree>()
  #stored: { name: string; tree: Tree } | undefined

  private constructor(
    tree: Tree,
    name: string | undefined,
    scratch: ScratchTree | undefined,
    notices: readonly string[],
  ) {
    this.#scratch = scratch
    this.#files = new VirtualFiles(tree)
    if (name !== undefined) this.#remember(name, tree)
    this.stay = { notices, files: this.#files, end: () => this.#files.end() }
  }

  static open(): VirtualWorkspace {
    return new VirtualWorkspace(EMPTY, undefined, undefined, [])
  }

  /** `name`: of the checkpoint to go back to, if its files are still here. */
  static scratch(scratch: ScratchTree, notices: readonly string[], name?: string): VirtualWorkspace {
    const tree = name === undefined ? undefined : scratch.tree(name)
    return new VirtualWorkspace(tree ?? EMPTY, tree ? name : undefined, scratch, notices)
  }

  /** Throws BatonError `checkpoint-torn` when the packs do not yield what the checkpoint names (F45). */
  static async restore(
    checkpoint: Pick<Checkpoint, 'commit'>,
    packs: readonly Pieces[],
  ): Promise<VirtualWorkspace> {
    let tree = EMPTY
    for (const pack of packs) tree = withChange(tree, unpackChange(await bytesOf(pack)))
    if (digestOf(tree) !== checkpoint.commit)
      throw new BatonError('checkpoint-torn', '(files of the session)')
    return new VirtualWorkspace(tree, checkpoint.commit, undefined, [])
  }

  get files(): VirtualFiles {
    return this.#files
  }

  async checkpoint(): Promise<Checkpoint | undefined> {
    const tree = this.#files.capture()
    if (tree === this.#stored?.tree) return undefined
    const name = this.#scratch ? randomBytes(32).toString('hex') : digestOf(tree)
    if (name === this.#stored?.name) return undefined
    this.#remember(name, tree)
    this.#scratch?.keep(name, tree)
    return { kind: 'virtual', commit: name, tree: name, head: '', branch: '' }
  }

  #remember(name: string, tree: Tree): void {
    this.#stored = { name, tree }
    this.#known.delete(name)
    this.#known.set(name, tree)
    const [oldest] = this.#known.keys()
    if (this.#known.size > KNOWN_MAX && oldest !== undefined) this.#known.delete(oldest)
  }

  /** What makes `tip` of `since`. Throws BatonError `too-large` when that is too much, or `since` is not known any more. */
  async pack(tip: string, since: string | undefined, bytes_max: number): Promise<PackFile> {
    if (this.#scratch) return packOf(packChange({ set: [], removed: [] }))
    const after = this.#known.get(tip)
    const before = since === undefined ? EMPTY : this.#known.get(since)
    if (!after) throw new BatonError('internal', `(no checkpoint ${tip})`)
    if (!before) throw new BatonError('too-large', '(no checkpoint to start from)')
    const bytes = packChange(changeBetween(before, after))
    if (bytes.length > bytes_max) throw new BatonError('too-large', '(files of the session)')
    return packOf(bytes)
  }

  async about(): Promise<WorkspaceAbout> {
    return { path: ROOT, branch: '', platform: 'virtual' }
  }

  async close(): Promise<void> {
    await this.#files.end()
  }
}

async function bytesOf(pack: Pieces): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  for await (const piece of pack.pieces(PIECE_BYTES)) pieces.push(piece)
  return Buffer.concat(pieces)
}
