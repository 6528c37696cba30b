/**
 * Keeps leases alive while sessions run, and ends sessions whose lease is gone: because the relay says so, or because this
 * runner could not renew in time. Its own time counts from when a renewal was sent, so it ends before the relay's does.
 */
import { moment, since, type Moment } from '../power/moment.ts'
import type { RelayLink } from '../session/link.ts'

export interface Leased {
  readonly sid: string
  readonly epoch: number
  lose(): void
}

const TICK_MS = 500
/** A relay that lives answers sooner; a socket that died is then found out before the lease ends. */
const SILENCE_MS = 3_000

export class Leases {
  readonly #link: RelayLink
  readonly #held = new Map<string, { session: Leased; ttl_ms: number; renewed_at: Moment }>()
  readonly #timer: ReturnType<typeof setInterval>
  readonly #silence: () => void
  #asking = false

  /** `silence` is called when a renewal is not answered in time. */
  constructor(link: RelayLink, silence: () => void) {
    this.#link = link
    this.#silence = silence
    this.#timer = setInterval(() => this.#tick(), TICK_MS)
  }

  get size(): number {
    return this.#held.size
  }

  add(session: Leased, ttl_ms: number, claimed_at: Moment): void {
    this.#held.set(session.sid, { session, ttl_ms, renewed_at: claimed_at })
  }

  remove(sid: string): void {
    this.#held.delete(sid)
  }

  /** Renews all now, e.g. after a reconnect. */
  renew(): void {
    if (this.#asking || this.#held.size === 0) return
    this.#asking = true
    const sent_at = moment()
    const timer = setTimeout(this.#silence, SILENCE_MS)
    const leases = Array.from(this.#held.values(), ({ session }) => ({
      sid: session.sid,
      epoch: session.epoch,
    }))
    this.#link
      .ask('renew', { leases })
      .then(({ lost }) => {
        for (const { sid, epoch } of leases) {
          const held = this.#held.get(sid)
          if (held?.session.epoch !== epoch) continue
          if (lost.includes(sid)) held.session.lose()
          else held.renewed_at = sent_at
        }
      })
      .catch(() => undefined)
      .finally(() => {
        clearTimeout(timer)
        this.#asking = false
      })
  }

  close(): void {
    clearInterval(this.#timer)
  }

  #tick(): void {
    let due = false
    for (const { session, ttl_ms, renewed_at } of this.#held.values()) {
      const elapsed_ms = since(renewed_at)
      if (elapsed_ms > ttl_ms) session.lose()
      else if (elapsed_ms > ttl_ms / 3) due = true
    }
    if (due) this.renew()
  }
}
