/** What it costs to append through the relay: authority, order and limits checked, and on the disk before the answer. */
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { startRedis } from '@baton/relay/redis-server.ts'
import { Connection } from '@baton/shared/connection.ts'
import { newAccount, newDevice, newId } from '@baton/shared/keys.ts'
import type { NewEntry } from '@baton/shared/protocol.ts'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { quantile, result, type BenchAbout, type BenchResult } from './result.ts'

export const about: BenchAbout = {
  measures:
    'durable appends by one runner over one WebSocket, against bare XADDs of the same fields and bytes to the same Redis, as many of them under way at once; rounds alternate',
  leavesOut:
    'sealing and opening, more than one session at a time, watchers, and the network: all is on one machine',
}

const BODY_BYTES = 1024
const ROUNDS = 9
const ENTRIES_A_ROUND = 4096
/** Entries under way at once, in both. */
const WINDOW = 256

const body = 'A'.repeat(BODY_BYTES)
const entry: NewEntry = { kind: 'event', body, blobs: [] }
/** What the relay stores for it. */
const fields = ['epoch', '1', 'kind', 'event', 'at', String(Date.now()), 'size', '768', 'body', body].concat(
  ...['blobs', 'hint', 'consumes', 'lease'].map((name) => [name, '']),
)

/** Runs `count` calls, at most `window` at once, and gives the seconds that it took. */
async function timed(count: number, window: number, call: (i: number) => Promise<unknown>): Promise<number> {
  const begun = performance.now()
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < count) await call(next++)
  }
  await Promise.all(Array.from({ length: window }, lane))
  return (performance.now() - begun) / 1000
}

const median = (values: number[]): number => quantile(values, 0.5)

export async function* relayBench(): AsyncGenerator<BenchResult> {
  const dataDir = await mkdtemp(join(tmpdir(), 'baton-bench-'))
  const log = pino({ level: 'silent' })
  const redis = await startRedis({ dataDir, log })
  const limits = { frames_per_s: 1e9, frames_burst: 1e9, bytes_per_account: 1e12 }
  const thread = new Worker(new URL('../relay-thread.ts', import.meta.url), {
    workerData: { redis: redis.path, port: 0, log: 'silent', lease_ms: 600_000, limits },
  })
  const bare = new Redis(redis.path)
  const account = newAccount()
  const [origin] = (await once(thread, 'message')) as [string]
  const connection = new Connection({
    origin,
    account,
    device: newDevice(account),
    about: { kind: 'cli', name: 'bench' },
  })
  try {
    connection.start()
    while (connection.state.at !== 'open') await new Promise((resume) => setTimeout(resume, 5))
    for (const batch of [1, 16]) {
      const sid = newId()
      await connection.ask('create', { sid, meta: '', place: {} })
      const { epoch, seq } = await connection.ask('claim', { sid })
      const entries = Array.from({ length: batch }, () => entry)
      const calls = ENTRIES_A_ROUND / batch
      let written = seq
      const append = async (): Promise<void> => {
        const first = written + 1
        written += batch
        await connection.ask('append', { sid, epoch, first, entries }, 60_000)
      }
      const xadd = (): Promise<unknown> => bare.xadd(`{${sid}}:bare`, '*', ...fields)
      await timed(calls, WINDOW / batch, append)
      await timed(ENTRIES_A_ROUND, WINDOW, xadd)
      const rates: number[] = []
      const shares: number[] = []
      for (let round = 0; round < ROUNDS; round++) {
        const seconds = await timed(calls, WINDOW / batch, append)
        const bareSeconds = await timed(ENTRIES_A_ROUND, WINDOW, xadd)
        rates.push(ENTRIES_A_ROUND / seconds)
        shares.push((100 * bareSeconds) / seconds)
      }
      const name = `append, ${batch} ${batch === 1 ? 'entry' : 'entries'} of 1 KB at a time`
      yield result(name, median(rates), { unit: 'entries/s', samples: ROUNDS, better: 'higher' })
      yield result(`${name}, share of bare throughput`, median(shares), {
        unit: '%',
        samples: ROUNDS,
        budget: 50,
        better: 'higher',
        versus: 'pipelined XADD',
      })
    }
    const sid = newId()
    await connection.ask('create', { sid, meta: '', place: {} })
    const { epoch, seq } = await connection.ask('claim', { sid })
    const times: number[] = []
    const bareTimes: number[] = []
    for (let i = 1; i <= 300; i++) {
      times.push(
        1000 *
          (await timed(1, 1, () =>
            connection.ask('append', { sid, epoch, first: seq + i, entries: [entry] }),
          )),
      )
      bareTimes.push(1000 * (await timed(1, 1, () => bare.xadd(`{${sid}}:bare`, '*', ...fields))))
    }
    const versus = `${median(bareTimes).toFixed(2)} ms of a bare XADD`
    yield result('append, one alone, p50', median(times), { unit: 'ms', samples: times.length, versus })
    yield result('append, one alone, p99', quantile(times, 0.99), { unit: 'ms', samples: times.length })
  } finally {
    connection.close()
    bare.disconnect()
    thread.postMessage('close')
    await once(thread, 'exit')
    await redis.close()
    await rm(dataDir, { recursive: true, force: true })
  }
}
