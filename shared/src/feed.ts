/**
 * One session's entries, dense and in order, from a cursor on, across reconnects (F3). The owner forwards the connection's
 * notices and tells when it is open again; the feed hands on each entry exactly once.
 */
import { BatonError } from './errors.ts'
import type { Connection } from './connection.ts'
import type { Entry, Notice } from './protocol.ts'

export interface FeedHandlers {
  entries: (entries: Entry[], tail: number) => void
  /** Everything known of the session is to be dropped: it begins again at `from`. */
  gap: (reason: 'trimmed' | 'rolled-back', from: number) => void
  delta?: (effect: number, body: string) => void
  /** The watch was refused for good, e.g. `no-session`. */
  refused?: (error: BatonError) => void
}

export class Feed {
  readonly sid: string
  readonly #connection: Connection
  readonly #on: FeedHandlers
  /** Seq of the last entry handed on. */
  #cursor: number
  #closed = false

  constructor(connection: Connection, sid: string, cursor: number, on: FeedHandlers) {
    this.sid = sid
    this.#connection = connection
    this.#cursor = cursor
    this.#on = on
    this.resume()
  }

  get cursor(): number {
    return this.#cursor
  }

  /** Asks again from the cursor. Call when the connection has opened; harmless at any other time. */
  resume(): void {
    if (this.#closed || this.#connection.state.at !== 'open') return
    this.#connection.ask('watch', { sid: this.sid, from: this.#cursor + 1 }).catch((error: unknown) => {
      // Lost connections resume through the owner; only a refusal of the watch itself is told.
      if (error instanceof BatonError && error.code === 'no-session') this.#on.refused?.(error)
    })
  }

  /** Takes the connection's notices; ignores those of other sessions. */
  notice(notice: Notice): void {
    if (this.#closed || !('sid' in notice) || notice.sid !== this.sid) return
    if (notice.t === 'entries') this.#take(notice.entries, notice.tail)
    else if (notice.t === 'delta') this.#on.delta?.(notice.effect, notice.body)
    else if (notice.t === 'gap') {
      this.#cursor = notice.from - 1
      this.#on.gap(notice.reason, notice.from)
      this.resume()
    }
  }

  close(): void {
    this.#closed = true
    if (this.#connection.state.at === 'open') {
      this.#connection.ask('unwatch', { sid: this.sid }).catch(() => undefined)
    }
  }

  #take(entries: Entry[], tail: number): void {
    const fresh = entries.filter((entry) => entry.seq > this.#cursor)
    const first = fresh[0]
    if (first && first.seq !== this.#cursor + 1) {
      this.resume()
      return
    }
    this.#cursor = fresh.at(-1)?.seq ?? this.#cursor
    if (fresh.length > 0) this.#on.entries(fresh, tail)
  }
}
