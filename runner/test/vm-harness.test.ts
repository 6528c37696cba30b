import { afterEach, describe, expect, test } from 'vitest'
import { GuestHarness } from '../src/vm/guest-harness.ts'
import { once } from '../src/vm/program.ts'
import { bundle, engine, outcome, start } from './vm-programs.ts'

test('of what is made once, only what was used last is kept', async () => {
  const cache = new Map<string, Promise<number>>()
  let made = 0
  const get = (key: string): Promise<number> => once(cache, 2, key, async () => ++made)
  expect([await get('a'), await get('b'), await get('a'), await get('c')]).toEqual([1, 2, 1, 3])
  expect([...cache.keys()]).toEqual(['a', 'c'])
  expect([await get('a'), await get('b')]).toEqual([1, 4])
  await expect(once(cache, 2, 'bad', () => Promise.reject(new Error('no')))).rejects.toThrow('no')
  expect(cache.has('bad')).toBe(false)
})

const open: GuestHarness[] = []
afterEach(async () => {
  await Promise.all(open.splice(0).map((harness) => harness.close()))
})
async function harness(body: string, options: { memoryMax?: number } = {}): Promise<GuestHarness> {
  const code = await bundle(
    `import { prompt, tool } from 'baton'\nexport default async function main() { ${body} }`,
  )
  const made = new GuestHarness({ engine, bundle: code, ...options })
  open.push(made)
  return made
}

/** Native work that takes far longer than a test may, and never runs JavaScript of the agent meanwhile. */
const native: [name: string, body: string][] = [
  ['a regular expression that backtracks', `return /^(a+)+$/.test('a'.repeat(40) + 'b')`],
  ['indexOf over a huge array-like', `return Array.prototype.indexOf.call({ length: 2 ** 40 }, 1)`],
  ['BigInt multiplication', `let b = 3n ** 200000n; for (;;) b = (b * b) >> 300000n`],
  ['BigInt to text', `return String(7n ** 350000n).length`],
  [
    'sort of a long array',
    `const a = Array.from({ length: 3e5 }, (_, i) => (i * 7919) % 3e5 + ''); for (;;) a.reverse().sort()`,
  ],
  ['JSON.parse', `const s = '[' + '[1,2,{"a":"b"}],'.repeat(2e5) + '0]'; for (;;) JSON.parse(s)`],
  [
    'JSON.stringify',
    `const o = Array.from({ length: 1e5 }, (_, i) => ({ i, s: 'x' })); for (;;) JSON.stringify(o)`,
  ],
  ['string search', `const s = 'ab'.repeat(3e6); for (;;) s.lastIndexOf('ba!')`],
  ['a recursive function without loops', `const f = (n) => n < 2 ? n : f(n - 1) + f(n - 2); return f(80)`],
  ['an endless chain of promises', `for (;;) await null`],
]

describe('interruption', () => {
  test.each(native)('F56: %s is stopped, saved, and goes on elsewhere', async (_, body) => {
    const guest = await harness(body)
    await guest.open()
    for (let i = 0; i < 2; i++) {
      const running = i === 0 ? guest.deliver(start) : guest.run()
      await new Promise((resolve) => setImmediate(resolve))
      guest.interrupt()
      expect((await running).state).toBe('interrupted')
    }
    const { bytes, header } = await guest.snapshot()
    expect(header.state).toBe('interrupted')
    const elsewhere = await harness(body)
    expect(await elsewhere.restore([bytes])).toEqual({ state: 'interrupted', asked: [] })
    expect((await elsewhere.run({ fuel: 10_000 })).state).toBe('interrupted')
  })

  test('an interrupt that comes when nothing runs is not kept for later', async () => {
    const guest = await harness(`await prompt(); return 1`)
    await guest.open()
    guest.interrupt()
    expect((await guest.deliver(start)).state).toBe('quiescent')
  })

  test('a time slice ends by itself', async () => {
    const guest = await harness(`for (;;);`)
    await guest.open()
    expect((await guest.deliver(start, { ms: 5 })).state).toBe('interrupted')
    expect((await guest.run({ ms: 5 })).state).toBe('interrupted')
  })
})

