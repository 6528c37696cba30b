/**
 * The relay as a program. With REDIS_URL it uses that Redis, else it starts a private one in the data folder. To a parent
 * process it says `{t: 'listening', port}`; with --hold-health, /healthz waits for the parent's `{t: 'healthy'}`.
 */
import { mkdir } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { BatonError, explain } from '@baton/shared/errors.ts'
import { pino } from 'pino'
import { startRelay } from './main.ts'
import { DEFAULTS, type RelayOptions } from './options.ts'
import { startRedis } from './redis-server.ts'

const CLIENT = fileURLToPath(new URL('../../client/dist', import.meta.url))

function options(): {
  port: number
  host: string
  data: string
  client: string
  accounts: number
  log: string
  metrics: RelayOptions['metrics']
  holdHealth: boolean
} {
  try {
    const { values } = parseArgs({
      strict: true,
      options: {
        port: { type: 'string' },
        host: { type: 'string' },
        data: { type: 'string' },
        client: { type: 'string' },
        accounts: { type: 'string' },
        log: { type: 'string' },
        metrics: { type: 'string' },
        'hold-health': { type: 'boolean' },
      },
    })
    return {
      port: whole('port', values.port, DEFAULTS.port, 0, 65_535),
      host: values.host ?? DEFAULTS.host,
      data: resolve(values.data ?? process.env['BATON_DATA'] ?? join(homedir(), '.baton')),
      client: values.client ?? CLIENT,
      accounts: whole('accounts', values.accounts, DEFAULTS.accounts_max, 1, 1_000_000),
      log: values.log ?? process.env['BATON_LOG'] ?? 'warn',
      metrics: addressOf(values.metrics),
      holdHealth: values['hold-health'] ?? false,
    }
  } catch (cause) {
    if (cause instanceof BatonError) throw cause
    throw new BatonError('usage', cause instanceof Error ? cause.message : '', { cause })
  }
}

/** `PORT`, of this machine alone, or `HOST:PORT`. */
function addressOf(text: string | undefined): RelayOptions['metrics'] {
  if (text === undefined) return undefined
  const [, host = '127.0.0.1', port] = /^(?:\[?([^\]]+)\]?:)?(\d+)$/.exec(text) ?? []
  if (port === undefined)
    throw new BatonError('usage', `--metrics takes PORT or HOST:PORT, not ${JSON.stringify(text)}.`)
  return { host, port: whole('metrics', port, 0, 0, 65_535) }
}

function whole(name: string, text: string | undefined, fallback: number, min: number, max: number): number {
  const value = text === undefined ? fallback : Number(text)
  if (Number.isInteger(value) && value >= min && value <= max) return value
  throw new BatonError(
    'usage',
    `--${name} takes a whole number from ${min} to ${max}, not ${JSON.stringify(text)}.`,
  )
}

/** Times for tests and unusual networks, from the environment. */
function times(): { lease_ms: number; heartbeat_ms: number } {
  return {
    lease_ms: whole('BATON_LEASE_MS', process.env['BATON_LEASE_MS'], DEFAULTS.lease_ms, 100, 600_000),
    heartbeat_ms: whole(
      'BATON_HEARTBEAT_MS',
      process.env['BATON_HEARTBEAT_MS'],
      DEFAULTS.heartbeat_ms,
      50,
      60_000,
    ),
  }
}

async function makeFolder(data: string): Promise<void> {
  try {
    await mkdir(data, { recursive: true, mode: 0o700 })
  } catch (cause) {
    throw new BatonError('data-folder', `(${data}: ${(cause as NodeJS.ErrnoException).code ?? ''})`, {
      cause,
    })
  }
}

async function main(): Promise<void> {
  const { port, host, data, client, accounts, log: level, metrics, holdHealth } = options()
  const log = pino({ level, name: 'relay' }, pino.destination({ dest: 2, sync: true }))
  await makeFolder(data)
  const told = untilTold()
  const url = process.env['REDIS_URL']
  const redis = url ? undefined : await startRedis({ dataDir: data, log })
  let isUp = !holdHealth
  process.on('message', (said) => {
    if (typeof said === 'object' && said !== null && 't' in said && said.t === 'healthy') isUp = true
  })
  try {
    const relay = await startRelay({
      ...{ port, host, log, ...times(), accounts_max: accounts, isUp: () => isUp },
      ...(metrics ? { metrics } : {}),
      ...{ redis: url ?? redis?.path ?? '', clientDir: client },
      ...(redis ? { dataDir: data } : {}),
    })
    if (process.send) process.send({ t: 'listening', port: relay.port })
    else process.stdout.write(`relay listening on ${relay.url}\n`)
    await told
    await relay.close()
  } finally {
    await redis?.close()
  }
}

/** SIGTERM, SIGINT, SIGHUP, or the end of the process that started this one. */
function untilTold(): Promise<void> {
  return new Promise((resolve) => {
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.on(signal, () => resolve())
    process.once('disconnect', () => resolve())
  })
}

try {
  await main()
  process.exit(0)
} catch (error) {
  process.stderr.write(`baton: ${explain(error)}\n`)
  process.exit(1)
}
