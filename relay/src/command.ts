/**
 * The relay as a program. With REDIS_URL it uses that Redis, else it starts a private one in the data folder. To a parent
 * process it says `{t: 'listening', port}`; with --hold-health, /healthz waits for the parent's `{t: 'healthy'}`.
 */
import { mkdir } from 'node:fs/promises'
import { BatonError, explain } from '@baton/shared/errors.ts'
import { pino } from 'pino'
import { readFlags } from './flags.ts'
import { startRelay } from './main.ts'
import { startRedis } from './redis-server.ts'

const isForPrograms = process.argv.includes('--json')

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
  const flags = readFlags(process.argv.slice(2), process.env)
  const { port, host, data, client, accounts_max, limits, lease_ms, heartbeat_ms, metrics } = flags
  const log = pino({ level: flags.log, name: 'relay' }, pino.destination({ dest: 2, sync: true }))
  await makeFolder(data)
  const told = untilTold()
  const url = process.env['REDIS_URL']
  const redis = url ? undefined : await startRedis({ dataDir: data, log })
  let isUp = !flags.holdHealth
  process.on('message', (said) => {
    if (typeof said === 'object' && said !== null && 't' in said && said.t === 'healthy') isUp = true
  })
  try {
    const relay = await startRelay({
      ...{ port, host, log, lease_ms, heartbeat_ms, accounts_max, limits, isUp: () => isUp },
      ...(metrics ? { metrics } : {}),
      ...{ redis: url ?? redis?.path ?? '', clientDir: client },
      ...(redis ? { dataDir: data } : {}),
    })
    if (process.send) process.send({ t: 'listening', port: relay.port })
    else
      process.stdout.write(
        isForPrograms ? `${JSON.stringify({ origin: relay.url })}\n` : `relay listening on ${relay.url}\n`,
      )
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

// It serves on when nobody reads what it says.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)
try {
  await main()
  process.exit(0)
} catch (error) {
  tell(error)
  // As all of `baton`: a wrong command line has a code of its own.
  process.exit(error instanceof BatonError && error.code === 'usage' ? 2 : 1)
}

/** As `baton relay`, which this is to people. */
function tell(error: unknown): void {
  const known =
    error instanceof BatonError ? error : new BatonError('internal', `(${explain(error)})`, { cause: error })
  const { code, message, detail } = known
  const wrong =
    code === 'usage'
      ? { code, message: detail || message, todo: 'See: baton help relay' }
      : { code, message, todo: known.todo }
  if (!isForPrograms) {
    process.stderr.write(`baton: ${wrong.message} ${wrong.todo}\n`)
    return
  }
  process.stdout.write(`${JSON.stringify({ error: wrong })}\n`)
}
