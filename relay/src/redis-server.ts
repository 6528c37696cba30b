/**
 * The private Redis of a relay that was given no other: real Redis on a unix socket, with nothing to configure.
 *
 * Durability: every acknowledged write is on the disk (`appendfsync always`; Redis syncs once for all that arrived together). A
 * killed process or a power cut loses nothing that was acknowledged; a last line torn by the cut is dropped on loading.
 *
 * One owner a data folder: whoever listens on its `owner` socket. The kernel ends that with the process, so a crashed run
 * leaves nothing that hinders the next. A Redis without an owner is shut down, which writes what it holds, and started anew.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { access, constants, mkdir, rm, statfs, writeFile } from 'node:fs/promises'
import { createConnection, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { BatonError } from '@baton/shared/errors.ts'
import { Redis } from 'ioredis'
import type { Logger } from 'pino'

export interface RedisOptions {
  /** Data folder of the relay; Redis keeps its files in `redis/` there. */
  dataDir: string
  log: Logger
  /** Free bytes without which it is not started. */
  disk_reserve_bytes?: number
  /** Name or path of the program. */
  program?: string
}

export interface RedisServer {
  /** Path of the unix socket, for startRelay. */
  path: string
  /** Process id; another one after it died and was started again. */
  pid: () => number | undefined
  close: () => Promise<void>
}

const DISK_RESERVE_BYTES = 64 << 20
const READY_MS = 60_000
const STOP_MS = 15_000
const RESTART_MS_MAX = 5_000
/** Paths of unix sockets are at most 107 bytes on Linux, 103 on macOS. */
const SOCKET_PATH_MAX = 100

/** Throws BatonError `no-redis`, `data-folder`, `disk-full`. */
export async function startRedis(options: RedisOptions): Promise<RedisServer> {
  const dir = resolve(options.dataDir, 'redis')
  await prepareFolder(dir, options.disk_reserve_bytes ?? DISK_RESERVE_BYTES)
  const sockets = await socketFolder(dir)
  const owner = await own(join(sockets, 'owner'), dir)
  const path = join(sockets, 'redis.sock')
  const server = new Supervisor(options, dir, path)
  try {
    await shutDownOrphan(path)
    await server.start()
  } catch (error) {
    owner.close()
    throw error
  }
  return {
    path,
    pid: () => server.pid,
    close: async () => {
      await server.close()
      owner.close()
    },
  }
}

class Supervisor {
  readonly #log: Logger
  readonly #program: string
  readonly #dir: string
  readonly #path: string
  #child: ChildProcess | undefined
  #closing = false
  #restarts = 0
  #restart: Promise<void> | undefined
  readonly #stop = new AbortController()

  constructor({ log, program = 'redis-server' }: RedisOptions, dir: string, path: string) {
    this.#log = log
    this.#program = program
    this.#dir = dir
    this.#path = path
  }

  get pid(): number | undefined {
    return this.#child?.pid
  }

