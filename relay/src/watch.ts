/**
 * One peer's view of one journal: first what it lacks, page by page, then what comes. A notice only says that there is more;
 * what there is, the watcher reads from its cursor, so that nothing is lost between the two or with a notice (F3, F26).
 */
import { LIMITS, type RelayFrame } from '@baton/shared/protocol.ts'
import type { Redis } from 'ioredis'
import { readPage } from './journal.ts'
import { sessionChannel, sessionKeys } from './keys.ts'
import type { Logger } from 'pino'
import type { Listener, Notices } from './notices.ts'

export interface WatchTarget {
  /** Resolves when the frame has left for the network, so that a slow reader holds back its own watcher only. */
  deliver: (frame: RelayFrame) => Promise<void>
  /** Sends unless the reader is behind. */
  offhand: (frame: RelayFrame) => void
}

export class Watcher {
  readonly #sid: string
  readonly #redis: Redis
  readonly #notices: Notices
  readonly #log: Logger
  readonly #target: WatchTarget
  readonly #listener: Listener
  readonly #poll: ReturnType<typeof setInterval>
  /** Seq of the next entry to send. */
  #cursor: number
  #caughtUp = false
  #pumping = false
  #again = false
  #closed = false

  constructor(
    redis: Redis,
    notices: Notices,
    log: Logger,
    target: WatchTarget,
    sid: string,
    from: number,
    poll_ms: number,
  ) {
    this.#redis = redis
    this.#notices = notices
    this.#log = log
    this.#target = target
    this.#sid = sid
    this.#cursor = Math.max(1, from)
    this.#listener = { message: (text) => this.#hear(text), resumed: () => void this.#pump() }
    this.#poll = setInterval(() => void this.#pump(), poll_ms)
  }

  /** Listens from now on. Throws when Redis is away. */
  async listen(): Promise<void> {
    try {
      await this.#notices.listen(sessionChannel(this.#sid), this.#listener)
    } catch (error) {
      this.close()
      throw error
    }
  }

  /** Begins to send. */
  start(): void {
    void this.#pump()
  }

  close(): void {
    this.#closed = true
    clearInterval(this.#poll)
    this.#notices.drop(sessionChannel(this.#sid), this.#listener)
  }

  #hear(text: string): void {
    if (text === 'journal') void this.#pump()
    else if (this.#caughtUp) {
      const [, effect, body] = text.split(' ')
      if (effect !== undefined && body !== undefined) this.#sendDelta(effect, body)
    }
  }

  #sendDelta(effect: string, body: string): void {
    this.#target.offhand({ t: 'delta', sid: this.#sid, effect: Number(effect), body })
  }

  /** Sends until there is no more. One at a time; whoever calls meanwhile makes it look once more. */
  async #pump(): Promise<void> {
    this.#again = true
    if (this.#pumping) return
    this.#pumping = true
    try {
      while (this.#again && !this.#closed) {
        this.#again = false
        await this.#sendPage()
      }
    } catch {
      // Redis or the socket is away: the poll, the resumed subscription or the peer's next watch takes it up again.
    } finally {
      this.#pumping = false
    }
  }

  async #sendPage(): Promise<void> {
    const { entries, tail } = await readPage(this.#redis, this.#sid, this.#cursor, LIMITS.read_entries)
    if (this.#closed) return
    const first = entries[0]
    if (first ? first.seq > this.#cursor : tail + 1 !== this.#cursor) return this.#tellGap(first?.seq, tail)
    if (entries.length > 0) {
      this.#cursor += entries.length
      this.#again ||= this.#cursor <= tail
      await this.#target.deliver({ t: 'entries', sid: this.#sid, entries, tail })
    }
    if (!this.#again && !this.#caughtUp) await this.#catchUp()
  }

  /** `first`: the first number that is there at or after the cursor, if any. Ends the watch. */
  async #tellGap(first: number | undefined, tail: number): Promise<void> {
    // An append between the two reads of a page looks like an empty page before a longer journal.
    if (first === undefined && tail >= this.#cursor && !(await this.#isHollow())) {
      this.#again = true
      return
    }
    const reason = first === undefined ? 'rolled-back' : 'trimmed'
    const from = first ?? 1
    this.#log.error(
      { sid: this.#sid, cursor: this.#cursor, tail, reason },
      'a reader asks for entries that are gone',
    )
    this.close()
    await this.#target.deliver({ t: 'gap', sid: this.#sid, reason, from, tail })
  }

  /** The state counts further than the stream goes. */
  async #isHollow(): Promise<boolean> {
    const { entries, tail } = await readPage(this.#redis, this.#sid, this.#cursor, 1)
    return entries.length === 0 && tail >= this.#cursor
  }

  /** From here on deltas are passed on; the newest one is sent to whoever comes late. */
  async #catchUp(): Promise<void> {
    this.#caughtUp = true
    const { effect, body } = await this.#redis.hgetall(sessionKeys(this.#sid).partial)
    if (effect !== undefined && body !== undefined && !this.#closed) this.#sendDelta(effect, body)
  }
}
