/**
 * Copies of sessions: a fork, an exported file, an imported one. A copy is the journal as it stands, opened, and the blobs that it
 * still needs: the newest snapshot, the newest checkpoint, pictures and long results. `readCopy` takes it from one session as a
 * stream of parts, `writeCopy` puts such a stream into a new session; the runner that starts the new one makes it live
 * (runner/src/session/copy.ts). Reading needs no lease and disturbs nobody.
 *
 * What does not come along: leases and moves, superseded snapshots and checkpoints, commands that wait in the inbox.
 */
import { sha256 } from '@noble/hashes/sha2.js'
import * as v from 'valibot'
import type { BlobStore } from './blobs.ts'
import { fromUtf8, toHex, utf8 } from './bytes.ts'
import { BatonError } from './errors.ts'
import type { Json } from './guest.ts'
import {
  BODIES,
  blobsOfSnapshot,
  Received,
  SessionMeta,
  SnapshotEntry,
  type Agent,
  type Copy,
} from './journal.ts'
import { deflate, inflate } from './pack.ts'
import { Hash, Id, LIMITS, SealedKind, type AskGives, type Entry } from './protocol.ts'
import { openJson, place } from './seal.ts'

export const COPY_FORMAT = 1

/** A workspace whose files are never stored, so that a copy has none. */
const SCRATCH = 'scratch'

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

type OpenedJson = Omit<CopiedEntry, 'kind'> & { kind: Entry['kind'] }
type OpenedSnapshot = Omit<CopiedEntry, 'body'> & { body: SnapshotEntry & { agent: Agent } }

/**
 * Reads a session. One that goes on meanwhile is copied as its journal stood at the beginning.
 * Throws BatonError `copy-too-early` when there is nothing to go on from yet, `copy-outrun` when it went on so fast that its
 * files were replaced meanwhile (try again), `cannot-open`, `journal-gap`, `offline`.
 */
export async function* readCopy(from: CopyPlace, meta: SessionMeta): AsyncGenerator<CopyPart> {
  const found = await survey(from)
  if (!found.checkpoint && meta.workspace !== SCRATCH) {
    throw new BatonError('copy-too-early', '(its files are not stored yet)')
  }
  const { snapshot, files } = await newestWhole(from, found.snapshots)
  const isWanted = (entry: OpenedJson): boolean => {
    if (entry.kind === 'snapshot') return false
    if (entry.kind === 'checkpoint') return entry.seq === found.checkpoint?.seq
    return isHistory(entry)
  }
  const { name, engine, bundle, baseline } = snapshot.body.agent
  const others = [...found.blobs, ...(found.checkpoint?.blobs ?? [])].filter((hash) => !files.has(hash))
  const wanted = new Set(others)
  yield {
    t: 'head',
    head: {
      ...{ format: COPY_FORMAT, sid: from.sid, seq: found.tail, meta },
      agent: { name, engine, bundle, baseline },
      entries: found.kept + 1 + (found.checkpoint ? 1 : 0),
      blobs: files.size + wanted.size,
    },
  }
  for (const [hash, bytes] of files) yield { t: 'blob', hash, bytes }
  for (const hash of wanted) yield { t: 'blob', hash, bytes: await fetchBlob(from, hash) }
  for await (const entry of entriesOf(from, found.tail)) {
    if (entry.seq === snapshot.seq) yield { t: 'entry', entry: snapshot as unknown as CopiedEntry }
    else if (isWanted(entry)) yield { t: 'entry', entry: entry as CopiedEntry }
  }
}

/** Is it a part of what was said and done? Where it ran, and how it ended, is the origin's alone. */
function isHistory({ kind, body }: OpenedJson): boolean {
  if (kind === 'lease' || kind === 'snapshot' || kind === 'checkpoint') return false
  if (kind === 'received') return at(body, 'kind') !== 'move'
  if (kind !== 'event' || at(body, 'effect') !== undefined) return true
  const type = at(body, 'type')
  return typeof type !== 'string' || !['moving', 'arrived', 'done', 'failed'].includes(type)
}

interface Survey {
  tail: number
  /** Entries that are history. */
  kept: number
  /** Blobs that these refer to. */
  blobs: string[]
  /** The newest two: the relay keeps their blobs. Each says what its guest is. */
  snapshots: OpenedSnapshot[]
  checkpoint: OpenedJson | undefined
}

async function survey(from: CopyPlace): Promise<Survey> {
  // The end of a journal is always the end of a whole write.
  const { tail } = await from.read(1, 1)
  const found: Survey = { tail, kept: 0, blobs: [], snapshots: [], checkpoint: undefined }
  const agents = new Map<number, Agent>()
  for await (const entry of entriesOf(from, tail)) {
    if (entry.kind === 'snapshot')
      found.snapshots = [...found.snapshots.slice(-1), wholeSnapshot(entry, agents)]
    else if (entry.kind === 'checkpoint') found.checkpoint = entry
    else if (isHistory(entry)) {
      found.kept++
      found.blobs.push(...entry.blobs)
    }
  }
  return found
}

