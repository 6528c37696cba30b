/**
 * Brings sessions that have work and runners that have room together. An offer binds nobody: whoever claims first has the
 * session (F16). So offering too often is harmless, and an offer that nobody takes is made again by the sweeper (F19, F20).
 */
import type { Placement, RunnerInfo } from '@baton/shared/protocol.ts'
import type { Redis } from 'ioredis'
import { accountChannel, accountKeys, sessionChannel, sessionKeys } from './keys.ts'
import type { Presence } from './presence.ts'
import { run } from './scripts.ts'
import { hasWork, readState, type SessionState } from './sessions.ts'

/**
 * Runners that may take the session, best first: the preferred one, then those of the pool, then by how little they hold. A
 * pinned session stays with its runner or pool; one without a checkpoint stays with its preferred runner, because its workspace
 * exists nowhere else.
 */
export function rank(place: Placement, checkpoint: number, runners: RunnerInfo[]): string[] {
  const { prefer, pool, pin = false } = place
  const score = (runner: RunnerInfo): number => {
    if (runner.device === prefer) return 0
    if (prefer !== undefined && (pin || checkpoint === 0)) return Number.POSITIVE_INFINITY
    if (pool === undefined) return 2
    if (runner.tags.includes(pool)) return 1
    return pin ? Number.POSITIVE_INFINITY : 2
  }
  return runners
    .filter(
      (runner) => runner.online && runner.held < runner.capacity && score(runner) < Number.POSITIVE_INFINITY,
    )
    .toSorted((a, b) => score(a) - score(b) || a.held - b.held || (a.device < b.device ? -1 : 1))
    .map((runner) => runner.device)
}

export class Scheduler {
  readonly #redis: Redis
  readonly #presence: Presence
  readonly #offer_ms: number

  constructor(redis: Redis, presence: Presence, offer_ms: number) {
    this.#redis = redis
    this.#presence = presence
    this.#offer_ms = offer_ms
  }

  /** Call after whatever may have given a session work, a holder, or none. Offers it when it has work and is free. */
  async changed(account: string, sid: string): Promise<void> {
    const state = await readState(this.#redis, sid)
    if (state?.account !== account) return
    const { active, leases } = accountKeys(account)
    const isFree = state.holder === ''
    const [, changes] = await Promise.all([
      hasWork(state) || !isFree ? this.#redis.sadd(active, sid) : this.#settle(account, sid),
      isFree ? this.#redis.hdel(leases, sid) : this.#redis.hset(leases, sid, state.holder),
      hasWork(state) && isFree ? this.#offer(account, sid, state) : undefined,
    ])
    if (changes === 1) await this.#redis.publish(accountChannel(account), 'runners')
  }

  /** Offers whatever of the account waits for a runner. */
  async offerAll(account: string): Promise<void> {
    const sids = await this.#redis.smembers(accountKeys(account).active)
    await Promise.all(sids.map((sid) => this.changed(account, sid)))
  }

  /** Ends the lease if it has run out, then as `changed`. */
  async sweep(account: string, sid: string): Promise<void> {
    const { state, journal } = sessionKeys(sid)
    await run(
      this.#redis,
      'expire',
      { state, journal },
      {
        account,
        sid,
        session_channel: sessionChannel(sid),
        account_channel: accountChannel(account),
      },
    )
    await this.changed(account, sid)
  }

  /** Takes a session without work out of the index, and puts it back if work came in between. */
  async #settle(account: string, sid: string): Promise<void> {
    const { active } = accountKeys(account)
    if ((await this.#redis.srem(active, sid)) === 0) return
    const state = await readState(this.#redis, sid)
    if (state && (hasWork(state) || state.holder !== '')) await this.#redis.sadd(active, sid)
  }

  async #offer(account: string, sid: string, state: SessionState): Promise<void> {
    const candidates = rank(state.place, state.checkpoint, await this.#presence.runners(account))
    if (candidates.length === 0) return
    const keys = sessionKeys(sid)
    await run(
      this.#redis,
      'offer',
      { state: keys.state, offers: keys.offers },
      {
        account,
        sid,
        patience_ms: this.#offer_ms,
        account_channel: accountChannel(account),
        candidates,
      },
    )
  }
}