describe('limits', () => {
  test('deep recursion is an error that the guest can catch, and it goes on', async () => {
    const guest = await harness(`
      let depth = 0
      const down = () => { depth++; return [1].map(down) }
      try { down() } catch (error) { await tool('x', { name: error.name }); return depth }`)
    await guest.open()
    const pause = await guest.deliver(start)
    expect(pause.asked).toMatchObject([
      { input: { input: { name: expect.stringMatching(/RangeError|InternalError/) } } },
    ])
    const end = await guest.deliver(outcome(1, null))
    expect(end.state === 'finished' && Number(end.result)).toBeGreaterThan(100)
  })

  test('a stack close to the limit can be unwound, moved and rewound', async () => {
    const body = `
      const down = (n) => { if (n === 0) { let s = 0; for (let i = 0; i < 1e6; i++) s += i; return s } return [n].map(() => down(n - 1))[0] + 1 }
      let n = 10
      try { for (;; n += 10) { const probe = (k) => k === 0 ? 0 : [k].map(() => probe(k - 1))[0]; probe(n) } } catch {}
      await tool('depth', { n })
      return down(n - 40) - n`
    const guest = await harness(body)
    await guest.open()
    await guest.deliver(start)
    let pause = await guest.deliver(outcome(1, null), { fuel: 60_000 })
    expect(pause.state).toBe('interrupted')
    const { bytes } = await guest.snapshot()
    const elsewhere = await harness(body)
    await elsewhere.restore([bytes])
    pause = await elsewhere.run()
    expect(pause).toMatchObject({ state: 'finished', result: 499999500000 - 40 })
  })

  test('F57: the host lives on when a guest takes all that it may', async () => {
    const guest = await harness(`const a = []; for (;;) a.push(new Array(1000).fill(a.length))`, {
      memoryMax: 24 * 2 ** 20,
    })
    await guest.open()
    expect(await guest.deliver(start)).toMatchObject({ state: 'failed', error: { code: 'guest-memory' } })
  })
})

describe('life', () => {
  test('a harness is used once, and only while it is open', async () => {
    const guest = await harness(`return 1`)
    await expect(guest.deliver(start)).rejects.toMatchObject({ code: 'guest-state' })
    await guest.open()
    await expect(guest.open()).rejects.toMatchObject({ code: 'guest-state' })
    await guest.close()
    await expect(guest.run()).rejects.toMatchObject({ code: 'guest-state' })
  })

  test('F53, F54: threads are used again and nothing leaks from one guest into the next', async () => {
    const body = `globalThis.n = (globalThis.n ?? 0) + 1; await prompt(); return globalThis.n`
    for (let round = 0; round < 6; round++) {
      const guest = await harness(body)
      await guest.open()
      await guest.deliver(start)
      const { bytes } = await guest.snapshot()
      await guest.close()
      const next = await harness(body)
      await next.restore([bytes])
      expect(await next.deliver(outcome(1, null))).toMatchObject({ state: 'finished', result: 1 })
      await next.close()
    }
  })

  test('a bad snapshot is refused with its code and closes the harness', async () => {
    const guest = await harness(`return 1`)
    await expect(guest.restore([Buffer.from('garbage')])).rejects.toMatchObject({ code: 'snapshot-foreign' })
    await expect(guest.run()).rejects.toMatchObject({ code: 'guest-state' })
  })

  test('a file that is no engine is refused', async () => {
    const code = await bundle(`export default () => 1`)
    const noEngine = new GuestHarness({ engine: Buffer.from('no engine'), bundle: code })
    await expect(noEngine.open()).rejects.toMatchObject({ code: 'snapshot-engine' })
  })
})
