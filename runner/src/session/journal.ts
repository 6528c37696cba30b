/**
 * A session's journal, as its one writer and as a reader: seals, opens, validates, and makes an append that was cut off by
 * the network happen exactly once.
 */
import { toBase64 } from '@baton/shared/bytes.ts'
import { BatonError } from '@baton/shared/errors.ts'
import { openEntry, type BodyOf, type Opened, type OpenedOf } from '@baton/shared/entries.ts'
import { LIMITS, type Entry, type Hint, type NewEntry, type SealedKind } from '@baton/shared/protocol.ts'
import { place, seal } from '@baton/shared/seal.ts'
import { compact } from './compact.ts'
import type { RelayLink } from './link.ts'
import { steady } from './steady.ts'

interface DraftOf<K extends SealedKind> {
  kind: K
  body: BodyOf<K>
  blobs?: string[]
  keeps?: string[]
  hint?: Hint
  consumes?: { n: number; id: string }
}
/** An entry that is not written yet. */
export type Draft = { [K in SealedKind]: DraftOf<K> }[SealedKind]

/** A line for people in the transcript. */
export function notice(message: string): Draft {
  return { kind: 'event', body: { type: 'notice', data: { message } } }
}

/** Tells that the newest files could not be stored: the relay then keeps the session for the runner that has them. */
export function unstored(message: string): Draft {
  return { ...notice(message), hint: { unstored: true } }
}

/** Tells that the guest was lost with its thread; the session goes on from its last snapshot. */
export function fallen(message: string): Draft {
  return { kind: 'event', body: { type: 'fallen', data: { message } } }
}

/** Tells that a runner has taken the session up; the relay learns with it what the session waits for. */
export function arrived(): Draft {
  return { kind: 'event', body: { type: 'arrived', data: null } }
}

export function failure(code: string, message: string): Draft {
  return {
    kind: 'event',
    body: { type: 'failed', data: { code, message } },
    hint: { status: 'failed', notify: true },
  }
}

export class Journal {
  readonly sid: string
  readonly key: Uint8Array
  readonly epoch: number
  readonly #link: RelayLink
  readonly #gone: AbortSignal
  /** What the relay gave along with the claim, by seq: opened only where it is read, and bound to its place like any other. */
  readonly #given: ReadonlyMap<number, Entry>
  #tail: number

  /** `gone` aborts when the lease is known to be lost: nothing is written after that. */
  constructor(
    link: RelayLink,
    lease: {
      sid: string
      key: Uint8Array
      epoch: number
      tail: number
      gone: AbortSignal
      given?: readonly Entry[]
    },
  ) {
    this.#link = link
    this.sid = lease.sid
    this.key = lease.key
    this.epoch = lease.epoch
    this.#tail = lease.tail
    this.#gone = lease.gone
    this.#given = new Map((lease.given ?? []).map((entry) => [entry.seq, entry]))
  }

  /** Aborts when the lease is lost. */
  get gone(): AbortSignal {
    return this.#gone
  }

  /** Seq of the last entry that is known to be durable. */
  get tail(): number {
    return this.#tail
  }

  /**
   * Writes all drafts or none; resolves with the first one's seq when they are durable. One call at a time. Waits out lost
   * connections. Throws BatonError `lease-lost` when another has taken over, `already-consumed`, `no-blob`.
   */
  async append(drafts: Draft[]): Promise<number> {
    const first = this.#tail + 1
    const entries = drafts.map((draft, index): NewEntry => this.#sealed(draft, first + index))
    await steady(this.#link, this.#gone, async () => {
      try {
        await this.#link.ask('append', { sid: this.sid, epoch: this.epoch, first, entries })
      } catch (error) {
        if (!(error instanceof BatonError) || error.code !== 'wrong-seq') throw error
        // An earlier try whose answer was lost may have written it.
        if (await this.#isOurs(first, entries)) return
        throw new BatonError('lease-lost', '(the journal has entries of another writer)', { cause: error })
      }
    })
    this.#tail += entries.length
    return first
  }

  /** All entries from `from` to the tail that was known at the claim, opened, in order. */
  async *read(from: number): AsyncGenerator<Opened> {
    let next = from
    while (next <= this.#tail) {
      const page = this.#givenFrom(next) ?? (await this.#page(next, LIMITS.read_entries))
      for (const entry of page) {
        if (entry.seq !== next) throw new BatonError('journal-gap', `(expected ${next}, got ${entry.seq})`)
        yield openEntry(this.key, this.sid, entry)
        next++
      }
      if (page.length === 0) {
        throw new BatonError('journal-rolled-back', `(entry ${next} of ${this.#tail} is missing)`)
      }
    }
  }

  /** One entry of a known kind. Throws BatonError `journal-gap` when it is something else. */
  async at<K extends SealedKind>(seq: number, kind: K): Promise<OpenedOf<K>> {
    const entry = this.#given.get(seq) ?? (await this.#page(seq, 1))[0]
    if (entry?.seq !== seq || entry.kind !== kind)
      throw new BatonError('journal-gap', `(no ${kind} at ${seq})`)
    return openEntry(this.key, this.sid, entry) as OpenedOf<K>
  }

  /** The entries from `seq` on that are here, without a hole; undefined when that one is not. */
  #givenFrom(seq: number): Entry[] | undefined {
    const entries: Entry[] = []
    for (let entry = this.#given.get(seq); entry; entry = this.#given.get(seq + entries.length))
      entries.push(entry)
    return entries.length > 0 ? entries : undefined
  }

  async #isOurs(first: number, entries: NewEntry[]): Promise<boolean> {
    const page = await this.#page(first, entries.length)
    return (
      page.length === entries.length &&
      page.every((entry, i) => entry.epoch === this.epoch && entry.body === entries[i]?.body)
    )
  }

  async #page(from: number, limit: number): Promise<Entry[]> {
    const page = await steady(this.#link, this.#gone, () =>
      this.#link.ask('read', { sid: this.sid, from, limit }),
    )
    return page.entries
  }

  #sealed(draft: Draft, seq: number): NewEntry {
    const { kind, keeps = [], hint, consumes } = draft
    return {
      kind,
      body: toBase64(seal(this.key, compact(draft.body), place.entry(this.sid, kind, seq))),
      blobs: draft.blobs ?? [],
      ...(keeps.length > 0 ? { keeps } : {}),
      ...(hint ? { hint } : {}),
      ...(consumes ? { consumes } : {}),
    }
  }
}
