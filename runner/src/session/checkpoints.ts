/** Checkpoints at the relay: packs of the workspace as sealed blobs, each relative to the one before. */
import type { BlobStore } from '@baton/shared/blobs.ts'
import { BatonError } from '@baton/shared/errors.ts'
import type { CheckpointEntry } from '@baton/shared/journal.ts'
import { LIMITS } from '@baton/shared/protocol.ts'
import { tipOf, type Checkpoint, type PackFile, type Pieces, type Workspace } from '../workspace/workspace.ts'
import type { Draft } from './journal.ts'

/** Well under the relay's limit for a blob, sealing included. */
const PIECE_BYTES = 8 << 20
const PACKS_MAX = 40
const BYTES_MAX = LIMITS.entry_blobs * PIECE_BYTES
/** Pieces that are fetched ahead. */
const AHEAD = 2

export class Checkpoints {
  readonly #blobs: BlobStore
  readonly #sid: string
  readonly #key: Uint8Array
  readonly #tell: (sentence: string) => void
  #last: CheckpointEntry | undefined
  /** Taken from the workspace but not confirmed by the relay: the workspace will not tell of it again. */
  #unsent: Checkpoint | undefined
  /** One at a time, in order: each pack is relative to the one before. */
  #queue: Promise<unknown> = Promise.resolve()

  /** `tell`: takes what the person should know about files that do not travel. */
  constructor(
    blobs: BlobStore,
    sid: string,
    key: Uint8Array,
    last: CheckpointEntry | undefined,
    tell: (sentence: string) => void = () => undefined,
  ) {
    this.#blobs = blobs
    this.#sid = sid
    this.#key = key
    this.#last = last
    this.#tell = tell
  }

  /** Stores the workspace's state; resolves with the entry to write, or undefined when nothing changed. */
  store(workspace: Workspace): Promise<Draft | undefined> {
    const stored = this.#queue
      .then(() => this.#store(workspace))
      .catch(async (error: unknown) => {
        // Another runner may go on from the checkpoint before, and then it has the say.
        if (!(error instanceof BatonError) || error.code !== 'lease-lost') await workspace.hold?.()
        throw error
      })
    this.#queue = stored.catch(() => undefined)
    return stored
  }

  /** Resolves when nothing is being stored. */
  async settled(): Promise<void> {
    await this.#queue
  }

  /** The packs of a checkpoint, in order, fetched when they are read. Reading throws BatonError `no-blob`, `bad-blob`. */
  packs(entry: CheckpointEntry): Pieces[] {
    return entry.packs.map(({ blobs, bytes }) => ({ bytes, pieces: () => this.#fetch(blobs, bytes) }))
  }

  async *#fetch(blobs: readonly string[], bytes: number): AsyncGenerator<Uint8Array> {
    const coming: Promise<Uint8Array>[] = []
    let got = 0
    for (let at = 0; at < blobs.length; at++) {
      for (const hash of blobs.slice(at + coming.length, at + 1 + AHEAD)) {
        const piece = this.#blobs.get(this.#sid, this.#key, hash)
        // Awaited below; when an earlier one fails, nobody is left to hear of it.
        piece.catch(() => undefined)
        coming.push(piece)
      }
      const piece = await coming.shift()
      if (!piece) break
      got += piece.length
      yield piece
    }
    if (got !== bytes) throw new BatonError('bad-blob', `(a pack of ${bytes} bytes)`)
  }

  async #store(workspace: Workspace): Promise<Draft | undefined> {
    const checkpoint = (await workspace.checkpoint()) ?? this.#unsent
    for (const sentence of workspace.left?.() ?? []) this.#tell(sentence)
    if (!checkpoint) return undefined
    this.#unsent = checkpoint
    const { before, pack } = await this.#pack(workspace, tipOf(checkpoint))
    const blobs: string[] = []
    try {
      for await (const piece of pack.pieces(PIECE_BYTES)) {
        blobs.push(await this.#blobs.put(this.#sid, this.#key, piece))
      }
    } finally {
      await pack.discard()
    }
    const packs = [...before, { blobs, bytes: pack.bytes }]
    const body: CheckpointEntry = { ...checkpoint, packs }
    this.#last = body
    this.#unsent = undefined
    return { kind: 'checkpoint', body, blobs: packs.flatMap((one) => one.blobs) }
  }

  /** What the reader lacks. A long or large chain is replaced by one whole pack, so that a new machine does not unpack a hundred. */
  async #pack(
    workspace: Workspace,
    tip: string,
  ): Promise<{ before: CheckpointEntry['packs']; pack: PackFile }> {
    const before = this.#last?.packs ?? []
    const room = BYTES_MAX - PIECE_BYTES * before.flatMap((one) => one.blobs).length
    if (this.#last && before.length < PACKS_MAX && room > 0) {
      try {
        return { before, pack: await workspace.pack(tip, tipOf(this.#last), room) }
      } catch (error) {
        if (!(error instanceof BatonError) || error.code !== 'too-large') throw error
      }
    }
    return { before: [], pack: await workspace.pack(tip, undefined, BYTES_MAX) }
  }
}
