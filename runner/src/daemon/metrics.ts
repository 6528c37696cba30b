/**
 * Numbers to watch and to scale by, in Prometheus' text format: how many and how long, never who or what (I9). Served at an
 * address of their own.
 */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { BatonError } from '@baton/shared/errors.ts'
import { listenError } from '@baton/shared/listening.ts'
import type { Counter, Histogram } from 'prom-client'
import { listen } from '../happenings.ts'
import { threads } from '../vm/threads.ts'

/** What the runner says of itself when it is asked. */
export interface RunnerNumbers {
  held: number
  capacity: number
  /** Sessions that wait for room here, as the relay said last. */
  waiting: number
  connected: boolean
}

export interface RunningMetrics {
  url: string
  close: () => Promise<void>
}

interface Collected {
  text: () => Promise<string>
  contentType: string
  end: () => void
}

const SECONDS = [0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 15, 60, 300]

/** `PORT`, of this machine alone, or `HOST:PORT`. Throws BatonError `usage`. */
export function metricsAddress(text: string): { host: string; port: number } {
  const [, host = '127.0.0.1', port = ''] = /^(?:\[?([^\]]+)\]?:)?(\d{1,5})$/.exec(text) ?? []
  if (port === '' || Number(port) > 65_535)
    throw new BatonError('usage', `--metrics takes PORT or HOST:PORT, not ${JSON.stringify(text)}.`)
  return { host, port: Number(port) }
}

/** Counts from now on, and answers `GET /metrics`. Throws BatonError `port-taken`, `address-unusable`. */
export async function serveMetrics(
  address: { host: string; port: number },
  numbers: () => RunnerNumbers,
): Promise<RunningMetrics> {
  const { text, contentType, end } = await collect(numbers)
  const server = createServer((request, response) => {
    if (request.method !== 'GET' || request.url !== '/metrics') {
      response.writeHead(404).end()
      return
    }
    text().then(
      (lines) => response.writeHead(200, { 'content-type': contentType }).end(lines),
      () => response.writeHead(500).end(),
    )
  })
  // Asked for while the runner lives, and no reason for it to live on.
  server.unref()
  await new Promise<void>((resolve, reject) => {
    // Also later: too many open files are no reason to end sessions.
    server.on('error', (cause) => reject(listenError(cause, address)))
    server.listen(address, resolve)
  })
  const { port } = server.address() as AddressInfo
  const { host } = address
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${port}/metrics`,
    close: () => {
      end()
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

async function collect(numbers: () => RunnerNumbers): Promise<Collected> {
  // Most runners are never asked.
  const prometheus = await import('prom-client')
  const registry = new prometheus.Registry()
  const registers = [registry]
  prometheus.collectDefaultMetrics({ register: registry })
  /** Called before each answer. */
  const readers: (() => void)[] = []
  const gauge = (name: string, help: string, read: () => number): void => {
    const metric = new prometheus.Gauge({ name, help, registers })
    readers.push(() => metric.set(read()))
  }
  gauge('baton_runner_sessions_held', 'Sessions that this runner holds.', () => numbers().held)
  gauge('baton_runner_capacity', 'Sessions that it can hold.', () => numbers().capacity)
  gauge('baton_runner_sessions_waiting', 'Sessions that wait for room here.', () => numbers().waiting)
  gauge('baton_runner_connected', '1: connected to its relay.', () => Number(numbers().connected))
  gauge('baton_runner_guests', 'Guests in memory.', () => threads.guests)
  gauge('baton_runner_threads', 'Threads that run them.', () => threads.count)
  const counter = (name: string, help: string, labelNames: string[] = []): Counter =>
    new prometheus.Counter({ name, help, labelNames, registers })
  const histogram = (name: string, help: string, labelNames: string[] = []): Histogram =>
    new prometheus.Histogram({ name, help, labelNames, buckets: SECONDS, registers })
  const slices = counter('baton_runner_slices_total', 'Slices of time given to guests.')
  readers.push(() => {
    slices.reset()
    slices.inc(threads.slices)
  })
  const offers = counter('baton_runner_offers_total', 'Sessions offered to this runner.')
  const waits = histogram(
    'baton_runner_wait_seconds',
    'Time that a session waited for a runner until this one took it.',
  )
  const endings = counter('baton_runner_endings_total', 'Sessions that left this runner, by how.', ['how'])
  const effects = counter('baton_runner_effects_total', 'Effects performed, by kind and result.', [
    'kind',
    'result',
  ])
  const times = histogram('baton_runner_effect_seconds', 'How long effects took, by kind.', ['kind'])
  const tokens = counter('baton_runner_model_tokens_total', 'Tokens of model calls, by what they were.', [
    'type',
  ])
  const blackout = histogram(
    'baton_runner_handoff_blackout_seconds',
    'Time in which a session that moved here ran nowhere: from the lease given back there to the guest restored here.',
  )
  const ends = [
    listen('offer', () => offers.inc()),
    listen('claim', ({ waited_ms }) => waits.observe(waited_ms / 1000)),
    listen('ending', ({ how }) => endings.inc({ how })),
    listen('arrival', ({ blackout_ms }) => blackout.observe(blackout_ms / 1000)),
    listen('effect', ({ kind, ok, ms, tokens: used = {} }) => {
      effects.inc({ kind, result: ok ? 'ok' : 'error' })
      times.observe({ kind }, ms / 1000)
      for (const [type, count] of Object.entries(used)) tokens.inc({ type }, count)
    }),
  ]
  return {
    text: () => {
      for (const read of readers) read()
      return registry.metrics()
    },
    contentType: registry.contentType,
    end: () => {
      for (const stop of ends) stop()
      registry.clear()
    },
  }
}
