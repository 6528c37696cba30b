/**
 * Looks again, so that no lost message, crash or race leaves a session stranded (F20): at every session with work or a lease
 * once a sweep, and bit by bit at all the others, from which it also repairs the indexes. However many relays there are, one
 * sweeps at a time.
 */
import type { Redis } from 'ioredis'
import type { Logger } from 'pino'
import { accountKeys, relayKeys } from './keys.ts'
import type { Scheduler } from './scheduler.ts'
import { hasWork, readState } from './sessions.ts'

/** Sessions without work that one sweep looks at. */
const REPAIRS_A_SWEEP = 100
const TURN_SWEEPS = 4

export class Sweeper {
  readonly #redis: Redis
  readonly #scheduler: Scheduler
  readonly #sweep_ms: number
  readonly #log: Logger
  readonly #name: string
  #repairs: AsyncGenerator<void> | undefined
  /** By account: how far its sum was from its sessions at the last walk. */
  readonly #drifts = new Map<string, number>()
  #mine_until = 0

  constructor(redis: Redis, scheduler: Scheduler, sweep_ms: number, name: string, log: Logger) {
    this.#redis = redis
    this.#scheduler = scheduler
    this.#sweep_ms = sweep_ms
    this.#name = name
    this.#log = log
  }

  /** One sweep, unless another relay has it. Errors are logged; the next sweep tries again. */
  async sweep(): Promise<void> {
    try {
      if (!(await this.#isMine())) return
      for (const account of await this.#redis.smembers(relayKeys.accounts)) {
        const sids = await this.#redis.smembers(accountKeys(account).active)
        await Promise.all(sids.map((sid) => this.#scheduler.sweep(account, sid)))
        await this.#scheduler.offerAll(account)
      }
      await this.#repairSome()
    } catch (error) {
      this.#log.debug({ err: String(error) }, 'sweep not finished')
    }
  }

  /**
   * Is it this relay's turn? A turn lasts some sweeps and then lapses; whoever comes first has the next one. So an idle relay
   * writes to the disk every few seconds only, and one that died is missed no longer than that.
   */
  async #isMine(): Promise<boolean> {
    const now = performance.now()
    if (now < this.#mine_until) return true
    const turn_ms = TURN_SWEEPS * this.#sweep_ms
    if ((await this.#redis.set(relayKeys.sweep, this.#name, 'PX', turn_ms, 'NX')) === null) return false
    // Counted from before the call, so that two relays hardly ever think that it is theirs.
    this.#mine_until = now + turn_ms
    return true
  }

  async #repairSome(): Promise<void> {
    this.#repairs ??= this.#repairAll()
    for (let i = 0; i < REPAIRS_A_SWEEP; i++) {
      const { done } = await this.#repairs.next()
      if (done) {
        this.#repairs = undefined
        return
      }
    }
  }

  /** Walks over every session of every account, one a step. */
  async *#repairAll(): AsyncGenerator<void> {
    for (const account of await this.#redis.smembers(relayKeys.accounts)) {
      const keys = accountKeys(account)
      const stored = Number((await this.#redis.get(keys.usage)) ?? 0)
      let bytes = 0
      for (const sid of await this.#redis.smembers(keys.sessions)) {
        const state = await readState(this.#redis, sid)
        if (state?.account === account) {
          bytes += state.bytes
          const listed = (await this.#redis.sismember(keys.active, sid)) === 1
          if (!listed && (hasWork(state) || state.holder !== '')) {
            this.#log.info({ sid }, 'found a session that nobody looked after')
            await this.#scheduler.sweep(account, sid)
          }
        }
        yield
      }
      await this.#repairUsage(account, bytes - stored)
      for (const [sid, holder] of Object.entries(await this.#redis.hgetall(keys.leases))) {
        const state = await readState(this.#redis, sid)
        if (!state) await this.#redis.hdel(keys.leases, sid)
        else if (state.holder !== holder) await this.#scheduler.changed(account, sid)
      }
    }
  }

  /**
   * Puts an account's sum of stored bytes right by what it is off. What relays have yet to add to it looks like an error, too, but
   * only for a moment: an error counts that two walks in a row have found alike. So an account that never rests is put right when it does.
   */
  async #repairUsage(account: string, drift: number): Promise<void> {
    if (drift !== 0 && this.#drifts.get(account) === drift) {
      // Added rather than set, so that what a relay adds at the same time stays.
      await this.#redis.incrby(accountKeys(account).usage, drift)
      this.#drifts.delete(account)
    } else this.#drifts.set(account, drift)
  }
}
