/**
 * Tells a holder of its commands, in order. A notice says only that there is one; what there is, the feed reads from its cursor,
 * and it looks again at each renewal of the lease, so that a lost notice costs seconds, never a command (F10, F33).
 */
import type { RelayFrame } from '@baton/shared/protocol.ts'
import type { Redis } from 'ioredis'
import { readInbox } from './journal.ts'
import { readState } from './sessions.ts'

export class InboxFeed {
  readonly sid: string
  readonly #redis: Redis
  readonly #device: string
  readonly #deliver: (frame: RelayFrame) => Promise<void>
  /** Number of the newest command that the holder was told of. */
  #told = 0
  #pumping = false
  #again = false

  constructor(redis: Redis, sid: string, device: string, deliver: (frame: RelayFrame) => Promise<void>) {
    this.#redis = redis
    this.sid = sid
    this.#device = device
    this.#deliver = deliver
  }

  /** The holder has seen all commands up to `n`, e.g. because it asked for the inbox. */
  seen(n: number): void {
    this.#told = Math.max(this.#told, n)
  }

  /** `newest`: number of the newest command there is, if known. */
  async pump(newest = Number.POSITIVE_INFINITY): Promise<void> {
    if (newest <= this.#told) return
    this.#again = true
    if (this.#pumping) return
    this.#pumping = true
    try {
      while (this.#again) {
        this.#again = false
        const state = await readState(this.#redis, this.sid)
        if (state?.holder !== this.#device) return
        for (const command of await readInbox(this.#redis, this.sid, this.#told + 1)) {
          await this.#deliver({ t: 'inbox', sid: this.sid, command })
          this.#told = command.n
        }
      }
    } catch {
      // Redis or the socket is away: the next renewal looks again.
    } finally {
      this.#pumping = false
    }
  }
}
