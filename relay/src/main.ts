/** A relay: puts the parts together, and takes them apart again. */
import { randomBytes } from 'node:crypto'
import type { AddressInfo } from 'node:net'
import { resolve } from 'node:path'
import websocket from '@fastify/websocket'
import { listenError } from '@baton/shared/listening.ts'
import { SOCKET_PATH } from '@baton/shared/protocol.ts'
import fastify, { LogController, type FastifyBaseLogger, type FastifyInstance } from 'fastify'
import { pino, type Logger } from 'pino'
import { Connection } from './connection.ts'
import type { Context } from './context.ts'
import { addHttp } from './http.ts'
import { Hubs } from './hub.ts'
import { AddressLimit, DiskRoom, Usage } from './limits.ts'
import type { RunningMetrics } from './metrics.ts'
import { Notices } from './notices.ts'
import { DEFAULTS, type Limits, type RelayOptions } from './options.ts'
import { Presence } from './presence.ts'
import { Scheduler } from './scheduler.ts'
import { openStore } from './store.ts'
import { Sweeper } from './sweeper.ts'

export type StartOptions = Pick<RelayOptions, 'redis'> &
  Partial<Omit<RelayOptions, 'redis' | 'limits'>> & { limits?: Partial<Limits> }

const noSchema = (): never => {
  throw new Error('routes have no schemas: requests are checked with valibot')
}

export interface RunningRelay {
  port: number
  /** `http://host:port`. */
  url: string
  /** Where the metrics are, if they were asked for. */
  metricsUrl?: string
  /** Tells the peers to come back later, then ends. Redis stays as it is. */
  close: () => Promise<void>
}

/** Runners count as gone this long after they last pinged, in heartbeats. */
const PRESENCE_BEATS = 2.5
/** A frame beyond the limit is answered with a reason, one beyond this many limits only by the WebSocket's own code 1009. */
const HARD_LIMIT = 4

/** Throws BatonError `store-down`, `port-taken`, `address-unusable`. */
export async function startRelay(given: StartOptions): Promise<RunningRelay> {
  const options: RelayOptions = { ...DEFAULTS, ...given, limits: { ...DEFAULTS.limits, ...given.limits } }
  if (options.clientDir !== undefined) options.clientDir = resolve(options.clientDir)
  const log = loggerOf(options.log)
  const store = await openStore(options.redis, log)
  const { redis } = store
  const pending = new Set<Promise<unknown>>()
  const background = (work: Promise<unknown>): void => {
    const done = work
      .catch((error: unknown) => log.debug({ err: String(error) }, 'left undone; the sweeper looks again'))
      .finally(() => pending.delete(done))
    pending.add(done)
  }
  const presence = new Presence(redis, Math.ceil(options.heartbeat_ms * PRESENCE_BEATS))
  const notices = new Notices(store.listener, log)
  const { limits } = options
  const context: Context = {
    options,
    log,
    store,
    redis,
    notices,
    presence,
    background,
    hubs: new Hubs(redis, notices, presence),
    scheduler: new Scheduler(redis, presence, options.offer_ms),
    usage: new Usage(redis, limits.bytes_per_account),
    disk: new DiskRoom(options.dataDir, options.disk_reserve_bytes),
    connects: new AddressLimit(limits.connects_per_s, limits.connects_burst),
    pairings: new AddressLimit(limits.pairings_per_min / 60, limits.pairings_per_min),
  }
  const connections = new Set<Connection>()
  const relay = await store.relayId()
  // Typed here: with the logger's own type the instance would not be a plain FastifyInstance.
  const loggerInstance: FastifyBaseLogger = log
  const app = fastify({
    loggerInstance,
    logController: new LogController({ disableRequestLogging: true }),
    forceCloseConnections: true,
    // What compiles schemas is most of what Fastify loads, and no route here has one.
    schemaController: {
      compilersFactory: { buildValidator: () => noSchema, buildSerializer: () => noSchema },
    },
  })
  // Most relays are never asked for numbers.
  const measuring = options.metrics ? await import('./metrics.ts') : undefined
  const metrics = measuring && new measuring.Metrics(context, () => connections.size)
  let measured: RunningMetrics | undefined
  try {
    if (options.metrics && metrics) measured = await measuring.serveMetrics(options.metrics, metrics)
    await context.disk.look()
    await addSockets(app, context, relay, connections)
    await addHttp(app, context)
    await listen(app, options)
  } catch (error) {
    await app.close()
    await measured?.close()
    metrics?.close()
    store.close()
    throw error
  }
  const stopSweeping = keepSweeping(context)
  const stopWatchingStore = await watchStore(context, connections)
  const { port } = app.server.address() as AddressInfo
  return {
    port,
    url: `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}`,
    ...(measured ? { metricsUrl: measured.url } : {}),
    close: async () => {
      await measured?.close()
      metrics?.close()
      stopWatchingStore()
      for (const connection of connections) connection.end('draining')
      await stopSweeping()
      await app.close()
      await Promise.all(pending)
      store.close()
    },
  }
}

