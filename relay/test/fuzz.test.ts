/**
 * Random work by several runners and clients over two relays, with leases that run out, connections that are cut and a Redis
 * that is killed. At the end the journal must be what the acknowledgements say. A failure prints its seed; each seed that ever
 * failed is kept below.
 */
import { BatonError } from '@baton/shared/errors.ts'
import type { Entry } from '@baton/shared/protocol.ts'
import { describe, expect, test } from 'vitest'
import type { RunningRelay } from '../src/main.ts'
import {
  entry,
  newMember,
  RawPeer,
  randomFrom,
  redisForTest,
  relayForTest,
  until,
  type Member,
} from './helpers.ts'

const SEEDS = [1, 2, 3, Math.floor(Math.random() * 2 ** 31)]
const STEPS = 150

/** Refusals that are right in a world where others work too. */
const EXPECTED = new Set([
  'lease-held',
  'lease-lost',
  'wrong-seq',
  'already-consumed',
  'store-down',
  'offline',
])

interface Tally {
  /** Body → seq that was acknowledged. */
  appended: Map<string, number>
  /** Bodies of appends whose answer is not known. */
  unknown: Set<string>
  /** Command id → number that was acknowledged. */
  commanded: Map<string, number>
  refusals: Map<string, number>
  cuts: number
}

class Worker {
  peer: RawPeer
  #lease: { epoch: number; seq: number } | undefined
  readonly #relays: RunningRelay[]
  readonly #member: Member
  readonly #sid: string
  readonly #random: () => number
  readonly #tally: Tally
  readonly #name: string
  #count = 0

  constructor(
    name: string,
    relays: RunningRelay[],
    member: Member,
    sid: string,
    random: () => number,
    tally: Tally,
  ) {
    this.#name = name
    this.#relays = relays
    this.#member = member
    this.#sid = sid
    this.#random = random
    this.#tally = tally
    this.peer = new RawPeer(relays[0] as RunningRelay, member)
  }

