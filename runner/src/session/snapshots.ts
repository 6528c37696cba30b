/** Snapshots at the relay: stores the guest's pages as sealed blobs, in chains of bounded length, and fetches them back. */
import { createHash } from 'node:crypto'
import type { BlobStore } from '@baton/shared/blobs.ts'
import type { SnapshotEntry } from '@baton/shared/journal.ts'
import type { Harness, Snapshot } from '../harness.ts'

/** A restore reads the whole chain; a full snapshot every so often keeps it short. */
const CHAIN_MAX = 4

export class Snapshots {
  readonly #blobs: BlobStore
  readonly #sid: string
  readonly #key: Uint8Array
  /** From the snapshot relative to the baseline to the newest: hash of the file, hash of its sealed blob. */
  #chain: { file: string; blob: string }[] = []

  constructor(blobs: BlobStore, sid: string, key: Uint8Array) {
    this.#blobs = blobs
    this.#sid = sid
    this.#key = key
  }

  /** Fetches a snapshot's files, oldest first, ready for Harness.restore. */
  async fetch(entry: SnapshotEntry): Promise<Uint8Array[]> {
    const files = await Promise.all(entry.chain.map((blob) => this.#blobs.get(this.#sid, this.#key, blob)))
    this.#chain = files.map((file, i) => ({ file: hashOf(file), blob: entry.chain[i] ?? '' }))
    return files
  }

  /** Saves the paused guest; resolves when the relay has confirmed the blob by its hash (I8). `lean`: see SnapshotOptions. */
  async save(
    harness: Harness,
    lean = false,
  ): Promise<{ snapshot: Snapshot; chain: string[]; bytes: number }> {
    const snapshot = await harness.snapshot({ full: this.#chain.length >= CHAIN_MAX, lean })
    const blob = await this.#blobs.put(this.#sid, this.#key, snapshot.bytes)
    const parent = this.#chain.findIndex((link) => link.file === snapshot.header.parent)
    this.#chain = [...this.#chain.slice(0, parent + 1), { file: snapshot.hash, blob }]
    return { snapshot, chain: this.#chain.map((link) => link.blob), bytes: snapshot.bytes.length }
  }
}

/** Hex. Node's own is many times faster than the one that browsers need. */
function hashOf(file: Uint8Array): string {
  return createHash('sha256').update(file).digest('hex')
}
