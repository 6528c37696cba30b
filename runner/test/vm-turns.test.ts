/** Many guests in one thread: whose turn it is, and what one does to another. */
import { afterEach, describe, expect, test } from 'vitest'
import type { Pause } from '@baton/shared/guest.ts'
import { Guest, type GuestOptions } from '../src/vm/guest.ts'
import { GuestHarness } from '../src/vm/guest-harness.ts'
import { Threads } from '../src/vm/threads.ts'
import { SLICE_MS, Turns, type Surroundings } from '../src/vm/turns.ts'
import { bundle, engine, outcome, program, start } from './vm-programs.ts'

const count = (n: number): string =>
  `let x = 1; for (let i = 0; i < ${n}; i++) x = (x * 31 + i) % 1000003; return x`
const main = (body: string): string =>
  `import { emit, prompt, tool } from 'baton'\nexport default async function main() { ${body} }`

describe('turns', () => {
  /** A clock that moves by one millisecond at each look, and nobody else around. */
  const around = (changes: Partial<Surroundings> = {}): Surroundings => {
    let now = 0
    return { isUrgent: () => false, isWanted: () => false, now: () => ++now, ...changes }
  }
  interface Runner {
    guest: Guest
    stop: Int32Array
    pauses: Pause[]
    order: string[]
  }
  function add(turns: Turns, options: GuestOptions, order: string[] = [], name = '', limits = {}): Runner {
    const guest = new Guest(options)
    const stop = new Int32Array(1)
    const pauses: Pause[] = []
    const settle = (pause: Pause): void => {
      order.push(name)
      pauses.push(pause)
    }
    const fail = (error: unknown): void => {
      throw error
    }
    turns.add({ guest, stop, message: start, limits, settle, fail })
    return { guest, stop, pauses, order }
  }
  const drain = (turns: Turns): void => {
    while (turns.size > 0) turns.step()
  }

  test('a guest that runs alone is not sliced, however long it runs', async () => {
    const turns = new Turns(around())
    const { pauses } = add(turns, await program(main(count(1e6))))
    drain(turns)
    expect(pauses).toMatchObject([{ state: 'finished' }])
    expect(turns.slices).toBe(1)
  })

  test('several get slices in turn: the short one is done first, and nobody waits for the long one', async () => {
    const turns = new Turns(around())
    const order: string[] = []
    const [long, middle, short] = await Promise.all([4e6, 1e6, 1e5].map((n) => program(main(count(n)))))
    add(turns, long as GuestOptions, order, 'long')
    add(turns, middle as GuestOptions, order, 'middle')
    add(turns, short as GuestOptions, order, 'short')
    drain(turns)
    expect(order).toEqual(['short', 'middle', 'long'])
    expect(turns.slices).toBeGreaterThan(3)
  })

  test('I7: slices leave no trace: the same end and the same memory as in one go', async () => {
    const options = await program(
      main(`emit('a', 1); ${count(5e5).replace('return x', "emit('b', x); return x")}`),
    )
    const alone = new Guest(options)
    const whole = alone.deliver(start)
    const turns = new Turns(around())
    const sliced = Array.from({ length: 3 }, () => add(turns, options))
    drain(turns)
    expect(turns.slices).toBeGreaterThan(6)
    for (const { guest, pauses } of sliced) {
      expect(pauses).toEqual([whole])
      expect(guest.memoryHash()).toBe(alone.memoryHash())
    }
  })

  test('fuel is counted over all slices: it ends at the same place as in one go', async () => {
    const options = await program(main(count(1e9)))
    const alone = new Guest(options)
    alone.deliver(start, { fuel: 777_777 })
    const turns = new Turns(around())
    const sliced = [1, 2].map(() => add(turns, options, [], '', { fuel: 777_777 }))
    drain(turns)
    expect(turns.slices).toBeGreaterThan(4)
    for (const { guest, pauses } of sliced) {
      expect(pauses).toMatchObject([{ state: 'interrupted' }])
      expect(guest.memoryHash()).toBe(alone.memoryHash())
    }
  })

  test('a limit of time counts the own time only', async () => {
    const turns = new Turns(around())
    const options = await program(main(count(1e9)))
    const [one, two] = [50, 500].map((ms) => add(turns, options, [], '', { ms })) as [Runner, Runner]
    while (one.pauses.length === 0) turns.step()
    // With the time of the other one counted, it would have ended in its second slice.
    expect(turns.slices).toBeGreaterThanOrEqual((50 / SLICE_MS) * 2 - 1)
    expect(two.pauses).toEqual([])
    drain(turns)
    expect(two.pauses).toMatchObject([{ state: 'interrupted' }])
  })

  test('one that waits for its turn is stopped without running again', async () => {
    const turns = new Turns(around())
    const options = await program(main(count(1e9)))
    const [one, two] = [add(turns, options), add(turns, options)]
    for (let i = 0; i < 4; i++) turns.step()
    two.stop[0] = 1
    const { slices } = turns
    turns.step()
    expect(two.pauses).toMatchObject([{ state: 'interrupted' }])
    expect(turns.slices).toBe(slices)
    one.stop[0] = 1
    drain(turns)
    expect(one.pauses).toMatchObject([{ state: 'interrupted' }])
  })

  test('what must not wait ends the slice at once, and the guest goes on afterwards', async () => {
    let urgent = false
    const turns = new Turns(around({ isUrgent: () => urgent }))
    const { pauses } = add(turns, await program(main(count(1e6))))
    urgent = true
    turns.step()
    expect([turns.size, pauses]).toEqual([1, []])
    urgent = false
    drain(turns)
    expect(pauses).toMatchObject([{ state: 'finished' }])
  })

  test('a guest that asks without end is handed over in pieces', async () => {
    const turns = new Turns(around())
    const options = await program(main(`for (;;) emit('note', 'x'.repeat(1000))`))
    const { guest, pauses } = add(turns, options)
    drain(turns)
    expect(pauses).toMatchObject([{ state: 'interrupted' }])
    expect(pauses[0]?.asked.length).toBeGreaterThan(900)
    expect(pauses[0]?.asked.length).toBeLessThan(2000)
    expect(guest.run({ fuel: 10_000 }).asked.length).toBeGreaterThan(0)
  })
})

