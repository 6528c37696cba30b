/**
 * Brings sessions that have work and runners that have room together, those that wait longest first. An offer binds nobody:
 * whoever claims first has the session (F16). So offering too often is harmless, and an offer that nobody takes is made again
 * by the sweeper (F19, F20).
 */
import type { Redis } from 'ioredis'
import { accountChannel, accountKeys, sessionChannel, sessionKeys } from './keys.ts'
import { rank } from './placing.ts'
import type { Presence } from './presence.ts'
import { run } from './scripts.ts'
import { hasWork, readState, type SessionState } from './sessions.ts'

/** States read at once while looking for those that can be offered. */
const PAGE = 50

export class Scheduler {
  readonly #redis: Redis
  readonly #presence: Presence
  readonly #offer_ms: number
  /** Accounts that are being looked through, and whether to look again. */
  readonly #looks = new Map<string, { done: Promise<void>; again?: Promise<void> }>()

  constructor(redis: Redis, presence: Presence, offer_ms: number) {
    this.#redis = redis
    this.#presence = presence
    this.#offer_ms = offer_ms
  }

  /** Call after whatever may have given a session work, a holder, or none. Makes the offers that follow from it. */
  async changed(account: string, sid: string): Promise<void> {
    const state = await readState(this.#redis, sid)
    // The look is sent behind the index and sees it; the disk syncs once for both.
    await Promise.all([this.#index(account, sid, state), this.offerAll(account)])
  }

  /** Ends the lease if it has run out, and corrects the indexes. Makes no offers. */
  async sweep(account: string, sid: string): Promise<void> {
    const { state, journal, inbox } = sessionKeys(sid)
    await run(
      this.#redis,
      'expire',
      { state, journal, inbox },
      {
        account,
        sid,
        session_channel: sessionChannel(sid),
        account_channel: accountChannel(account),
      },
    )
    await this.#index(account, sid, await readState(this.#redis, sid))
  }

  /** Offers whatever of the account waits for a runner. One look at a time; who comes meanwhile shares the next one. */
  offerAll(account: string): Promise<void> {
    const look = this.#looks.get(account)
    if (!look) return this.#look(account)
    look.again ??= look.done.then(
      () => this.#look(account),
      () => this.#look(account),
    )
    return look.again
  }

  #look(account: string): Promise<void> {
    const done = this.#offerWaiting(account).finally(() => this.#looks.delete(account))
    this.#looks.set(account, { done })
    return done
  }

  /** Sends what it writes before it waits for anything. */
  async #index(account: string, sid: string, state: SessionState | undefined): Promise<void> {
    if (state?.account !== account) return
    const { active, leases, waiting } = accountKeys(account)
    const isFree = state.holder === ''
    const works = hasWork(state)
    const [, , changes] = await Promise.all([
      works || !isFree ? this.#redis.sadd(active, sid) : this.#settle(account, sid),
      works && isFree
        ? this.#redis.zadd(waiting, String(state.waits_since), sid)
        : this.#redis.zrem(waiting, sid),
      isFree ? this.#redis.hdel(leases, sid) : this.#redis.hset(leases, sid, state.holder),
    ])
    if (changes === 1) await this.#redis.publish(accountChannel(account), 'runners')
  }

  /** Takes a session without work out of the index, and puts it back if work came in between. */
  async #settle(account: string, sid: string): Promise<void> {
    const { active } = accountKeys(account)
    if ((await this.#redis.srem(active, sid)) === 0) return
    const state = await readState(this.#redis, sid)
    if (state && (hasWork(state) || state.holder !== '')) await this.#redis.sadd(active, sid)
  }

  /** Offers those that wait, the longest first, as far as there is room, and tells runners that are full of the rest. */
  async #offerWaiting(account: string): Promise<void> {
    const { waiting, leases } = accountKeys(account)
    const sids = await this.#redis.zrange(waiting, '0', '-1')
    if (sids.length === 0) return
    const [runners, held] = await Promise.all([this.#presence.runners(account), this.#redis.hkeys(leases)])
    const room = new Map(runners.map(({ device, capacity, held: holds }) => [device, capacity - holds]))
    const take = (device: string): unknown => room.set(device, (room.get(device) ?? 0) - 1)
    const crowd = new Map<string, number>()
    const counted = new Set(held)
    for (let at = 0; at < sids.length; at += PAGE) {
      const page = await this.#states(account, sids.slice(at, at + PAGE))
      // Claimed a moment ago, and not in the index yet.
      for (const [sid, { holder }] of page) if (holder !== '' && !counted.has(sid)) take(holder)
      for (const [sid, state] of page) {
        if (state.holder !== '' || !hasWork(state)) continue
        const fit = rank(state, runners).filter(({ capacity }) => capacity > 0)
        const free = fit.map(({ device }) => device).filter((device) => (room.get(device) ?? 0) > 0)
        if (free.length === 0) {
          for (const { device } of fit) crowd.set(device, (crowd.get(device) ?? 0) + 1)
          continue
        }
        const { device, isFirst } = await this.#offer(account, sid, free)
        // Whoever let an offer pass once may do so for ever: the others shall not wait for it.
        if (isFirst) take(device)
      }
    }
    for (const [device, count] of crowd)
      await this.#redis.publish(accountChannel(account), `crowded ${device} ${count}`)
  }

  /** Those of the account, by how long they wait now: since the index was read, some may have run and come back. */
  async #states(account: string, sids: string[]): Promise<[sid: string, state: SessionState][]> {
    const states = await Promise.all(
      sids.map(async (sid): Promise<[string, SessionState | undefined]> => [
        sid,
        await readState(this.#redis, sid),
      ]),
    )
    return states
      .filter((entry): entry is [string, SessionState] => entry[1]?.account === account)
      .toSorted(([, a], [, b]) => a.waits_since - b.waits_since)
  }

  /** Gives the runner that was chosen, or is still waited for, and whether it has not let an offer of this session pass yet. */
  async #offer(
    account: string,
    sid: string,
    candidates: string[],
  ): Promise<{ device: string; isFirst: boolean }> {
    const { state, offers } = sessionKeys(sid)
    const [code, device = '', round] = await run(
      this.#redis,
      'offer',
      { state, offers },
      {
        account,
        sid,
        patience_ms: this.#offer_ms,
        account_channel: accountChannel(account),
        candidates,
      },
    )
    return { device: String(device), isFirst: (code === 'offered' || code === 'waiting') && round === 1 }
  }
}