  /** Resolves when it answers. */
  async start(): Promise<void> {
    const child = spawn(this.#program, this.#args(), {
      cwd: this.#dir,
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own: Ctrl-C is for the relay, which stops Redis last.
      detached: true,
    })
    this.#child = child
    const lines: string[] = []
    const hear = (chunk: Buffer): void => {
      for (const line of chunk.toString().split('\n').filter(Boolean)) {
        lines.push(line)
        if (lines.length > 20) lines.shift()
        this.#log.debug({ redis: line })
      }
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    const ended = new Promise<never>((_resolve, reject) => {
      child.once('error', (cause) => {
        const missing = 'code' in cause && cause.code === 'ENOENT'
        reject(
          new BatonError(missing ? 'no-redis' : 'data-folder', missing ? '' : `(${cause.message})`, {
            cause,
          }),
        )
      })
      child.once('exit', () => reject(whyEnded(lines, this.#dir)))
    })
    try {
      await Promise.race([waitUntilReady(this.#path, child), ended])
    } catch (error) {
      ended.catch(() => undefined)
      child.kill('SIGKILL')
      throw error
    }
    ended.catch(() => {
      if (!this.#closing) this.#restart = this.#startAgain()
    })
    this.#restarts = 0
  }

  async #startAgain(): Promise<void> {
    while (!this.#closing) {
      const delay_ms = Math.min(100 * 2 ** this.#restarts++, RESTART_MS_MAX)
      this.#log.error({ delay_ms }, 'redis-server died; starting it again')
      await sleep(delay_ms, undefined, { signal: this.#stop.signal }).catch(() => undefined)
      if (this.#closing) return
      try {
        await this.start()
        this.#log.info('redis-server is back')
        return
      } catch (error) {
        this.#log.error(
          { err: error instanceof Error ? error.message : String(error) },
          'redis-server does not start',
        )
      }
    }
  }

  async close(): Promise<void> {
    this.#closing = true
    this.#stop.abort()
    await this.#restart
    const child = this.#child
    if (!child || child.exitCode !== null || child.signalCode !== null) return
    const exit = once(child, 'exit')
    child.kill('SIGTERM')
    const timer = setTimeout(() => child.kill('SIGKILL'), STOP_MS)
    await exit
    clearTimeout(timer)
  }

  #args(): string[] {
    const settings = {
      port: '0',
      unixsocket: this.#path,
      unixsocketperm: '700',
      dir: this.#dir,
      daemonize: 'no',
      pidfile: '',
      logfile: '',
      appendonly: 'yes',
      appendfsync: 'always',
      'aof-load-truncated': 'yes',
      save: '',
      // Journals are written once and read in order: larger nodes waste less memory.
      'stream-node-max-bytes': String(STREAM_NODE_BYTES),
      // Nothing is thrown away to make room: a full memory refuses writes.
      'maxmemory-policy': 'noeviction',
    }
    return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value])
  }
}

const STREAM_NODE_BYTES = 16 << 10

async function prepareFolder(dir: string, reserve_bytes: number): Promise<void> {
  try {
    await mkdir(dir, { recursive: true, mode: 0o700 })
    const probe = join(dir, '.probe')
    await access(dir, constants.W_OK | constants.X_OK)
    await writeFile(probe, 'x')
    await rm(probe)
  } catch (cause) {
    throw folderError(cause, dir)
  }
  const { bavail, bsize } = await statfs(dir)
  if (bavail * bsize < reserve_bytes) throw new BatonError('disk-full', `(${dir})`)
}

function folderError(cause: unknown, dir: string): BatonError {
  const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown'
  return new BatonError(code === 'ENOSPC' ? 'disk-full' : 'data-folder', `(${dir}: ${code})`, { cause })
}

/** Where the sockets are: in the folder, or, when its path is too long for one, in a private one named after it. */
async function socketFolder(dir: string): Promise<string> {
  if (Buffer.byteLength(join(dir, 'redis.sock')) <= SOCKET_PATH_MAX) return dir
  const name = createHash('sha256').update(dir).digest('hex').slice(0, 16)
  const folder = join(tmpdir(), `baton-${process.getuid?.() ?? 0}-${name}`)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  return folder
}

/** Listens on the owner socket. Throws BatonError `data-folder` when another process does. */
async function own(path: string, dir: string): Promise<Server> {
  if (await isAnswered(path)) throw new BatonError('data-in-use', `(${dir})`)
  await rm(path, { force: true })
  const server = createServer((socket) => socket.destroy())
  server.listen(path)
  try {
    await once(server, 'listening')
  } catch (cause) {
    throw folderError(cause, dir)
  }
  server.unref()
  return server
}

function isAnswered(path: string): Promise<boolean> {
  return new Promise((done) => {
    const socket = createConnection(path)
    socket.once('connect', () => {
      socket.destroy()
      done(true)
    })
    socket.once('error', () => done(false))
  })
}

function connectOnce(path: string): Redis {
  const redis = new Redis(path, { lazyConnect: true, retryStrategy: null, enableReadyCheck: false })
  redis.on('error', () => undefined)
  return redis
}

/** Ends a Redis that a crashed relay left behind. It writes what it holds first. */
async function shutDownOrphan(path: string): Promise<void> {
  if (!(await isAnswered(path))) return
  const redis = connectOnce(path)
  await redis.connect()
  const pid = Number(/process_id:(\d+)/.exec(await redis.info('server'))?.[1])
  // The connection ends with it, so there is no answer.
  await redis.shutdown('NOSAVE').catch(() => undefined)
  redis.disconnect()
  const deadline = Date.now() + STOP_MS
  while (isAlive(pid)) {
    if (Date.now() > deadline) {
      throw new BatonError('data-folder', `(a redis-server of an earlier run does not end: process ${pid})`)
    }
    await sleep(20)
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

/** Resolves when this very process has loaded its data and answers. */
async function waitUntilReady(path: string, child: ChildProcess): Promise<void> {
  const deadline = Date.now() + READY_MS
  while (Date.now() < deadline) {
    if (child.exitCode !== null || child.signalCode !== null) break
    const redis = connectOnce(path)
    try {
      await redis.connect()
      // An orphan's socket may linger; and while loading, PING is refused.
      if (Number(/process_id:(\d+)/.exec(await redis.info('server'))?.[1]) === child.pid) {
        await redis.ping()
        return
      }
    } catch {
      // Not yet.
    } finally {
      redis.disconnect()
    }
    await sleep(10)
  }
  throw new BatonError('data-folder', '(redis-server does not become ready)')
}

function whyEnded(lines: string[], dir: string): BatonError {
  const text = lines.join('\n')
  if (/No space left/.test(text)) return new BatonError('disk-full', `(${dir})`)
  const last = lines.findLast((line) => /[#*-] /.test(line)) ?? 'it ended'
  return new BatonError('data-folder', `(${dir}: redis-server: ${last.replace(/^.*? [#*-] /, '')})`)
}