  async connect(): Promise<void> {
    await until(async () => {
      const relay = this.#relays[Math.floor(this.#random() * this.#relays.length)] as RunningRelay
      this.peer = new RawPeer(relay, this.#member)
      return this.peer.signIn().catch(() => undefined)
    }, 'it is signed in')
  }

  async step(): Promise<void> {
    const dice = this.#random()
    try {
      if (dice < 0.05) await this.#cut()
      else if (dice < 0.25) await this.#command()
      else if (!this.#lease) await this.#claim()
      else if (dice < 0.3) await this.#release()
      else if (dice < 0.5) await this.#consume()
      else await this.#append()
    } catch (error) {
      if (!(error instanceof BatonError) || !EXPECTED.has(error.code)) throw error
      this.#tally.refusals.set(error.code, (this.#tally.refusals.get(error.code) ?? 0) + 1)
      if (error.code === 'offline') await this.connect()
      if (error.code !== 'lease-held') this.#lease = undefined
    }
  }

  async #cut(): Promise<void> {
    this.#tally.cuts++
    this.peer.socket.terminate()
    await this.connect()
  }

  async #command(): Promise<void> {
    const id = `${this.#name}-command-${this.#count++}`
    const [first, second] = await Promise.allSettled([
      this.peer.command(this.#sid, { id }),
      this.peer.command(this.#sid, { id }),
    ])
    for (const answer of [first, second]) {
      if (answer.status === 'rejected') continue
      const { n } = answer.value
      expect(this.#tally.commanded.get(id) ?? n).toBe(n)
      this.#tally.commanded.set(id, n)
    }
    if (first.status === 'rejected') throw first.reason
  }

  async #claim(): Promise<void> {
    const { epoch, seq } = await this.peer.ask('claim', { sid: this.#sid })
    this.#lease = { epoch, seq }
  }

  async #release(): Promise<void> {
    const { epoch } = this.#lease as { epoch: number }
    this.#lease = undefined
    await this.peer.ask('release', { sid: this.#sid, epoch, status: 'idle' })
  }

  async #append(): Promise<void> {
    const count = 1 + Math.floor(this.#random() * 3)
    await this.#write(Array.from({ length: count }, () => entry('event', { body: this.#body() })))
  }

  async #consume(): Promise<void> {
    const { commands } = await this.peer.ask('inbox', { sid: this.#sid })
    const command = commands[0]
    if (!command) return
    const { n, id } = command
    await this.#write([entry('received', { body: this.#body(), consumes: { n, id } })])
  }

  #body(): string {
    return Buffer.from(`${this.#name}-${this.#count++}`).toString('base64url')
  }

  async #write(list: ReturnType<typeof entry>[]): Promise<void> {
    const lease = this.#lease as { epoch: number; seq: number }
    const first = lease.seq + 1
    try {
      const { seq } = await this.peer.ask('append', {
        sid: this.#sid,
        epoch: lease.epoch,
        first,
        entries: list,
      })
      expect(seq).toBe(lease.seq + list.length)
      lease.seq = seq
      for (const [i, { body }] of list.entries()) this.#tally.appended.set(body, first + i)
    } catch (error) {
      if (error instanceof BatonError && ['store-down', 'offline'].includes(error.code)) {
        for (const { body } of list) this.#tally.unknown.add(body)
      }
      throw error
    }
  }
}

/** Every entry of the journal, by pages. */
async function wholeJournal(peer: RawPeer, sid: string): Promise<Entry[]> {
  const journal: Entry[] = []
  for (;;) {
    const { entries, tail } = await peer.ask('read', { sid, from: journal.length + 1, limit: 50 })
    journal.push(...entries)
    if (journal.length >= tail) return journal
  }
}

function check(journal: Entry[], tally: Tally): void {
  expect(journal.map(({ seq }) => seq)).toEqual(journal.map((_, i) => i + 1))
  const seqs = new Map(journal.filter(({ body }) => body !== '').map(({ body, seq }) => [body, seq]))
  expect(seqs.size).toBe(journal.filter(({ body }) => body !== '').length)
  for (const [body, seq] of tally.appended) expect(seqs.get(body)).toBe(seq)
  for (const body of seqs.keys()) expect(tally.appended.has(body) || tally.unknown.has(body)).toBe(true)
  // Entries of an epoch lie between its claim and its end, and are its own.
  let epoch = 0
  let isHeld = false
  for (const item of journal) {
    if (item.lease?.change === 'claimed') {
      expect(isHeld).toBe(false)
      expect(item.epoch).toBeGreaterThan(epoch)
      isHeld = true
    } else if (item.lease) {
      expect(isHeld).toBe(true)
      isHeld = false
    } else {
      expect(isHeld).toBe(true)
      expect(item.epoch).toBe(epoch)
    }
    epoch = item.epoch
  }
  const consumed = journal.flatMap(({ consumes }) => (consumes ? [consumes] : []))
  expect(new Set(consumed.map(({ n }) => n)).size).toBe(consumed.length)
  expect(new Set(consumed.map(({ id }) => id)).size).toBe(consumed.length)
  for (const { id, n } of consumed) expect(tally.commanded.get(id) ?? n).toBe(n)
}

async function run(seed: number, kills: number): Promise<{ tally: Tally; journal: Entry[] }> {
  const random = randomFrom(seed)
  const redis = await redisForTest()
  const options = { lease_ms: 120, sweep_ms: 30, limits: { inbox_commands: 1e6 } }
  const relays = [await relayForTest(redis, options), await relayForTest(redis, options)]
  const owner = await RawPeer.signIn(relays[0] as RunningRelay)
  const sid = await owner.session()
  const tally: Tally = {
    appended: new Map(),
    unknown: new Set(),
    commanded: new Map(),
    refusals: new Map(),
    cuts: 0,
  }
  const workers = ['a', 'b', 'c'].map(
    (name) =>
      new Worker(name, relays, newMember(owner.member.account), sid, randomFrom(random() * 2 ** 31), tally),
  )
  await Promise.all(workers.map((worker) => worker.connect()))
  await owner.ask('watch', { sid, from: 1 })
  let left = workers.length
  const steps = workers.map(async (worker) => {
    for (let i = 0; i < STEPS; i++) await worker.step()
    left--
  })
  const killer = (async () => {
    for (let i = 0; i < kills && left > 0; i++) {
      const before = tally.appended.size
      await until(() => tally.appended.size > before + 15 || left === 0, 'some work is done')
      if (left > 0) process.kill(redis.pid() as number, 'SIGKILL')
    }
  })()
  await Promise.all([...steps, killer])
  const journal = await until(() => wholeJournal(owner, sid).catch(() => undefined), 'the journal is read')
  const waiting = (await owner.ask('inbox', { sid })).commands.map(({ id }) => id)
  const consumed = journal.flatMap(({ consumes }) => (consumes ? [consumes.id] : []))
  // Every acknowledged command waits or was consumed, not both.
  for (const id of tally.commanded.keys()) {
    expect([waiting.includes(id), consumed.includes(id)].filter(Boolean)).toHaveLength(1)
  }
  await until(() => owner.seqs(sid).length >= journal.length, 'the watcher has all')
  expect(owner.seqs(sid)).toEqual(owner.seqs(sid).map((_, i) => i + 1))
  return { tally, journal }
}

describe('many runners and clients at once', () => {
  test.each(SEEDS)('I1: one writer, I2: dense order, I6: commands once; seed %i', async (seed) => {
    const { tally, journal } = await run(seed, 0)
    check(journal, tally)
    // It was not idle, and there was something to get wrong.
    expect(tally.appended.size).toBeGreaterThan(50)
    expect(tally.commanded.size).toBeGreaterThan(30)
    expect(journal.filter(({ consumes }) => consumes).length).toBeGreaterThan(5)
    expect(tally.refusals.get('lease-held') ?? 0).toBeGreaterThan(0)
    expect(tally.cuts).toBeGreaterThan(3)
  })

  test.each(SEEDS)('J11: the same while Redis is killed; seed %i', async (seed) => {
    const { tally, journal } = await run(seed, 3)
    check(journal, tally)
    expect((tally.refusals.get('store-down') ?? 0) + tally.unknown.size).toBeGreaterThan(0)
    expect(tally.appended.size).toBeGreaterThan(30)
  })
})
