/** What a relay can be told. Every number has a default that suits one person with some machines. */
import { LIMITS } from '@baton/shared/protocol.ts'
import type { Logger } from 'pino'

export interface Limits {
  /** Bytes of one frame; the peer is closed with `too-large` beyond. */
  frame_bytes: number
  blob_bytes: number
  /** Commands that may wait in one inbox. */
  inbox_commands: number
  sessions_per_account: number
  bytes_per_account: number
  /** Token bucket of one connection: a frame costs one, and one more for each 16 KiB. */
  frames_per_s: number
  frames_burst: number
  /** Asks of one connection that may be in work at once. */
  asks_in_flight: number
  /** Token buckets of one address: new connections, and attempts to take a pairing. */
  connects_per_s: number
  connects_burst: number
  pairings_per_min: number
  /** Bytes that may wait in one socket; a slower reader is closed and resumes by its cursor. */
  buffer_bytes: number
}

export interface RelayOptions {
  host: string
  /** 0: any free one; see RunningRelay.port. */
  port: number
  /** `redis://…`, or the path of a unix socket. */
  redis: string
  /** The built PWA. */
  clientDir: string | undefined
  /** Where the private Redis keeps its data; writes are refused while its disk has no room (`disk-full`). */
  dataDir: string | undefined
  /** Free bytes on that disk below which writes are refused. */
  disk_reserve_bytes: number
  /** How many accounts may ever sign in here. */
  accounts_max: number
  lease_ms: number
  heartbeat_ms: number
  /** From the socket's start to `welcome`. */
  handshake_ms: number
  /** Between two sweeps; see sweeper.ts. */
  sweep_ms: number
  /** Between two looks of a watcher that heard nothing. */
  poll_ms: number
  /** How long an offer may stay unanswered before the next runner gets it. */
  offer_ms: number
  /** How long a token for HTTP lives after the last sign of life of its connection. */
  token_ms: number
  /** Whether what starts together with the relay is up too; /healthz waits for it. */
  isUp: () => boolean
  limits: Limits
  /** Where Prometheus may ask for numbers (metrics.ts); undefined: nowhere. */
  metrics: { host: string; port: number } | undefined
  /** A pino logger, or the level of one that writes to standard error. */
  log: Logger | string
}

export const DEFAULT_LIMITS: Limits = {
  frame_bytes: LIMITS.frame_bytes,
  blob_bytes: LIMITS.blob_bytes,
  inbox_commands: LIMITS.inbox_commands,
  sessions_per_account: 1000,
  bytes_per_account: 8 * 2 ** 30,
  frames_per_s: 500,
  frames_burst: 2000,
  asks_in_flight: 512,
  connects_per_s: 5,
  connects_burst: 100,
  pairings_per_min: 20,
  buffer_bytes: 8 << 20,
}

export const DEFAULTS: Omit<RelayOptions, 'redis'> = {
  host: '127.0.0.1',
  port: 7788,
  clientDir: undefined,
  dataDir: undefined,
  disk_reserve_bytes: 64 << 20,
  accounts_max: 1,
  lease_ms: 10_000,
  heartbeat_ms: 5_000,
  handshake_ms: 10_000,
  sweep_ms: 1_000,
  poll_ms: 5_000,
  offer_ms: 3_000,
  token_ms: 3_600_000,
  isUp: () => true,
  metrics: undefined,
  limits: DEFAULT_LIMITS,
  log: 'info',
}
