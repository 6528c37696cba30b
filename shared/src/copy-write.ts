/** Puts a copy (copy.ts) into a new session: its blobs sealed anew, and its history in pieces that the start command names. */
import { sha256 } from '@noble/hashes/sha2.js'
import * as v from 'valibot'
import { fromUtf8, toHex, utf8 } from './bytes.ts'
import { at, HistoryLine, type CopiedEntry, type CopyHead, type CopyPart, type CopyPlace } from './copy.ts'
import { BatonError } from './errors.ts'
import type { Json } from './guest.ts'
import { BODIES, Received, type Copy, type SnapshotEntry } from './journal.ts'
import { deflate, inflate } from './pack.ts'

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
