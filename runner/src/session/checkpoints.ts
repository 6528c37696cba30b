/** Checkpoints at the relay: packs of the workspace as sealed blobs, each relative to the one before. */
import type { BlobStore } from '@baton/shared/blobs.ts'
import { BatonError } from '@baton/shared/errors.ts'
import { concat } from '@baton/shared/bytes.ts'
import type { CheckpointEntry } from '@baton/shared/journal.ts'
import { LIMITS } from '@baton/shared/protocol.ts'
import type { Checkpoint, Workspace } from '../workspace/workspace.ts'
import type { Draft } from './journal.ts'

/** Well under the relay's limit for a blob, sealing included. */
const PIECE_BYTES = 8 << 20
const PACKS_MAX = 40

export class Checkpoints {
  readonly #blobs: BlobStore
  readonly #sid: string
  readonly #key: Uint8Array
  #last: CheckpointEntry | undefined
  /** Taken from the workspace but not confirmed by the relay: the workspace will not tell of it again. */
  #unsent: Checkpoint | undefined
  /** One at a time, in order: each pack is relative to the one before. */
  #queue: Promise<unknown> = Promise.resolve()

  constructor(blobs: BlobStore, sid: string, key: Uint8Array, last: CheckpointEntry | undefined) {
    this.#blobs = blobs
    this.#sid = sid
    this.#key = key
    this.#last = last
  }

  /** Stores the workspace's state; resolves with the entry to write, or undefined when nothing changed. */
  store(workspace: Workspace): Promise<Draft | undefined> {
    const stored = this.#queue.then(() => this.#store(workspace))
    this.#queue = stored.catch(() => undefined)
    return stored
  }

  /** Resolves when nothing is being stored. */
  async settled(): Promise<void> {
    await this.#queue
  }

  /** The packs of a checkpoint, in order, each fetched when it is asked for. Reject with BatonError `no-blob`, `bad-blob`. */
  packs(entry: CheckpointEntry): (() => Promise<Uint8Array>)[] {
    return entry.packs.map((pack) => async () => {
      const pieces = await Promise.all(pack.blobs.map((hash) => this.#blobs.get(this.#sid, this.#key, hash)))
      const bytes = concat(...pieces)
      if (bytes.length !== pack.bytes) throw new BatonError('bad-blob', `(a pack of ${pack.bytes} bytes)`)
      return bytes
    })
  }

  async #store(workspace: Workspace): Promise<Draft | undefined> {
    const checkpoint = (await workspace.checkpoint()) ?? this.#unsent
    if (!checkpoint) return undefined
    this.#unsent = checkpoint
    // A long chain is replaced by one whole pack, so that a new machine does not unpack a hundred.
    const before = this.#last && this.#last.packs.length < PACKS_MAX ? this.#last : undefined
    const bytes = await workspace.pack(checkpoint.commit, before?.commit)
    const blobs: string[] = []
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      blobs.push(await this.#blobs.put(this.#sid, this.#key, bytes.subarray(at, at + PIECE_BYTES)))
    }
    const packs = [...(before?.packs ?? []), { blobs, bytes: bytes.length }]
    if (packs.flatMap((pack) => pack.blobs).length > LIMITS.entry_blobs) {
      throw new BatonError('too-large', '(the workspace has more than 2 GB to carry)')
    }
    const body: CheckpointEntry = { kind: 'git', ...checkpoint, packs }
    this.#last = body
    this.#unsent = undefined
    return { kind: 'checkpoint', body, blobs: packs.flatMap((pack) => pack.blobs) }
  }
}
