/**
 * Numbers to watch and to scale by, in Prometheus' text format. They say how many and how long, never who: no account, session
 * or device is a label (I9). What stands in Redis is counted when it is asked for, so every relay of a store tells the same.
 */
import { createServer, type Server } from 'node:http'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { AddressInfo } from 'node:net'
import { BatonError } from '@baton/shared/errors.ts'
import { Status } from '@baton/shared/protocol.ts'
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Context } from './context.ts'
import { accountKeys, relayKeys, sessionKeys } from './keys.ts'
import type { Placed } from './placing.ts'
import { SCRIPT_CHANNEL, type ScriptRun } from './scripts.ts'
import { readState } from './sessions.ts'

export interface MetricsAddress {
  host: string
  port: number
}

/** What a session that waits for a runner waits for: room anywhere, or one machine that no other can stand in for. */
type WaitsFor = 'room' | 'machine'

export interface RunningMetrics {
  url: string
  close: () => Promise<void>
}

const PAGE = 200

export class Metrics {
  readonly #registry = new Registry()
  readonly #context: Context
  readonly #listener: (message: unknown) => void
  readonly #sessions = this.#gauge('baton_sessions', 'Sessions, by status.', ['status'])
  readonly #held = this.#gauge('baton_sessions_held', 'Sessions that a runner holds.')
  readonly #waiting = this.#gauge(
    'baton_sessions_waiting',
    'Sessions that have work and no runner: they wait for room, or for the one machine that may take them.',
    ['waits_for'],
  )
  readonly #oldest = this.#gauge(
    'baton_oldest_waiting_seconds',
    'How long the oldest session with work waits for a runner; 0: none does.',
    ['waits_for'],
  )
  readonly #runners = this.#gauge('baton_runners_online', 'Runners that are there.')
  readonly #capacity = this.#gauge(
    'baton_capacity',
    'Sessions that the runners that are there can hold together.',
  )
  readonly #connections = this.#gauge('baton_relay_connections', 'Connections of this relay.')
  readonly #redis = this.#gauge('baton_redis_ping_seconds', 'One round trip to Redis, measured just now.')
  readonly #scripts = new Counter({
    name: 'baton_scripts_total',
    help: 'Changes of state, by script (offer, claim, append, command, …) and what came of them.',
    labelNames: ['script', 'code'],
    registers: [this.#registry],
  })
  readonly #latency = new Histogram({
    name: 'baton_script_seconds',
    help: 'Time from asking Redis for a change of state to its answer, by script.',
    labelNames: ['script'],
    buckets: [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1, 5],
    registers: [this.#registry],
  })
  readonly #connectionCount: () => number

  constructor(context: Context, connections: () => number) {
    this.#context = context
    this.#connectionCount = connections
    collectDefaultMetrics({ register: this.#registry })
    this.#listener = (message) => {
      const { script, code, ms } = message as ScriptRun
      this.#scripts.inc({ script, code })
      this.#latency.observe({ script }, ms / 1000)
    }
    subscribe(SCRIPT_CHANNEL, this.#listener)
  }

  close(): void {
    unsubscribe(SCRIPT_CHANNEL, this.#listener)
    this.#registry.clear()
  }

  /** Throws what Redis throws. */
  async text(): Promise<string> {
    await this.#count()
    return this.#registry.metrics()
  }

  get contentType(): string {
    return this.#registry.contentType
  }

  #gauge(name: string, help: string, labelNames: string[] = []): Gauge {
    return new Gauge({ name, help, labelNames, registers: [this.#registry] })
  }

  async #count(): Promise<void> {
    const { redis, presence } = this.#context
    const began = performance.now()
    const [seconds, micros] = await redis.time()
    this.#redis.set((performance.now() - began) / 1000)
    const now_ms = Number(seconds) * 1000 + Number(micros) / 1000
    const byStatus = new Map<string, number>(Status.options.map((status) => [status, 0]))
    const waits: Record<WaitsFor, { count: number; oldest_ms: number }> = {
      room: { count: 0, oldest_ms: 0 },
      machine: { count: 0, oldest_ms: 0 },
    }
    let [online, capacity, held] = [0, 0, 0]
    for (const account of await redis.smembers(relayKeys.accounts)) {
      const keys = accountKeys(account)
      for (const status of await this.#statuses(await redis.smembers(keys.sessions)))
        byStatus.set(status, (byStatus.get(status) ?? 0) + 1)
      held += await redis.hlen(keys.leases)
      for (const runner of await presence.runners(account)) {
        if (!runner.online) continue
        online++
        capacity += runner.capacity
      }
      for (const sid of await redis.zrange(keys.waiting, '0', '-1')) {
        const state = await readState(redis, sid)
        if (!state || state.holder !== '') continue
        const wait = waits[waitsFor(state)]
        wait.count++
        wait.oldest_ms = Math.max(wait.oldest_ms, now_ms - state.waits_since)
      }
    }
    for (const [status, count] of byStatus) this.#sessions.set({ status }, count)
    for (const [waits_for, { count, oldest_ms }] of Object.entries(waits)) {
      this.#waiting.set({ waits_for }, count)
      this.#oldest.set({ waits_for }, oldest_ms / 1000)
    }
    this.#held.set(held)
    this.#runners.set(online)
    this.#capacity.set(capacity)
    this.#connections.set(this.#connectionCount())
  }

  async #statuses(sids: string[]): Promise<string[]> {
    const statuses: string[] = []
    for (let at = 0; at < sids.length; at += PAGE) {
      const page = sids.slice(at, at + PAGE)
      const found = await Promise.all(
        page.map((sid) => this.#context.redis.hget(sessionKeys(sid).state, 'status')),
      )
      statuses.push(...found.filter((status) => status !== null))
    }
    return statuses
  }
}

function waitsFor({ place, checkpoint, unstored }: Omit<Placed, 'holders'>): WaitsFor {
  if (unstored !== '') return 'machine'
  return place.prefer !== undefined && (place.pin === true || checkpoint === 0) ? 'machine' : 'room'
}

/** Answers `GET /metrics` at an address of its own, so that it need not be open to the world. Throws BatonError `port-taken`. */
export async function serveMetrics(
  { host, port }: MetricsAddress,
  source: Pick<Metrics, 'text' | 'contentType'>,
): Promise<RunningMetrics> {
  const server = createServer((request, response) => {
    if (request.method !== 'GET' || request.url !== '/metrics') {
      response.writeHead(404).end()
      return
    }
    source.text().then(
      (text) => response.writeHead(200, { 'content-type': source.contentType }).end(text),
      () => response.writeHead(503).end(),
    )
  })
  await listen(server, host, port)
  const { port: taken } = server.address() as AddressInfo
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${taken}/metrics`,
    close: () => {
      server.closeAllConnections()
      return new Promise((resolve) => server.close(() => resolve()))
    },
  }
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      reject(cause.code === 'EADDRINUSE' ? new BatonError('port-taken', `(${port})`, { cause }) : cause),
    )
    server.listen({ host, port }, resolve)
  })
}
