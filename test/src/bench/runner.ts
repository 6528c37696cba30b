/** What a session costs a runner and its relay: files, handoffs, waking up, memory, tokens. */
import { readFile } from 'node:fs/promises'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import type { Opened } from '@baton/shared/entries.ts'
import { bundleAgent } from '@baton/guest/bundle.ts'
import { GuestHarness } from '@baton/runner/vm/guest-harness.ts'
import { startModelServer } from '../model-server.ts'
import { call, say, type Turn } from '../model-turns.ts'
import { until } from '../until.ts'
import { Pair } from './parts/pair.ts'
import { workspaceResults } from './parts/workspace.ts'
import { quantile, result, type BenchAbout, type BenchResult } from './result.ts'

export const about: BenchAbout = {
  measures:
    'checkpoints of large work trees; handoff of a busy session whose work tree has 10,000 files; from sending a prompt to a parked session to its guest running; what a parked session keeps in Redis; memory of a guest; model requests made twice in a turn that is moved after every step',
  leavesOut: 'networks, and the first transfer of files to a machine that has none of them',
}

const MOVES = 30
const WARM_UP = 3
const WAKES = 40
const GUESTS = 24
/** Answers of a long turn: 100 messages in all; and of one that is moved after every step. */
const STEPS = 49
const MOVED_STEPS = 12

export async function* runnerBench(): AsyncGenerator<BenchResult> {
  yield* workspaceResults()
  yield* largeHandoff()
  yield* parked()
  yield* memory()
  yield* billedTwice()
}

async function* largeHandoff(): AsyncGenerator<BenchResult> {
  const bundle = await bundleAgent(join(import.meta.dirname, '../agents/busy.ts'))
  await using pair = await Pair.open({ files: 10_000, bundle })
  const sid = await pair.session('busy')
  const samples = (await pair.moves(sid, MOVES + WARM_UP)).slice(WARM_UP)
  const options = { unit: 'ms', samples: samples.length }
  yield result('handoff blackout, 10,000 files, p50', quantile(samples, 0.5), { ...options, budget: 50 })
  yield result('handoff blackout, 10,000 files, p99', quantile(samples, 0.99), { ...options, budget: 150 })
}

/** A turn of so many steps that look around, then a last answer. */
function steps(count: number): (request: { messages: { role: string }[] }) => Turn {
  return ({ messages }) => {
    const answered = messages.filter(({ role }) => role === 'assistant').length
    if (answered % (count + 1) === count) return [say('That was all.')]
    return [say(`Step ${answered}: I look at the next file.`), call('read', { path: 'README.md' })]
  }
}

const turnsOver = (entries: Opened[]): number =>
  entries.filter(
    (entry) =>
      entry.kind === 'event' &&
      entry.body.type === 'turn' &&
      JSON.stringify(entry.body.data).includes('"end"'),
  ).length

async function* parked(): AsyncGenerator<BenchResult> {
  const model = await startModelServer(steps(STEPS))
  await using pair = await Pair.open({ files: 30, model, park_after_ms: 0 })
  const { client } = pair
  const sid = await pair.session('coder')
  await rests(pair, sid)
  yield* kept(await redisBytes(pair.relay.data, sid), 'new')
  await client.command(sid, 'prompt', { text: 'Look at every file.' })
  await client.untilEntries(sid, 'the turn is over', (entries) => turnsOver(entries) === 1)
  await rests(pair, sid)
  yield* kept(await redisBytes(pair.relay.data, sid), 'of 100 messages')

  const wakes: number[] = []
  for (let n = 0; n < WAKES; n++) {
    const before = pair.running_at
    const sent_at = performance.now()
    // Its answers are of a short turn: the count of messages goes on.
    await client.command(sid, 'prompt', { text: `And again, ${n}.` })
    await until('it runs', () => pair.running_at > before, { every_ms: 1 })
    wakes.push(pair.running_at - sent_at)
    await client.command(sid, 'stop', {})
    await rests(pair, sid)
  }
  const options = { unit: 'ms', samples: wakes.length }
  yield result('wake of a parked session, p50', quantile(wakes, 0.5), { ...options, budget: 25 })
  yield result('wake of a parked session, p99', quantile(wakes, 0.99), options)
  await model.close()
}

