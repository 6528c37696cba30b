import { describe, expect, test } from 'vitest'
import { decodeSnapshot, encodeSnapshot } from '../src/vm/codec.ts'
import { Guest } from '../src/vm/guest.ts'
import { applyPages, diffPages, pageBytes } from '../src/vm/pages.ts'
import { outcome, program, start } from './vm-programs.ts'

const source = `import { prompt } from 'baton'
export default async function main() {
  const said = []
  for (let i = 0; i < 4; i++) said.push((await prompt()).text)
  return said
}`

describe('snapshot files', async () => {
  const options = await program(source)
  const guest = new Guest(options)
  guest.deliver(start)
  const first = guest.snapshot()
  guest.deliver(outcome(1, { text: 'one' }))
  const second = guest.snapshot()
  const full = guest.snapshot({ full: true })
  const refusal = (chain: Uint8Array[], from = options): unknown => {
    try {
      new Guest(from).restore(chain)
    } catch (error) {
      return error
    }
    return undefined
  }

  test('a snapshot relative to its parent restores with its parent, and is the smaller one', () => {
    expect(first.header.parent).toBeUndefined()
    expect(second.header.parent).toBe(first.hash)
    expect(full.header.parent).toBeUndefined()
    expect(second.bytes.length).toBeLessThan(full.bytes.length)
    const chained = new Guest(options)
    chained.restore([first.bytes, second.bytes])
    const direct = new Guest(options)
    direct.restore([full.bytes])
    expect(chained.memoryHash()).toBe(direct.memoryHash())
    chained.deliver(outcome(2, { text: 'two' }))
    chained.deliver(outcome(3, { text: 'three' }))
    expect(chained.deliver(outcome(4, { text: 'four' }))).toMatchObject({
      result: ['one', 'two', 'three', 'four'],
    })
  })

  test('F60: another engine, agent or version is refused, naming what is needed', () => {
    const other = 'ab'.repeat(32)
    expect(refusal([full.bytes], { ...options, engine: other })).toMatchObject({
      code: 'snapshot-engine',
      detail: `(it needs engine ${options.engine}, this is ${other})`,
    })
    expect(refusal([full.bytes], { ...options, bundle: other })).toMatchObject({
      code: 'snapshot-baseline',
      detail: `(it needs bundle ${options.bundle}, this is ${other})`,
    })
    expect(
      refusal([full.bytes], { ...options, baseline: { ...options.baseline, hash: other } }),
    ).toMatchObject({
      code: 'snapshot-baseline',
      detail: expect.stringContaining(`needs baseline ${options.baseline.hash}`),
    })
    const file = decodeSnapshot(full.bytes)
    const newer = encodeSnapshot({ ...file, header: { ...file.header, abi: 99 } })
    expect(refusal([newer])).toMatchObject({
      code: 'snapshot-engine',
      detail: '(it needs abi 99, this is 1)',
    })
    const format = Uint8Array.from(full.bytes)
    format[7] = '2'.charCodeAt(0)
    expect(refusal([format])).toMatchObject({
      code: 'snapshot-engine',
      detail: expect.stringContaining('BATONSN2'),
    })
  })

  test('a torn file is refused wherever it was cut or hit', () => {
    for (const length of [9, 11, 60, 200, full.bytes.length - 33, full.bytes.length - 1])
      expect(refusal([full.bytes.subarray(0, length)])).toMatchObject({ code: 'snapshot-torn' })
    for (const at of [9, 40, 300, full.bytes.length - 40, full.bytes.length - 1]) {
      const damaged = Uint8Array.from(full.bytes)
      damaged[at]! ^= 1
      expect(refusal([damaged])).toMatchObject({ code: 'snapshot-torn' })
    }
  })

  test('something else is refused as foreign', () => {
    for (const bytes of [
      Buffer.from('not a snapshot at all, but long enough to look like one to a careless reader'),
    ])
      expect(refusal([bytes])).toMatchObject({ code: 'snapshot-foreign' })
    expect(refusal([])).toMatchObject({ code: 'snapshot-foreign' })
  })

  test('a chain with a missing or wrong link is refused', () => {
    expect(refusal([second.bytes])).toMatchObject({
      code: 'snapshot-baseline',
      detail: `(it builds on snapshot ${first.hash}, but was given none)`,
    })
    expect(refusal([full.bytes, second.bytes])).toMatchObject({ code: 'snapshot-baseline' })
    expect(refusal([second.bytes, first.bytes])).toMatchObject({ code: 'snapshot-baseline' })
  })

  test('a well-formed file whose pages do not fit is refused', () => {
    const file = decodeSnapshot(full.bytes)
    const wild = { ...file, diff: { ...file.diff, pages: file.diff.pages.map(() => 1e6) } }
    expect(refusal([encodeSnapshot(wild)])).toMatchObject({ code: 'snapshot-torn' })
  })

  test('the same guest makes the same bytes', () => {
    const again = new Guest(options)
    again.deliver(start)
    expect(again.snapshot().hash).toBe(first.hash)
  })
})

test('page differences: apply(base, diff(now, base)) = now, also when memory grew', () => {
  const base = new Uint8Array(3 * pageBytes).fill(7)
  const now = new Uint8Array(5 * pageBytes)
  now.set(base)
  now[pageBytes + 5] = 1
  now[4 * pageBytes] = 9
  const diff = diffPages(now, base)
  expect(diff.pages).toEqual([1, 4])
  const memory = new Uint8Array(5 * pageBytes)
  memory.set(base)
  applyPages(memory, diff)
  expect(memory).toEqual(now)
})