describe('threads', () => {
  const open: { close: () => Promise<void> }[] = []
  const pools: Threads[] = []
  afterEach(async () => {
    await Promise.all(open.splice(0).map((harness) => harness.close()))
    await Promise.all(pools.splice(0).map((threads) => threads.end()))
  })
  function pool(max: number): Threads {
    const threads = new Threads(max)
    pools.push(threads)
    return threads
  }
  async function harness(threads: Threads, body: string): Promise<GuestHarness> {
    const made = new GuestHarness({ engine, bundle: await bundle(main(body)), threads })
    open.push(made)
    return made
  }

  test('F54: guests of one thread know nothing of each other', async () => {
    const threads = pool(1)
    const body = `globalThis.n = (globalThis.n ?? 0) + 1; const { text } = await prompt(); return [globalThis.n, text]`
    const guests = await Promise.all(Array.from({ length: 12 }, () => harness(threads, body)))
    await Promise.all(
      guests.map(async (guest) => {
        await guest.open()
        await guest.deliver(start)
      }),
    )
    expect([threads.count, threads.guests]).toEqual([1, 12])
    const snapshots = await Promise.all(guests.map((guest) => guest.snapshot()))
    expect(new Set(snapshots.map(({ hash }) => hash)).size).toBe(1)
    const answers = (guest: GuestHarness, i: number) =>
      guest.deliver(outcome(1, { text: `answer ${i}`, command: 'c' }))
    const ends = await Promise.all(guests.map(answers))
    expect(ends.map((end) => end.state === 'finished' && end.result)).toEqual(
      guests.map((_, i) => [1, `answer ${i}`]),
    )
  })

  test('guests that never end leave room for one that does', async () => {
    const threads = pool(1)
    const endless = await Promise.all([1, 2, 3].map(() => harness(threads, `for (;;);`)))
    const running = await Promise.all(
      endless.map(async (guest) => {
        await guest.open()
        return { pause: guest.deliver(start), guest }
      }),
    )
    const other = await harness(threads, count(2e6))
    await other.open()
    expect(await other.deliver(start)).toMatchObject({ state: 'finished' })
    for (const { guest, pause } of running) {
      guest.interrupt()
      expect((await pause).state).toBe('interrupted')
    }
  })

  test('of two that run in one thread, the one that is told to stop stops, and the other goes on', async () => {
    const threads = pool(1)
    const [one, two] = (await Promise.all([1, 2].map(() => harness(threads, `for (;;);`)))) as [
      GuestHarness,
      GuestHarness,
    ]
    await Promise.all([one.open(), two.open()])
    const [first, second] = [one.deliver(start), two.deliver(start)]
    let otherEnded = false
    void second.then(() => (otherEnded = true))
    for (let i = 0; i < 20; i++) {
      const running = i === 0 ? first : one.run()
      one.interrupt()
      expect((await running).state).toBe('interrupted')
      // Saved while its neighbour runs.
      expect((await one.snapshot()).header.state).toBe('interrupted')
    }
    expect(otherEnded).toBe(false)
    two.interrupt()
    expect((await second).state).toBe('interrupted')
  })

  test('a guest goes to the thread that holds least, and threads are never more than allowed', async () => {
    const threads = pool(2)
    const guests = await Promise.all(Array.from({ length: 6 }, () => harness(threads, `await prompt()`)))
    for (const guest of guests) await guest.open()
    expect([threads.count, threads.guests]).toEqual([2, 6])
    for (const guest of guests.slice(0, 5)) await guest.close()
    expect([threads.count, threads.guests]).toEqual([2, 1])
  })

  test('one that is closed while it runs ends, and its neighbour does not notice', async () => {
    const threads = pool(1)
    const [one, two] = [await harness(threads, `for (;;);`), await harness(threads, count(3e6))]
    await Promise.all([one.open(), two.open()])
    const [running, counting] = [one.deliver(start), two.deliver(start)]
    const ended = running.then(
      ({ state }) => state,
      (error: { code: string }) => error.code,
    )
    await one.close()
    expect(['interrupted', 'guest-state']).toContain(await ended)
    expect(await counting).toMatchObject({ state: 'finished' })
    expect(threads.guests).toBe(1)
  })

  test('a trap in one guest is that guest’s alone', async () => {
    const threads = pool(1)
    const greedy = new GuestHarness({
      ...{ engine, threads, memoryMax: 24 * 2 ** 20 },
      bundle: await bundle(main(`const a = []; for (;;) a.push(new Array(1000).fill(a.length))`)),
    })
    open.push(greedy)
    const other = await harness(threads, count(3e6))
    await Promise.all([greedy.open(), other.open()])
    const [failed, finished] = await Promise.all([greedy.deliver(start), other.deliver(start)])
    expect(failed).toMatchObject({ state: 'failed', error: { code: 'guest-memory' } })
    expect(finished).toMatchObject({ state: 'finished' })
  })

  test('a thread that dies takes its guests with it, each is told, and the next guest gets another one', async () => {
    const threads = pool(1)
    const [busy, resting] = [await harness(threads, `for (;;);`), await harness(threads, `await prompt()`)]
    await Promise.all([busy.open(), resting.open()])
    await resting.deliver(start)
    const running = busy.deliver(start)
    const told = expect(running).rejects.toMatchObject({ code: 'guest-trapped' })
    await threads.end()
    await told
    await expect(resting.deliver(outcome(1, null))).rejects.toMatchObject({ code: 'guest-trapped' })
    await Promise.all([busy.close(), resting.close()])
    const next = await harness(threads, `return 1`)
    await next.open()
    expect(await next.deliver(start)).toMatchObject({ state: 'finished', result: 1 })
    expect(threads.guests).toBe(1)
  })
})
