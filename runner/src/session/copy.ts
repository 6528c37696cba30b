/**
 * Starts a session with the history of another one: writes it down as the beginning of this journal, with what refers to entries
 * by number adapted, then goes on from its snapshot as after a crash. Effects that were open in the origin are treated as a
 * crash would have left them; see adoptOrphans.
 *
 * The journal of a copy:
 *
 *     claimed · history …, without snapshots · checkpoint · received start {copied} · snapshot · notice · what follows
 *
 * The last four are one write, and that write consumes the start command: a runner that ends before it leaves a session that
 * has not started, and the next one goes on with the history where it stopped.
 */
import type { BlobStore } from '@baton/shared/blobs.ts'
import { readHistory, renumbered } from '@baton/shared/copy-write.ts'
import type { CopiedEntry, CopyPlace } from '@baton/shared/copy.ts'
import { BatonError } from '@baton/shared/errors.ts'
import { CheckpointEntry, SnapshotEntry, type Copied, type Copy } from '@baton/shared/journal.ts'
import type { Received } from '@baton/shared/journal.ts'
import { sessionSeed } from '@baton/shared/keys.ts'
import * as v from 'valibot'
import type { Begun } from './begin.ts'
import { batchesOf, type Book } from './book.ts'
import { engineFor } from './engine.ts'
import { notice, type Draft, type Journal } from './journal.ts'
import type { SessionOptions } from './options.ts'
import { reseedOf } from './state.ts'

export interface CopyStart {
  options: SessionOptions
  book: Book
  received: Extract<Received, { kind: 'start' }>
  copy: Copy
  consumes: { n: number; id: string }
}

/**
 * Writes the copied history and consumes the start command. Resolves with the seqs of its snapshot and its checkpoint.
 * Throws BatonError `copy-torn`, `snapshot-engine` when this runner has another engine, `no-blob`, `bad-blob`, `cannot-open`.
 */
export async function writeCopied(start: CopyStart): Promise<{ snapshot: number; checkpoint: number }> {
  const { options, book, received, copy, consumes } = start
  const { journal } = book
  const history = new History(journal, await entriesSoFar(journal))
  const from: CopyPlace = {
    ...{ sid: journal.sid, key: journal.key, blobs: book.blobs },
    read: (at, limit) => options.link.ask('read', { sid: journal.sid, from: at, limit }),
  }
  const aliases: Record<string, string> = {}
  let snapshot: CopiedEntry | undefined
  let checkpoint: CopiedEntry | undefined
  for await (const line of readHistory(from, copy)) {
    if ('alias' in line) aliases[line.alias[0]] = line.alias[1]
    else if (line.entry.kind === 'snapshot') snapshot = line.entry
    else if (line.entry.kind === 'checkpoint') checkpoint = line.entry
    else await history.add(line.entry)
  }
  await history.flush()
  if (!snapshot) throw new BatonError('copy-torn', '(its snapshot is missing)')
  const old = v.parse(SnapshotEntry, snapshot.body)
  if (!old.agent) throw new BatonError('copy-torn', '(its snapshot does not say what the agent is)')
  await checkEngine(options, journal.gone, old.agent.engine)

  const files: Draft[] = checkpoint
    ? [{ kind: 'checkpoint', body: ownBranch(checkpoint.body, journal.sid), blobs: checkpoint.blobs }]
    : []
  const first = journal.tail + 1
  const seqs = { checkpoint: files.length > 0 ? first : 0, snapshot: first + files.length + 1 }
  // What the guest did since that snapshot has to come out as it did.
  const isAtOnce = old.state === 'interrupted' && history.lastOfGuest <= old.covers
  const copied: Copied = {
    ...{ seed: sessionSeed(options.account, journal.sid), snapshot: isAtOnce ? seqs.snapshot : 0 },
    blobs: aliases,
  }
  const body = renumbered(old, (seq) => history.seqOf(seq), history.coverOf(old.covers, journal))
  await journal.append([
    ...files,
    { kind: 'received', body: { ...received, copied }, consumes },
    // The relay forgets the history's own blobs when newer snapshots have replaced this one.
    { kind: 'snapshot', body, blobs: [...snapshot.blobs, ...copy.history] },
    {
      ...notice(`A copy of session ${copy.origin.slice(0, 8)}, as it stood at entry ${copy.seq}.`),
      hint: { status: 'running' },
    },
  ])
  return seqs
}

/** Non-lease entries that an earlier runner wrote before it ended, in order. */
async function entriesSoFar(journal: Journal): Promise<{ seq: number; kind: string }[]> {
  const found: { seq: number; kind: string }[] = []
  for await (const { seq, kind } of journal.read(1)) if (kind !== 'lease') found.push({ seq, kind })
  return found
}

