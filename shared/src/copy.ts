/**
 * Copies of sessions: a fork, an exported file, an imported one. A copy is the journal as it stands, opened, and the blobs that it
 * still needs: the newest snapshot, the newest checkpoint, pictures and long results. copy-read.ts takes it from one session as a
 * stream of parts, copy-write.ts puts such a stream into a new session; the runner that starts the new one makes it live
 * (runner/src/session/copy.ts).
 *
 * What does not come along: leases and moves, superseded snapshots and checkpoints, commands that wait in the inbox.
 */
import * as v from 'valibot'
import type { BlobStore } from './blobs.ts'
import type { Json } from './guest.ts'
import { SessionMeta } from './journal.ts'
import { Hash, Id, SealedKind, type AskGives } from './protocol.ts'

export const COPY_FORMAT = 1

const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0))

/** What a copy is of. `seq`: the origin's journal up to this entry. `entries`, `blobs`: how many parts follow. */
export const CopyHead = v.object({
  format: v.literal(COPY_FORMAT),
  sid: Id,
  seq: count,
  meta: SessionMeta,
  /** What the guest needs, by hash (F60). */
  agent: v.object({ name: v.string(), engine: Hash, bundle: Hash, baseline: Hash }),
  entries: count,
  blobs: count,
})
export type CopyHead = v.InferOutput<typeof CopyHead>

/** An entry of the origin, opened. `blobs`: what it refers to, as far as the copy has it. */
export const CopiedEntry = v.object({
  kind: SealedKind,
  seq: count,
  body: v.custom<Json>((value) => value !== undefined),
  blobs: v.array(Hash),
})
export type CopiedEntry = v.InferOutput<typeof CopiedEntry>

/** Head, then all blobs, then all entries in order. `hash` names a blob as the entries of the copy do; `bytes` are open. */
export type CopyPart =
  | { t: 'head'; head: CopyHead }
  | { t: 'blob'; hash: string; bytes: Uint8Array }
  | { t: 'entry'; entry: CopiedEntry }

/** A line of the history that a start command names. `alias`: how the guest calls a blob, and what it is called here. */
export const HistoryLine = v.union([
  v.object({ entry: CopiedEntry }),
  v.object({ alias: v.tuple([Hash, Hash]) }),
])
export type HistoryLine = v.InferOutput<typeof HistoryLine>

/** A session at the relay, with its key. */
export interface CopyPlace {
  sid: string
  key: Uint8Array
  /** A page of its journal, as the ask `read` gives it. */
  read: (from: number, limit: number) => Promise<AskGives<'read'>>
  blobs: BlobStore
}

/** A field of what may not be an object. */
export function at(value: Json | undefined, key: string): Json | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value[key] : undefined
}
