/**
 * The connections to Redis: one for commands, one that listens. Both reconnect by themselves. While Redis is away every call
 * fails at once with `store-down` instead of waiting in a queue: the peer knows best whether to try again.
 */
import { randomBytes } from 'node:crypto'
import { BatonError } from '@baton/shared/errors.ts'
import { Redis } from 'ioredis'
import type { Logger } from 'pino'
import { relayKeys } from './keys.ts'
import { loadScripts } from './scripts.ts'

const COMMAND_MS = 5_000
const RETRY_MS_MAX = 1_000

export interface Store {
  redis: Redis
  listener: Redis
  /** The store's id; made when there is none (F23). */
  id: () => Promise<string>
  /** The relay's id, shared by all processes of this store. */
  relayId: () => Promise<string>
  close: () => void
}

/** Connects. `url`: `redis://…` or the path of a unix socket. Throws BatonError `store-down`. */
export async function openStore(url: string, log: Logger): Promise<Store> {
  const redis = client(url, log, 'commands')
  const listener = client(url, log, 'notices')
  // Before whatever else is sent on this connection: see loadScripts.
  redis.on('ready', () => {
    loadScripts(redis).catch((error: unknown) => log.warn({ err: String(error) }, 'scripts not loaded'))
  })
  try {
    await Promise.all([redis.connect(), listener.connect()])
  } catch (cause) {
    redis.disconnect()
    listener.disconnect()
    throw new BatonError('store-down', `(${withoutSecret(url)})`, { cause })
  }
  await tellDurability(redis, log)
  return {
    redis,
    listener,
    id: () => lasting(redis, relayKeys.store),
    relayId: () => lasting(redis, relayKeys.relay),
    close: () => {
      for (const connection of [redis, listener]) {
        connection.removeAllListeners('close')
        connection.disconnect()
      }
    },
  }
}

function client(url: string, log: Logger, role: string): Redis {
  const redis = new Redis(url, {
    lazyConnect: true,
    connectionName: `baton-relay-${role}`,
    enableOfflineQueue: false,
    // With the queue flushed at each lost connection, calls in flight fail rather than run twice.
    maxRetriesPerRequest: 0,
    commandTimeout: COMMAND_MS,
    retryStrategy: (times) => Math.min(50 * times, RETRY_MS_MAX),
  })
  redis.on('error', (error) => log.debug({ role, err: error.message }, 'redis connection'))
  redis.on('close', () => log.warn({ role }, 'redis connection lost'))
  return redis
}

/** A random id that stays the same as long as the data does. */
async function lasting(redis: Redis, key: string): Promise<string> {
  await redis.set(key, randomBytes(16).toString('base64url'), 'NX')
  return (await redis.get(key)) ?? ''
}

/** Says so when an acknowledged write may be lost. A Redis that hides its configuration is not asked twice. */
async function tellDurability(redis: Redis, log: Logger): Promise<void> {
  try {
    const [, appendonly] = await redis.config('GET', 'appendonly')
    const [, appendfsync] = await redis.config('GET', 'appendfsync')
    if (appendonly !== 'yes') log.warn('Redis writes no AOF: a crash of Redis loses acknowledged entries')
    else if (appendfsync !== 'always')
      log.warn({ appendfsync }, 'a power cut may lose the last acknowledged entries')
  } catch {
    log.info('Redis does not tell its configuration; durability is unknown')
  }
}

function withoutSecret(url: string): string {
  return url.replace(/\/\/[^@/]*@/, '//')
}

/** Is this an error of the way to Redis, or of its disk, rather than of the call? */
export function storeErrorOf(error: unknown): BatonError | undefined {
  if (error instanceof BatonError || !(error instanceof Error)) return undefined
  if (/^MISCONF|No space left/.test(error.message)) return new BatonError('disk-full', '', { cause: error })
  const down =
    error.name === 'MaxRetriesPerRequestError' ||
    /Connection is closed|isn't writeable|Command timed out|ECONN|ENOENT|EPIPE|^LOADING|^READONLY|^CLUSTERDOWN/.test(
      error.message,
    )
  return down ? new BatonError('store-down', '', { cause: error }) : undefined
}