/** Two sessions on one branch of one clone would move it under each other's feet. */
function ownBranch(body: CopiedEntry['body'], sid: string): CheckpointEntry {
  const entry = v.parse(CheckpointEntry, body)
  return entry.branch === '' ? entry : { ...entry, branch: `baton/${sid.slice(0, 8)}` }
}

/** Before anything is started: another engine is refused by name (F60). */
async function checkEngine(options: SessionOptions, gone: AbortSignal, needed: string): Promise<void> {
  if (await engineFor(options, gone, needed)) return
  const harness = options.harness(await options.agent('coder'))
  try {
    const { engine } = await harness.open()
    if (engine === needed) return
    throw new BatonError('snapshot-engine', `(it needs engine ${needed}, this runner has ${engine})`)
  } finally {
    await harness.close()
  }
}

/** Writes the history in batches and knows which entry has become which. */
class History {
  readonly #journal: Journal
  readonly #present: { seq: number; kind: string }[]
  /** Seq in the origin → seq here. */
  readonly #seqs = new Map<number, number>()
  #count = 0
  #waiting: { seq: number; draft: Draft }[] = []
  /** Seq in the origin of the last entry that the guest brought about. */
  lastOfGuest = 0

  constructor(journal: Journal, present: { seq: number; kind: string }[]) {
    this.#journal = journal
    this.#present = present
  }

  async add({ kind, seq, body, blobs }: CopiedEntry): Promise<void> {
    const isOfGuest = kind === 'intent' || (kind === 'event' && v.is(v.object({ effect: v.number() }), body))
    if (isOfGuest) this.lastOfGuest = seq
    const present = this.#present[this.#count++]
    if (present) {
      if (present.kind !== kind) throw new BatonError('copy-torn', `(entry ${present.seq} is no ${kind})`)
      this.#seqs.set(seq, present.seq)
      return
    }
    this.#waiting.push({ seq, draft: { kind, body: this.#adapted(kind, body), blobs } as Draft })
    if (this.#waiting.length >= BATCH) await this.flush()
  }

  async flush(): Promise<void> {
    const waiting = this.#waiting
    this.#waiting = []
    let at = 0
    for (const batch of batchesOf(waiting.map(({ draft }) => draft))) {
      const first = await this.#journal.append(batch)
      batch.forEach((_, i) => this.#seqs.set(waiting[at + i]?.seq ?? 0, first + i))
      at += batch.length
    }
  }

  /** Throws `copy-torn` for an entry that is not in the history. */
  seqOf(seq: number): number {
    const here = this.#seqs.get(seq)
    if (here === undefined) throw new BatonError('copy-torn', `(entry ${seq} is missing)`)
    return here
  }

  /** The last entry here that a snapshot covers which covered the origin up to `seq`. */
  coverOf(seq: number, { tail }: Journal): number {
    // Entries of the origin that are not history leave gaps.
    const next = [...this.#seqs.keys()].filter((old) => old > seq)
    return next.length === 0 ? tail : this.seqOf(Math.min(...next)) - 1
  }

  /** A copy of a copy: the snapshot of the first one is not here. */
  #adapted(kind: CopiedEntry['kind'], body: CopiedEntry['body']): CopiedEntry['body'] {
    if (kind !== 'received' || typeof body !== 'object' || body === null || Array.isArray(body)) return body
    const { copied } = body
    return copied === undefined ? body : { ...body, copied: { ...(copied as object), snapshot: 0 } }
  }
}

/** Entries that are held back to be written together. */
const BATCH = 256

/**
 * A guest that was copied while it computed gets its new random numbers before it goes on. Later restores of the same
 * snapshot do the same; one from a later snapshot has them. True when the guest is another one than its snapshot now.
 */
export async function reseedInterrupted(begun: Begun): Promise<boolean> {
  const { state, harness, pause, snapshot } = begun
  const { copied } = state
  if (pause.state !== 'interrupted' || copied?.snapshot !== snapshot) return false
  const queue = state.queue.filter((deliverable) => reseedOf(deliverable) === undefined)
  if (queue.length === state.queue.length) return false
  state.queue = queue
  const next = await harness.deliver({ type: 'reseed', seed: copied.seed })
  begun.pause = { ...next, asked: [...pause.asked, ...next.asked] }
  return true
}

/** In a copy the guest calls pictures of the origin as they were called there. */
export function aliased(blobs: BlobStore, aliases: () => Record<string, string> | undefined): BlobStore {
  return {
    put: (sid, key, plain) => blobs.put(sid, key, plain),
    get: (sid, key, hash) => blobs.get(sid, key, aliases()?.[hash] ?? hash),
  }
}
