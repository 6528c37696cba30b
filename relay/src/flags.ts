/** What the relay as a program is told: by flags, and where a container or a unit file would rather say it, by the environment. */
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { BatonError } from '@baton/shared/errors.ts'
import { DEFAULTS, type Limits, type RelayOptions } from './options.ts'

const CLIENT = fileURLToPath(new URL('../../client/dist', import.meta.url))
/** What may come at once, in seconds' worth of what may come in the long run. */
const FRAMES_BURST_S = DEFAULTS.limits.frames_burst / DEFAULTS.limits.frames_per_s
const CONNECTS_BURST_S = DEFAULTS.limits.connects_burst / DEFAULTS.limits.connects_per_s

export interface Flags extends Pick<RelayOptions, 'port' | 'host' | 'accounts_max' | 'metrics'> {
  lease_ms: number
  heartbeat_ms: number
  data: string
  client: string
  log: string
  limits: Limits
  /** /healthz waits for the parent process. */
  holdHealth: boolean
}

const OPTIONS = {
  port: { type: 'string' },
  host: { type: 'string' },
  data: { type: 'string' },
  client: { type: 'string' },
  accounts: { type: 'string' },
  sessions: { type: 'string' },
  storage: { type: 'string' },
  frames: { type: 'string' },
  connects: { type: 'string' },
  pairings: { type: 'string' },
  log: { type: 'string' },
  metrics: { type: 'string' },
  json: { type: 'boolean' },
  'hold-health': { type: 'boolean' },
} as const

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>['values']

/** Throws BatonError `usage`. */
export function readFlags(args: string[], env: NodeJS.ProcessEnv): Flags {
  const values = parse(args)
  const time = (name: string, fallback: number, min: number, max: number): number =>
    whole({ name, text: env[name] }, fallback, min, max)
  return {
    port: whole({ name: '--port', text: values.port }, DEFAULTS.port, 0, 65_535),
    host: values.host ?? DEFAULTS.host,
    data: resolve(values.data ?? env['BATON_DATA'] ?? join(homedir(), '.baton')),
    client: values.client ?? CLIENT,
    accounts_max: whole(given('accounts', values, env), DEFAULTS.accounts_max, 1, 1_000_000),
    limits: limitsOf(values, env),
    log: values.log ?? env['BATON_LOG'] ?? 'warn',
    metrics: addressOf(values.metrics),
    holdHealth: values['hold-health'] ?? false,
    // For tests and unusual networks.
    lease_ms: time('BATON_LEASE_MS', DEFAULTS.lease_ms, 100, 600_000),
    heartbeat_ms: time('BATON_HEARTBEAT_MS', DEFAULTS.heartbeat_ms, 50, 60_000),
  }
}

function parse(args: string[]): Values {
  try {
    return parseArgs({ args, strict: true, options: OPTIONS }).values
  } catch (cause) {
    throw new BatonError('usage', cause instanceof Error ? cause.message : '', { cause })
  }
}

function limitsOf(values: Values, env: NodeJS.ProcessEnv): Limits {
  const { limits } = DEFAULTS
  const frames = whole(given('frames', values, env), limits.frames_per_s, 10, 100_000)
  const connects = whole(given('connects', values, env), limits.connects_per_s, 1, 100_000)
  return {
    ...limits,
    sessions_per_account: whole(given('sessions', values, env), limits.sessions_per_account, 1, 1_000_000),
    bytes_per_account: bytes(given('storage', values, env), limits.bytes_per_account),
    ...{ frames_per_s: frames, frames_burst: frames * FRAMES_BURST_S },
    ...{ connects_per_s: connects, connects_burst: connects * CONNECTS_BURST_S },
    pairings_per_min: whole(given('pairings', values, env), limits.pairings_per_min, 1, 100_000),
  }
}

interface Given {
  /** As the person wrote it. */
  name: string
  text: string | undefined
}

/** `--sessions`, else BATON_RELAY_SESSIONS; there an empty one is none. */
function given(flag: keyof typeof OPTIONS, values: Values, env: NodeJS.ProcessEnv): Given {
  const name = `BATON_RELAY_${flag.toUpperCase()}`
  const value = values[flag]
  return typeof value === 'string'
    ? { name: `--${flag}`, text: value }
    : { name, text: env[name] === '' ? undefined : env[name] }
}

/** `PORT`, of this machine alone, or `HOST:PORT`. */
function addressOf(text: string | undefined): RelayOptions['metrics'] {
  if (text === undefined) return undefined
  const [, host = '127.0.0.1', port] = /^(?:\[?([^\]]+)\]?:)?(\d+)$/.exec(text) ?? []
  if (port === undefined)
    throw new BatonError('usage', `--metrics takes PORT or HOST:PORT, not ${JSON.stringify(text)}.`)
  return { host, port: whole({ name: '--metrics', text: port }, 0, 0, 65_535) }
}

function whole({ name, text }: Given, fallback: number, min: number, max: number): number {
  const value = text === undefined ? fallback : Number(text)
  if (text?.trim() !== '' && Number.isInteger(value) && value >= min && value <= max) return value
  throw new BatonError(
    'usage',
    `${name} takes a whole number from ${min} to ${max}, not ${JSON.stringify(text)}.`,
  )
}

const UNITS = { M: 2 ** 20, G: 2 ** 30, T: 2 ** 40 } as const
/** A session with one checkpoint of middling size should fit. */
const STORAGE_MIN = 64 * UNITS.M
const STORAGE_MAX = 1024 * UNITS.T

/** `512M`, `8G`, `2T`. */
function bytes({ name, text }: Given, fallback: number): number {
  if (text === undefined) return fallback
  const [, digits = '', unit = ''] =
    /^(\d{1,6}(?:\.\d{1,3})?)([MGT])B?$/.exec(text.trim().toUpperCase()) ?? []
  const value = Math.round(Number(digits) * (UNITS[unit as keyof typeof UNITS] ?? 0))
  if (value >= STORAGE_MIN && value <= STORAGE_MAX) return value
  throw new BatonError(
    'usage',
    `${name} takes a size from 64M to 1024T, such as 512M, 8G or 2T, not ${JSON.stringify(text)}.`,
  )
}
