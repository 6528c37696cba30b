/**
 * At most one runner on a data folder: its device key is in there, and its work trees. Who holds the folder listens on a socket in it,
 * and whoever is killed stops listening; no lock stays behind that a person would have to remove.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, realpath, rm } from 'node:fs/promises'
import { createConnection, createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BatonError } from '@baton/shared/errors.ts'

/** Paths of unix sockets are at most 107 bytes on Linux, 103 on macOS. */
const SOCKET_PATH_MAX = 100

/** Ends with the process. Throws BatonError `data-in-use` when another runner has the folder, `data-folder`. */
export async function lockData(data: string): Promise<AsyncDisposable> {
  const path = await socketPath(await realpath(data))
  // A second look, if one that has ended left its socket.
  for (const isLast of [false, true]) {
    const server = await listening(path)
    if (server === 'in-use' && (isLast || (await isAnswered(path))))
      throw new BatonError('data-in-use', `(${data}, by another runner)`)
    if (server !== 'in-use') return { [Symbol.asyncDispose]: () => closed(server) }
    await rm(path, { force: true })
  }
  throw new BatonError('data-in-use', `(${data}, by another runner)`)
}

async function listening(path: string): Promise<Server | 'in-use'> {
  const server = createServer((socket) => socket.destroy())
  try {
    server.listen(path)
    await once(server, 'listening')
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : 'unknown'
    if (code === 'EADDRINUSE') return 'in-use'
    throw new BatonError('data-folder', `(${path}: ${code})`, { cause })
  }
  server.unref()
  return server
}

/** In the folder, or, when its path is too long for a socket, in a private one named after it. */
async function socketPath(data: string): Promise<string> {
  const path = join(data, 'runner.sock')
  if (Buffer.byteLength(path) <= SOCKET_PATH_MAX) return path
  const name = createHash('sha256').update(data).digest('hex').slice(0, 16)
  const folder = join(tmpdir(), `baton-runner-${process.getuid?.() ?? 0}-${name}`)
  await mkdir(folder, { recursive: true, mode: 0o700 })
  return join(folder, 'runner.sock')
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

function closed(server: Server): Promise<void> {
  return new Promise((done) => server.close(() => done()))
}
