/**
 * Which runners are there. A runner is online while its own process keeps pinging over an open connection (F5): its key in Redis
 * expires soon after the last sign of life, also when the relay that held the connection is gone.
 */
import type { RunnerInfo } from '@baton/shared/protocol.ts'
import type { Redis } from 'ioredis'
import { accountChannel, accountKeys, onlineKey } from './keys.ts'
import { run } from './scripts.ts'

/** What a runner says of itself with `serve`. */
export type Announcement = Pick<RunnerInfo, 'capacity' | 'tags' | 'body'>

type RunnerRecord = Omit<RunnerInfo, 'online' | 'held'>

export class Presence {
  readonly #redis: Redis
  readonly #ttl_ms: number

  constructor(redis: Redis, ttl_ms: number) {
    this.#redis = redis
    this.#ttl_ms = ttl_ms
  }

  async announce(account: string, device: string, connection: string, about: Announcement): Promise<void> {
    const record: RunnerRecord = { device, since: Date.now(), ...about }
    await this.#redis.hset(accountKeys(account).runners, device, JSON.stringify(record))
    await this.touch(account, device, connection)
    await this.#tell(account)
  }

  /** A sign of life. */
  async touch(account: string, device: string, connection: string): Promise<void> {
    await this.#redis.set(onlineKey(account, device), connection, 'PX', this.#ttl_ms)
  }

  async leave(account: string, device: string, connection: string): Promise<void> {
    const [code] = await run(this.#redis, 'leave', { online: onlineKey(account, device) }, { connection })
    if (code !== 'left') return
    const { runners } = accountKeys(account)
    const text = await this.#redis.hget(runners, device)
    if (text !== null) {
      const record: RunnerRecord = { ...(JSON.parse(text) as RunnerRecord), since: Date.now() }
      await this.#redis.hset(runners, device, JSON.stringify(record))
    }
    await this.#tell(account)
  }

  /** All runners that the account ever had. */
  async runners(account: string): Promise<RunnerInfo[]> {
    const keys = accountKeys(account)
    const [records, holders] = await Promise.all([
      this.#redis.hvals(keys.runners),
      this.#redis.hvals(keys.leases),
    ])
    return Promise.all(
      records.map(async (text) => {
        const record = JSON.parse(text) as RunnerRecord
        const online = (await this.#redis.exists(onlineKey(account, record.device))) === 1
        return { ...record, online, held: holders.filter((holder) => holder === record.device).length }
      }),
    )
  }

  async #tell(account: string): Promise<void> {
    await this.#redis.publish(accountChannel(account), 'runners')
  }
}