/** A copy names a snapshot's agent and blobs in the entry itself: the entries that did so before do not come along. */
function wholeSnapshot({ seq, body }: OpenedJson, agents: Map<number, Agent>): OpenedSnapshot {
  const { agent_at = 0, ...said } = v.parse(SnapshotEntry, body)
  const agent = said.agent ?? agents.get(agent_at)
  if (!agent) throw new BatonError('journal-gap', `(no agent for the snapshot at ${seq})`)
  agents.set(seq, agent)
  return { kind: 'snapshot', seq, body: { ...said, agent }, blobs: blobsOfSnapshot(said, agent) }
}

/** Small, and the first that a running session replaces: taken before anything else. */
async function newestWhole(
  from: CopyPlace,
  snapshots: OpenedSnapshot[],
): Promise<{ snapshot: OpenedSnapshot; files: Map<string, Uint8Array> }> {
  let failure: unknown = new BatonError('copy-too-early', '(it has not begun yet)')
  for (const snapshot of snapshots.toReversed()) {
    const files = new Map<string, Uint8Array>()
    try {
      for (const hash of new Set(snapshot.blobs)) files.set(hash, await fetchBlob(from, hash))
      return { snapshot, files }
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

async function fetchBlob({ blobs, sid, key }: CopyPlace, hash: string): Promise<Uint8Array> {
  try {
    return await blobs.get(sid, key, hash)
  } catch (error) {
    if (error instanceof BatonError && error.code === 'no-blob') {
      throw new BatonError('copy-outrun', `(${hash.slice(0, 12)})`, { cause: error })
    }
    throw error
  }
}

async function* entriesOf({ read, sid, key }: CopyPlace, tail: number): AsyncGenerator<OpenedJson> {
  for (let next = 1; next <= tail;) {
    const { entries } = await read(next, LIMITS.read_entries)
    if (entries.length === 0) throw new BatonError('journal-rolled-back', `(entry ${next} is missing)`)
    for (const { kind, seq, body, blobs } of entries) {
      if (seq > tail) return
      if (seq !== next++) throw new BatonError('journal-gap', `(expected ${next - 1}, got ${seq})`)
      yield {
        kind,
        seq,
        blobs,
        body: kind === 'lease' ? null : openJson(key, body, place.entry(sid, kind, seq)),
      }
    }
  }
}

// ---- writing ----------------------------------------------------------------------------------------------------------

/** Characters of history in one piece, before it is packed. */
const PIECE_CHARS = 4 << 20

/**
 * Puts a copy into a session that exists and has not been started: every blob sealed anew, then the history. Resolves with
 * what its start command is to name. Parts that come again after a `head` replace those before; blobs are stored once.
 * Throws BatonError `copy-torn` when parts are missing or damaged.
 */
export class CopyWriter {
  readonly #to: CopyPlace
  /** Name of a blob in the copy → name here. */
  readonly #names = new Map<string, string>()
  #head: CopyHead | undefined
  #entries = 0
  #blobs = 0
  #lines = 0
  #hash = sha256.create()
  #open: string[] = []
  #chars = 0
  #pieces: string[] = []
  #aliases = new Map<string, string>()

  constructor(to: CopyPlace) {
    this.#to = to
  }

  get head(): CopyHead | undefined {
    return this.#head
  }

  async add(part: CopyPart): Promise<void> {
    if (part.t === 'head') return this.#begin(part.head)
    if (part.t === 'blob') return this.#addBlob(part.hash, part.bytes)
    return this.#addEntry(part.entry)
  }

  async end(): Promise<Copy> {
    const head = this.#head
    if (!head || head.entries !== this.#entries || head.blobs !== this.#blobs) {
      const said = head ? `${head.entries} entries and ${head.blobs} blobs` : 'a head'
      throw new BatonError('copy-torn', `(expected ${said}, found ${this.#entries} and ${this.#blobs})`)
    }
    for (const alias of this.#aliases) await this.#line({ alias })
    await this.#flush()
    return {
      ...{ origin: head.sid, seq: head.seq, history: this.#pieces, entries: this.#lines },
      sha256: toHex(this.#hash.digest()),
    }
  }

  #begin(head: CopyHead): void {
    this.#head = head
    this.#entries = this.#blobs = this.#lines = this.#chars = 0
    this.#hash = sha256.create()
    this.#open = []
    this.#pieces = []
    this.#aliases = new Map()
  }

  async #addBlob(hash: string, bytes: Uint8Array): Promise<void> {
    this.#blobs++
    if (this.#names.has(hash)) return
    this.#names.set(hash, await this.#to.blobs.put(this.#to.sid, this.#to.key, bytes))
  }

  async #addEntry(entry: CopiedEntry): Promise<void> {
    this.#entries++
    const parsed = v.safeParse(BODIES[entry.kind], entry.body)
    if (!parsed.success) {
      throw new BatonError('copy-torn', `(entry ${entry.seq}: ${v.summarize(parsed.issues)})`)
    }
    const blobs = entry.blobs.map((hash) => this.#name(hash))
    this.#note(entry)
    await this.#line({ entry: { ...entry, blobs, body: renamed(entry, (hash) => this.#names.get(hash)) } })
  }

  #name(hash: string): string {
    const name = this.#names.get(hash)
    if (name === undefined) throw new BatonError('copy-torn', `(blob ${hash.slice(0, 12)} is missing)`)
    return name
  }

  /** Names that the guest has in its memory can't be changed: pictures in its conversation. */
  #note({ kind, body, blobs }: CopiedEntry): void {
    if (kind !== 'received' && kind !== 'outcome') return
    const own = [at(at(body, 'blob'), 'hash'), at(at(body, 'start_blob'), 'hash')]
    for (const hash of blobs) if (!own.includes(hash)) this.#aliases.set(hash, this.#name(hash))
    const received = kind === 'received' ? v.parse(Received, body) : undefined
    if (received?.kind !== 'start' || !received.copied) return
    for (const [guests, hash] of Object.entries(received.copied.blobs)) {
      this.#aliases.set(guests, this.#name(hash))
    }
  }

  async #line(line: HistoryLine): Promise<void> {
    const text = `${JSON.stringify(line)}\n`
    this.#hash.update(utf8(text))
    this.#lines++
    this.#open.push(text)
    this.#chars += text.length
    if (this.#chars >= PIECE_CHARS) await this.#flush()
  }

  async #flush(): Promise<void> {
    if (this.#open.length === 0) return
    const packed = await deflate(utf8(this.#open.join('')))
    this.#pieces.push(await this.#to.blobs.put(this.#to.sid, this.#to.key, packed))
    this.#open = []
    this.#chars = 0
  }
}

/**
 * Reads the history that a start command names, in order. Throws BatonError `copy-torn` at the end when it is not whole,
 * `no-blob`, `bad-blob`, `cannot-open`.
 */
export async function* readHistory(from: CopyPlace, copy: Copy): AsyncGenerator<HistoryLine> {
  const hash = sha256.create()
  let lines = 0
  for (const piece of copy.history) {
    const packed = await from.blobs.get(from.sid, from.key, piece)
    const bytes = await inflate(packed)
    hash.update(bytes)
    for (const line of fromUtf8(bytes).split('\n')) {
      if (line === '') continue
      lines++
      yield v.parse(HistoryLine, JSON.parse(line))
    }
  }
  if (lines !== copy.entries || toHex(hash.digest()) !== copy.sha256) {
    throw new BatonError('copy-torn', `(expected ${copy.entries} lines of history, found ${lines})`)
  }
}

/**
 * The body with the blobs that only the runner reads under their new names. What reaches the guest stays as it is: it is
 * part of digests.
 */
function renamed({ kind, body }: CopiedEntry, nameOf: (hash: string) => string | undefined): Json {
  const inside = (value: Json): Json => {
    if (typeof value === 'string') return nameOf(value) ?? value
    if (Array.isArray(value)) return value.map(inside)
    if (value === null || typeof value !== 'object') return value
    return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, inside(inner)]))
  }
  if (kind === 'snapshot' || kind === 'checkpoint') return inside(body)
  if (body === null || typeof body !== 'object' || Array.isArray(body)) return body
  const { blob, command } = body
  if (kind === 'outcome' && blob !== undefined) return { ...body, blob: inside(blob) }
  if (kind !== 'received' || body['kind'] !== 'start') return body
  const bundle = at(command, 'bundle')
  const start_blob = body['start_blob']
  return {
    ...body,
    ...(start_blob === undefined
      ? {}
      : { start_blob: { ...(start_blob as object), hash: inside(at(start_blob, 'hash') ?? null) } }),
    ...(bundle === undefined
      ? {}
      : { command: { ...(command as { [key: string]: Json }), bundle: inside(bundle) } }),
  }
}

function at(value: Json | undefined, key: string): Json | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value[key] : undefined
}

/** A snapshot entry for another journal. `seqOf`: new seq of an entry of the history; 0 for one that is not in it. */
export function renumbered(
  body: SnapshotEntry,
  seqOf: (seq: number) => number,
  covers: number,
): SnapshotEntry {
  const { copied, ...rest } = body
  return {
    ...rest,
    ...{ covers, previous: 0, start: seqOf(body.start), approvals: [] },
    open: body.open.map(seqOf),
    undelivered: body.undelivered.map(seqOf),
    ...(copied === undefined ? {} : { copied: seqOf(copied) }),
  }
}