function loggerOf(log: Logger | string): Logger {
  return typeof log === 'string'
    ? pino({ level: log, name: 'relay' }, pino.destination({ dest: 2, sync: true }))
    : log
}

async function addSockets(
  app: FastifyInstance,
  context: Context,
  relay: string,
  connections: Set<Connection>,
): Promise<void> {
  const maxPayload = context.options.limits.frame_bytes * HARD_LIMIT
  await app.register(websocket, { options: { maxPayload } })
  app.get(SOCKET_PATH, { websocket: true }, (socket, request) => {
    const connection = new Connection(context, relay, socket)
    connections.add(connection)
    socket.on('close', () => connections.delete(connection))
    if (!context.connects.take(request.ip, Date.now())) connection.end('too-fast')
  })
}

async function listen(app: FastifyInstance, { host, port }: RelayOptions): Promise<void> {
  try {
    await app.listen({ host, port })
  } catch (cause) {
    throw listenError(cause, { host, port })
  }
}

/** Looks again at everything, one sweep after the other. Resolves, when stopped, after the last one. */
function keepSweeping(context: Context): () => Promise<void> {
  const { redis, scheduler, usage, disk, hubs, options, log } = context
  const sweeper = new Sweeper(redis, scheduler, options.sweep_ms, randomBytes(8).toString('hex'), log)
  let stopped = false
  let wake: (() => void) | undefined
  const loop = async (): Promise<void> => {
    while (!stopped) {
      await sweeper.sweep()
      const chores = [usage.flush(), disk.look(), ...[...hubs].map((hub) => hub.tellRunners())]
      for (const result of await Promise.allSettled(chores)) {
        if (result.status === 'rejected') log.debug({ err: String(result.reason) }, 'chore not done')
      }
      if (stopped) return
      await new Promise<void>((resume) => {
        const timer = setTimeout(resume, options.sweep_ms)
        wake = () => {
          clearTimeout(timer)
          resume()
        }
      })
    }
  }
  const running = loop()
  return async () => {
    stopped = true
    wake?.()
    await running
  }
}

/** An emptied or exchanged store is told to peers by a new sign-in: `welcome` names it (F23). */
async function watchStore({ store, redis, log }: Context, connections: Set<Connection>): Promise<() => void> {
  const known = await store.id()
  let current = known
  const look = (): void => {
    store
      .id()
      .then((id) => {
        if (id === current) return
        log.error({ was: current, is: id }, 'the store is not the one it was: its data is gone')
        current = id
        for (const connection of connections) connection.end('draining', 'the store has changed')
      })
      .catch((error: unknown) => log.debug({ err: String(error) }, 'store not identified yet'))
  }
  redis.on('ready', look)
  return () => redis.off('ready', look)
}
