/** Limits that need memory: how fast, and how much an account has stored. */
import { statfs } from 'node:fs/promises'
import { BatonError } from '@baton/shared/errors.ts'
import type { Redis } from 'ioredis'
import { accountKeys } from './keys.ts'

/** Lets `burst` through at once and `per_s` a second in the long run. */
export class TokenBucket {
  readonly #per_s: number
  readonly #burst: number
  #tokens: number
  #at: number

  constructor(per_s: number, burst: number, now_ms: number) {
    this.#per_s = per_s
    this.#burst = burst
    this.#tokens = burst
    this.#at = now_ms
  }

  /** Takes `cost`, or takes nothing and says false. */
  take(cost: number, now_ms: number): boolean {
    this.#refill(now_ms)
    if (this.#tokens < cost) return false
    this.#tokens -= cost
    return true
  }

  /** Nothing has been taken for so long that a new bucket would be the same. */
  isFull(now_ms: number): boolean {
    this.#refill(now_ms)
    return this.#tokens === this.#burst
  }

  #refill(now_ms: number): void {
    const elapsed_s = Math.max(0, now_ms - this.#at) / 1000
    this.#tokens = Math.min(this.#burst, this.#tokens + elapsed_s * this.#per_s)
    this.#at = now_ms
  }
}

/** A bucket for each address. Bounded: full buckets are forgotten when there are many. */
export class AddressLimit {
  readonly #buckets = new Map<string, TokenBucket>()
  readonly #per_s: number
  readonly #burst: number

  constructor(per_s: number, burst: number) {
    this.#per_s = per_s
    this.#burst = burst
  }

  take(address: string, now_ms: number): boolean {
    let bucket = this.#buckets.get(address)
    if (!bucket) {
      if (this.#buckets.size >= ADDRESSES_MAX) this.#forget(now_ms)
      if (this.#buckets.size >= ADDRESSES_MAX) return false
      bucket = new TokenBucket(this.#per_s, this.#burst, now_ms)
      this.#buckets.set(address, bucket)
    }
    return bucket.take(1, now_ms)
  }

  #forget(now_ms: number): void {
    for (const [address, bucket] of this.#buckets) if (bucket.isFull(now_ms)) this.#buckets.delete(address)
  }
}

const ADDRESSES_MAX = 10_000

/**
 * Bytes stored by account. The sum in Redis is brought up to date once a sweep, so an account may exceed its limit by what it
 * sends in that time; each session's own count is exact, and the sweeper repairs the sum from them.
 */
export class Usage {
  readonly #redis: Redis
  readonly #bytes_max: number
  readonly #known = new Map<string, number>()
  readonly #fresh = new Map<string, number>()

  constructor(redis: Redis, bytes_max: number) {
    this.#redis = redis
    this.#bytes_max = bytes_max
  }

  /** Throws BatonError `storage-limit`. */
  check(account: string): void {
    const { bytes, bytes_max } = this.of(account)
    if (bytes >= bytes_max) throw new BatonError('storage-limit', `(${bytes} of ${bytes_max} bytes)`)
  }

  /** Bytes that an account has stored, as far as is known here, and how many it may. */
  of(account: string): { bytes: number; bytes_max: number } {
    const bytes = (this.#known.get(account) ?? 0) + (this.#fresh.get(account) ?? 0)
    return { bytes: Math.max(0, bytes), bytes_max: this.#bytes_max }
  }

  add(account: string, bytes: number): void {
    this.#fresh.set(account, (this.#fresh.get(account) ?? 0) + bytes)
  }

  /** Learns what an account has stored. */
  async load(account: string): Promise<void> {
    this.#known.set(account, Number((await this.#redis.get(accountKeys(account).usage)) ?? 0))
  }

  /** Adds what is new to the sums in Redis and learns what others added. */
  async flush(): Promise<void> {
    // Also accounts that send blobs here while they are connected to another relay.
    const accounts = new Set([...this.#known.keys(), ...this.#fresh.keys()])
    await Promise.all(
      [...accounts].map(async (account) => {
        const fresh = this.#fresh.get(account) ?? 0
        // Adding nothing would be a write to the disk all the same.
        if (fresh === 0) return this.load(account)
        this.#known.set(account, await this.#redis.incrby(accountKeys(account).usage, fresh))
        const left = (this.#fresh.get(account) ?? 0) - fresh
        if (left === 0) this.#fresh.delete(account)
        else this.#fresh.set(account, left)
      }),
    )
  }
}

/** Is there room on the disk that the private Redis writes to? Looked at once a sweep. */
export class DiskRoom {
  readonly #dir: string | undefined
  readonly #reserve_bytes: number
  #free_bytes = Number.POSITIVE_INFINITY

  constructor(dir: string | undefined, reserve_bytes: number) {
    this.#dir = dir
    this.#reserve_bytes = reserve_bytes
  }

  async look(): Promise<void> {
    if (this.#dir === undefined) return
    const { bavail, bsize } = await statfs(this.#dir)
    this.#free_bytes = bavail * bsize
  }

  /** Throws BatonError `disk-full`. Redis itself would end at its first failed write, so this comes before. */
  check(): void {
    if (this.#free_bytes < this.#reserve_bytes) {
      throw new BatonError(
        'disk-full',
        `(${megabytes(this.#free_bytes)} free, ${megabytes(this.#reserve_bytes)} kept in reserve)`,
      )
    }
  }
}

function megabytes(bytes: number): string {
  return `${Math.floor(bytes / 2 ** 20)} MB`
}
