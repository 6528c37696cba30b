/**
 * One session as it is shown: what the cache knows, then the relay's entries from there on, opened and reduced. Entries are
 * cached as they came, sealed, so that the transcript is there without connection (F3, F11).
 */
import type { BatonError } from '@baton/shared/errors.ts'
import type { Connection } from '@baton/shared/connection.ts'
import { openCommand } from '@baton/shared/entries.ts'
import { Feed } from '@baton/shared/feed.ts'
import { Delta } from '@baton/shared/journal.ts'
import type { Entry, Notice } from '@baton/shared/protocol.ts'
import { openJson, place } from '@baton/shared/seal.ts'
import * as v from 'valibot'
import { Cell } from '../store/cell.ts'
import { cachedEntries, cacheEntries, dropEntries, type Database } from '../store/db.ts'
import { readEntry } from '@baton/shared/view/entry.ts'
import { EMPTY, reduce, withDelta, type Transcript } from '@baton/shared/view/transcript.ts'

/** A prompt that waits in the relay's inbox, from any device. */
export interface Waiting {
  id: string
  text: string
  photos: number
  steer: boolean
}

export interface LiveView {
  transcript: Transcript
  /** This device's copy has been read; from here on the relay's entries follow. */
  ready: boolean
  /** Seq of the last entry that is known to exist. */
  tail: number
  waiting: readonly Waiting[]
  /** Such a session is not known to the relay, or not yet. */
  refused?: BatonError | undefined
  /** The relay had fewer entries than this device: it was loaded again (F23). */
  rolled_back?: boolean
}

const SLICE = 50
/** Reading a long journal lets the page do something else this often, so that it never freezes (F64). */
const BREATH_MS = 16

/** Between two pictures while entries are being read. */
const SHOW_MS = 500

const breath = (): Promise<void> => new Promise((resolve) => setTimeout(resolve))

export class Live {
  readonly view = new Cell<LiveView>({ transcript: EMPTY, ready: false, tail: 0, waiting: [] })
  readonly sid: string
  readonly #key: Uint8Array
  readonly #connection: Connection
  readonly #db: Database
  readonly #onApplied: (ids: ReadonlySet<string>) => void
  readonly #applied = new Set<string>()
  #feed: Feed | undefined
  /** What is read so far; the view shows it with pauses while a long journal is read. */
  #transcript: Transcript = EMPTY
  #queue: Entry[] = []
  #pumping = false
  #closed = false
  readonly #deltas = new Map<number, string>()
  #frame: number | undefined

  constructor(
    sid: string,
    key: Uint8Array,
    connection: Connection,
    db: Database,
    onApplied: (ids: ReadonlySet<string>) => void,
  ) {
    this.sid = sid
    this.#key = key
    this.#connection = connection
    this.#db = db
    this.#onApplied = onApplied
    void this.#start()
  }

  async #start(): Promise<void> {
    const cached = await cachedEntries(this.#db, this.sid).catch(() => [])
    // A hole would shift everything after it; what follows one is fetched again.
    const whole = cached.filter((entry, i) => entry.seq === i + 1)
    if (this.#closed) return
    const cursor = whole.at(-1)?.seq ?? 0
    this.#take(whole, cursor)
    this.#patch({ ready: true })
    this.#feed = new Feed(this.#connection, this.sid, cursor, {
      entries: (entries, tail) => {
        cacheEntries(this.#db, this.sid, entries).catch(() => undefined)
        this.#take(entries, tail)
      },
      gap: (reason) => {
        this.#queue = []
        this.#transcript = EMPTY
        void dropEntries(this.#db, this.sid).catch(() => undefined)
        this.#patch({ transcript: EMPTY, tail: 0, rolled_back: reason === 'rolled-back' })
      },
      delta: (effect, body) => this.#delta(effect, body),
      refused: (error) => this.#patch({ refused: error }),
    })
  }

  /** The connection has opened, or the page became visible. */
  resume(): void {
    this.#patch({ refused: undefined })
    this.#feed?.resume()
  }

  notice(notice: Notice): void {
    this.#feed?.notice(notice)
  }

  close(): void {
    this.#closed = true
    if (this.#frame !== undefined) cancelAnimationFrame(this.#frame)
    this.#feed?.close()
  }

  /** Fetches the prompts that wait in the inbox, for those that other devices have sent. */
  async refreshWaiting(pending: number): Promise<void> {
    if (pending === 0) {
      this.#patch({ waiting: [] })
      return
    }
    const { commands } = await this.#connection
      .ask('inbox', { sid: this.sid })
      .catch(() => ({ commands: [] }))
    const waiting: Waiting[] = []
    for (const command of commands) {
      const { id, kind } = command
      if (kind !== 'prompt' || this.#applied.has(id)) continue
      try {
        const { text, images = [], steer = false } = openCommand(this.#key, this.sid, { ...command, kind })
        waiting.push({ id, text, photos: images.length, steer })
      } catch {
        // Not readable here; the transcript will say so when it is applied.
      }
    }
    this.#patch({ waiting })
  }

  #take(entries: Entry[], tail: number): void {
    this.#queue.push(...entries)
    this.#patch({ tail: Math.max(tail, this.view.get().tail) })
    if (!this.#pumping) void this.#pump()
  }

  async #pump(): Promise<void> {
    this.#pumping = true
    let shown_at = performance.now()
    let breath_at = shown_at
    while (this.#queue.length > 0 && !this.#closed) {
      this.#reduce(this.#queue.splice(0, SLICE))
      const now = performance.now()
      // Painting a long journal over and over would take longer than reading it.
      if (this.#queue.length === 0 || now - shown_at > SHOW_MS) {
        this.#patch({ transcript: this.#transcript })
        shown_at = now
      }
      if (this.#queue.length > 0 && now - breath_at > BREATH_MS) {
        await breath()
        breath_at = performance.now()
      }
    }
    this.#pumping = false
  }

  #reduce(entries: readonly Entry[]): void {
    this.#transcript = reduce(
      this.#transcript,
      entries.map((entry) => readEntry(this.#key, this.sid, entry)),
    )
    const applied = new Set(entries.flatMap(({ consumes }) => (consumes ? [consumes.id] : [])))
    if (applied.size === 0) return
    for (const id of applied) this.#applied.add(id)
    // In one picture with the prompt that they became.
    const waiting = this.view.get().waiting.filter((other) => !applied.has(other.id))
    this.#patch({ transcript: this.#transcript, waiting })
    this.#onApplied(applied)
  }

  /** Opens the newest delta of each effect once a frame: each holds the whole text so far. */
  #delta(effect: number, body: string): void {
    this.#deltas.set(effect, body)
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = undefined
      for (const [of, sealed] of this.#deltas) {
        try {
          const { text, thought } = v.parse(Delta, openJson(this.#key, sealed, place.delta(this.sid, of)))
          this.#transcript = withDelta(this.#transcript, of, text, thought)
        } catch {
          // A delta is a preview; the outcome follows.
        }
      }
      this.#deltas.clear()
      this.#patch({ transcript: this.#transcript })
    })
  }

  #patch(values: Partial<LiveView>): void {
    const before = this.view.get()
    const changed = Object.entries(values).some(([name, value]) => before[name as keyof LiveView] !== value)
    if (changed) this.view.set({ ...before, ...values })
  }
}
