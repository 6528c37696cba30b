import { describe, expect, test } from 'vitest'
import { Guest } from '../src/vm/guest.ts'
import { moved, play, program, seeded } from './vm-programs.ts'

/** One agent that is in the middle of something different at every moment. */
const everything = `
import { emit, tool } from 'baton'
const hash = (text) => { let h = 7; for (let i = 0; i < text.length; i++) h = (h * 31 + text.charCodeAt(i)) | 0; return h }
function* numbers(n) { try { for (let i = 0; i < n; i++) yield i * i } finally { emit('generator', n) } }
async function later(x) { await null; let s = 0; for (let i = 0; i < 400; i++) s += i ^ x; return s }
const deep = (n, f) => n === 0 ? f() : [n].map((m) => deep(m - 1, f))[0] + n
export default async function main() {
  let x = 12345
  const next = () => (x = (Math.imul(x, 1103515245) + 12345) >>> 0) / 2 ** 32
  const list = Array.from({ length: 300 }, () => Math.floor(next() * 1e6))
  emit('sort', list.toSorted((a, b) => { let d = 0; for (let i = 0; i < 3; i++) d = a - b; return d }).slice(0, 5))
  emit('map', deep(11, () => { let s = 0; for (let i = 0; i < 3000; i++) s = (s + i * i) % 9973; return s }))
  const text = 'the quick brown fox 12345 jumps over 67 lazy dogs '.repeat(30)
  emit('regex', [...text.matchAll(/(\\w+)\\s(\\d+)|o[a-z]+/g)].map((m) => m[0]).join().length)
  emit('backtrack', /^(a|aa)+$/.test('a'.repeat(18) + 'b'))
  const tree = { items: list.map((n, i) => ({ n, s: 'v' + i, d: n / 7, ok: i % 2 === 0 })) }
  const json = JSON.stringify(tree)
  emit('json', [hash(json), JSON.parse(json).items.length])
  const steps = []
  try { for (const n of numbers(50)) { steps.push(n); if (n > 900) throw new Error('enough') } } catch (error) { steps.push(error.message) } finally { steps.push('done') }
  emit('try', steps)
  emit('async', await Promise.all([1, 2, 3].map(later)))
  let big = 3n
  for (let i = 0; i < 9; i++) big = big * big + 1n
  emit('bigint', hash(String(big)))
  const seen = new Map()
  for (const word of text.split(' ')) seen.set(word, (seen.get(word) ?? 0) + 1)
  emit('map', [...seen])
  emit('float', [0.1 + 0.2, Math.sin(1), 1 / 3, -0 === 0])
  const answer = await tool('a', { list: list.slice(0, 3) })
  const sync = tool.sync('b', { text: answer.text })
  emit('random', Math.random())
  emit('clock', Date.now())
  return [sync.text, hash(text), text.indexOf('zebra'), list.reverse().indexOf(-1)]
}`

describe('cut anywhere', async () => {
  const options = await program(everything)
  const uncut = play(options, (guest) => ({ guest }))

  test('the run that is never cut ends as it should', () => {
    expect(uncut.end).toMatchObject({ state: 'finished', result: ['answer 13', expect.any(Number), -1, -1] })
    expect(uncut.cuts).toBe(0)
  })

  test('what main returned survives a pause between its end and the end of its last job', async () => {
    const short = await program(`export default () => 'the end'`)
    // The first cuts at every point at which there can be a cut; the others come to fewer of them, with longer runs before.
    for (const fuel of [1, 2, 5, 11])
      expect(play(short, (guest) => ({ guest: moved(short, guest), fuel })).end).toMatchObject({
        result: 'the end',
      })
  })

  test.each([1, 2, 3, 4, 5, 6].map((seed) => [seed]))(
    'I7: cut at random places (seed %i) and restored into fresh instances, it ends byte-identical',
    (seed) => {
      const random = seeded(seed)
      const run = play(options, (guest) => ({
        guest:
          guest.state.name === 'quiescent' && guest.memoryHash() === options.baseline.hash
            ? guest
            : moved(options, guest),
        fuel: 1 + random(random(3) === 0 ? 300 : 20_000),
      }))
      expect(run.cuts).toBeGreaterThan(20)
      expect(JSON.stringify(run.transcript)).toBe(JSON.stringify(uncut.transcript))
      expect(run.end).toEqual(uncut.end)
    },
  )

  test('F59: a run that is interrupted, saved and restored leaves the same memory as one that is not', () => {
    const random = seeded(99)
    const run = play(options, (guest) => ({ guest: moved(options, guest), fuel: 1 + random(30_000) }))
    expect(run.cuts).toBeGreaterThan(5)
    expect(run.hash).toBe(uncut.hash)
  })

  test('F55: values held across a pause keep their bits, of every kind', async () => {
    const held = await program(`
      import { tool } from 'baton'
      export default function main() {
        const i = 2147483647, f = 0.1 + 0.2, n = -0, big = 2n ** 70n, s = 'x', o = { a: [1] }
        let sum = 0
        const keep = [1.5, 2, 3].map((m, at) => { for (let k = 0; k < 500; k++) sum += m; return m * f + at })
        tool.sync('wait', {})
        return [i, f, Object.is(n, -0), String(big), s, o.a[0], keep, sum]
      }`)
    const expected = [
      2147483647,
      0.1 + 0.2,
      true,
      String(2n ** 70n),
      'x',
      1,
      [1.5, 2, 3].map((m, at) => m * (0.1 + 0.2) + at),
      3250,
    ]
    for (const fuel of [48, 159, 344, 603]) {
      const run = play(held, (guest) => ({ guest: moved(held, guest), fuel }))
      expect(run.end).toEqual({ state: 'finished', asked: [], result: expected })
    }
  })

  test('F53: any number of restores in one process, in any order', () => {
    const guest = new Guest(options)
    const points: { bytes: Uint8Array; rest: string }[] = []
    let pause = guest.deliver({ ...startOf() }, { fuel: 5000 })
    for (let i = 0; i < 6 && pause.state === 'interrupted'; i++) {
      const { bytes } = guest.snapshot({ full: true })
      points.push({ bytes, rest: restOf(bytes) })
      pause = guest.run({ fuel: 5000 })
    }
    expect(points.length).toBe(6)
    for (const at of [5, 0, 3, 3, 1, 4, 0]) expect(restOf(points[at]!.bytes)).toBe(points[at]!.rest)

    function restOf(bytes: Uint8Array): string {
      const copy = new Guest(options)
      copy.restore([bytes])
      const end = copy.run()
      return JSON.stringify(end) + copy.memoryHash()
    }
  })
})

function startOf(): Parameters<Guest['deliver']>[0] {
  return { type: 'start', seed: '5'.repeat(64), now: 5, mode: 'full', tools: [], about: {}, settings: {} }
}