function* kept(kinds: Record<string, number>, what: string): Generator<BenchResult> {
  const total = Object.values(kinds).reduce((sum, bytes) => sum + bytes, 0)
  yield result(`parked session, ${what}, in Redis`, total / 1024, { unit: 'KB', samples: 1, budget: 100 })
  for (const kind of ['journal', 'blob']) {
    yield result(`  of it ${kind}`, (kinds[kind] ?? 0) / 1024, { unit: 'KB', samples: 1 })
  }
}

async function rests({ client }: Pair, sid: string): Promise<void> {
  await until('it is parked', async () => {
    const { holder, pending } = await client.info(sid)
    return holder === undefined && pending === 0
  })
}

/** Bytes of memory that Redis gives to a session, by kind of key. */
async function redisBytes(data: string, sid: string): Promise<Record<string, number>> {
  const socket = readdirSync(data, { recursive: true, encoding: 'utf8' }).find((name) =>
    name.endsWith('.sock'),
  )
  if (socket === undefined) throw new Error(`no socket of Redis in ${data}`)
  const redis = new Redis(join(data, socket))
  try {
    // Behind the write.
    await until('what was superseded is collected', async () => {
      const [newest, looked_at] = await redis.hmget(`{${sid}}:state`, 'snapshot', 'snapshot_collected')
      return newest === looked_at
    })
    const bytes: Record<string, number> = {}
    for (const key of await redis.keys(`*{${sid}}*`)) {
      const kind =
        key.split(':').find((part) => part !== '' && !part.includes('{') && !/^[0-9a-f]{64}$/.test(part)) ??
        key
      bytes[kind] = (bytes[kind] ?? 0) + ((await redis.memory('USAGE', key, 'SAMPLES', 0)) ?? 0)
    }
    return bytes
  } finally {
    redis.disconnect()
  }
}

async function* memory(): AsyncGenerator<BenchResult> {
  const dist = join(import.meta.dirname, '../../../guest/dist')
  const [engine, bundle] = await Promise.all([
    readFile(join(dist, 'engine.wasm')),
    readFile(join(dist, 'agents/coder.js')),
  ])
  const open = async (): Promise<GuestHarness> => {
    const harness = new GuestHarness({ engine, bundle })
    await harness.open()
    await harness.deliver({
      ...{ type: 'start', seed: '7'.repeat(64), now: 0, mode: 'ask', tools: [], about: {}, settings: {} },
    })
    return harness
  }
  // Module, baseline and threads are there before the first reading.
  const first = await open()
  const before = process.memoryUsage().rss
  const harnesses = await Promise.all(Array.from({ length: GUESTS }, open))
  const mb = (process.memoryUsage().rss - before) / GUESTS / 2 ** 20
  yield result('memory of one more active session', mb, { unit: 'MB', samples: GUESTS })
  await Promise.all([first, ...harnesses].map((harness) => harness.close()))
}

async function* billedTwice(): AsyncGenerator<BenchResult> {
  const model = await startModelServer(steps(MOVED_STEPS))
  await using pair = await Pair.open({ files: 30, model })
  const { client } = pair
  const sid = await pair.session('coder')
  await client.command(sid, 'prompt', { text: 'Look at every file.' })
  let moves = 0
  let entries: Opened[] = []
  while (turnsOver(entries) === 0) {
    const to = pair.runners[++moves % 2]?.id ?? ''
    await client.command(sid, 'move', { label: 'other' }, { place: { prefer: to } })
    await until('it moved, or the turn is over', async () => {
      entries = await client.entries(sid)
      return turnsOver(entries) > 0 || (await client.info(sid)).holder === to
    })
  }
  const extra = model.state().count - (MOVED_STEPS + 1)
  yield result(`requests billed twice in ${moves} moves`, extra, {
    unit: 'requests',
    samples: moves,
    budget: 0,
  })
  await model.close()
}
