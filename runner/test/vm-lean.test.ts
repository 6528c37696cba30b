/** Snapshots of guests that rest: without what lies dead in their memory. */
import { describe, expect, test } from 'vitest'
import { decodeSnapshot, dense, sha256 } from '../src/vm/codec.ts'
import { forgetDead, layoutOf } from '../src/vm/dead.ts'
import { Guest } from '../src/vm/guest.ts'
import { applyPages } from '../src/vm/pages.ts'
import { moved, outcome, program, seeded, start } from './vm-programs.ts'

/** Fills memory and gives it up again; holds strings, objects, a map, a generator, weak references and a buffer across its waits. */
const litter = `
import { emit, tool } from 'baton'
function* count() { for (let i = 0; ; i++) yield i }
export default async function main() {
  const numbers = count(), held = new Map(), weak = new WeakMap(), buffer = new Uint8Array(4064).fill(0xab)
  let chain, sum = 0
  for (let round = 0; round < 12; round++) {
    const many = Array.from({ length: 400 }, (_, i) => ({ i, text: 'litter ' + round + ' ' + i * 7919, list: [i, i / 3] }))
    const kept = many.filter(({ i }) => i % 37 === round)
    held.set(round, kept)
    for (const one of kept) weak.set(one, { chain, round })
    chain = { next: chain, names: kept.map(({ text }) => text), big: BigInt(round) ** 30n, when: numbers.next().value }
    const answer = round % 3 === 2 ? tool.sync('look', { round }) : await tool('look', { round })
    sum += answer.text.length + JSON.stringify(chain.names).length + weak.get(held.get(round)[0]).round
    emit('round', [round, sum, String(chain.big), buffer[round * 300], /(\\d+)$/.exec(kept.at(-1).text)[1]])
    if (round % 4 === 3) held.delete(round - 3)
  }
  return [sum, [...held].map(([at, kept]) => [at, kept.map(({ text }) => text)]), Math.random()]
}`

const options = await program(litter)

/** Plays it to its end, or until it has waited so often; `rest` is what becomes of it whenever it waits. */
function play(
  rest: (guest: Guest) => Guest,
  rests_max = Infinity,
): { transcript: string; rests: number; guest: Guest } {
  const asked: unknown[] = []
  let [guest, rests] = [new Guest(options), 0]
  let pause = guest.deliver(start)
  for (;;) {
    asked.push(...pause.asked)
    if (pause.state === 'finished' || pause.state === 'failed' || rests === rests_max) {
      return { transcript: JSON.stringify([asked, { ...pause, asked: [] }]), rests, guest }
    }
    const waiting = pause.asked.findLast(({ kind }) => kind === 'tool')?.id ?? 0
    guest = rest(guest)
    rests++
    pause = guest.deliver(outcome(waiting, { text: `answer ${waiting}` }))
  }
}

const lean = (guest: Guest): Guest => {
  const fresh = new Guest(options)
  fresh.restore([guest.snapshot({ lean: true }).bytes])
  return fresh
}

/** After some rounds of work. */
const littered = (): Guest => play((guest) => guest, 7).guest

const deadOf = (memory: Uint8Array, from = options): number =>
  forgetDead(memory, {
    ...{ baseline: from.baseline.memory, layout: layoutOf(from.module), stack: 0 },
  })

/** Guest memory as it was saved. */
function memoryOf(guest: Guest): Uint8Array {
  const { diff } = decodeSnapshot(guest.snapshot({ full: true }).bytes)
  const memory = new Uint8Array(diff.bytes)
  memory.set(options.baseline.memory)
  applyPages(memory, diff)
  return memory
}

describe('saved without what is dead', () => {
  const whole = play((guest) => guest)

  test('I7: it asks for the same and ends the same, saved at every rest', () => {
    expect(whole.transcript).toContain('finished')
    expect(whole.rests).toBe(12)
    expect(play(lean).transcript).toBe(whole.transcript)
  })

  test.each([1, 2, 3, 4].map((seed) => [seed]))(
    'I7: so it does when it is saved now so, now otherwise (seed %i)',
    (seed) => {
      const random = seeded(seed)
      const ways = [lean, (guest: Guest) => moved(options, guest), (guest: Guest) => guest]
      const run = play((guest) => (ways[random(3)] ?? lean)(guest))
      expect(run.transcript).toBe(whole.transcript)
    },
  )

  test('it is smaller, and the guest that goes on is as it was', () => {
    const guest = littered()
    const before = guest.memoryHash()
    const [full, small] = [guest.snapshot({ full: true }), guest.snapshot({ lean: true })]
    expect(small.bytes.length).toBeLessThan(0.8 * full.bytes.length)
    expect(guest.memoryHash()).toBe(before)
    expect(small.header.parent).toBeUndefined()
    // Its file may be packed anew, under another name: nothing may build on it.
    expect(guest.snapshot().header.parent).toBeUndefined()
  })

  test('its file is packed harder beside the thread, and restores the same', async () => {
    const snapshot = littered().snapshot({ lean: true })
    const small = await dense(snapshot)
    expect(small.bytes.length).toBeLessThan(0.97 * snapshot.bytes.length)
    expect(small).toMatchObject({ header: snapshot.header, hash: sha256(small.bytes) })
    const [one, other] = [new Guest(options), new Guest(options)]
    one.restore([snapshot.bytes])
    other.restore([small.bytes])
    expect(other.memoryHash()).toBe(one.memoryHash())
  })

  test('an interrupted guest may be in the middle of the allocator: nothing of its memory counts as dead', () => {
    const guest = new Guest(options)
    expect(guest.deliver(start, { fuel: 3000 }).state).toBe('interrupted')
    const copy = new Guest(options)
    copy.restore([guest.snapshot({ lean: true }).bytes])
    expect(copy.memoryHash()).toBe(guest.memoryHash())
  })
})

describe('what is dead', () => {
  const memory = memoryOf(littered())

  test('is found in both allocators, a second time all the same, and is as in the baseline then', () => {
    const once = memory.slice()
    const bytes = deadOf(once)
    expect(bytes).toBeGreaterThan(50_000)
    const twice = once.slice()
    expect(deadOf(twice)).toBe(bytes)
    expect(sha256(twice)).toBe(sha256(once))
    const changed = once.filter((byte, at) => byte !== memory[at]).length
    expect(changed).toBeGreaterThan(10_000)
  })

  test('is never the content of a buffer, even if that looks like free blocks', () => {
    const at = Buffer.from(memory).indexOf(Buffer.alloc(4064, 0xab))
    expect(at).toBeGreaterThan(0)
    // The head of an arena of 250 blocks of 16 bytes, all of them free; then each leads to the next.
    const forged = memory.slice()
    const view = new DataView(forged.buffer)
    // Before the content stands the head of its own block.
    const arena = at - 8
    forged.fill(0, at, arena + 24)
    view.setUint16(arena + 20, 250, true)
    for (let n = 0; n < 250; n++) {
      view.setUint16(arena + 24 + 16 * n, n === 249 ? 0xffff : n + 1, true)
      forged[arena + 24 + 16 * n + 2] = 0
    }
    const content = forged.slice(at, at + 4064)
    expect(deadOf(forged)).toBeGreaterThan(50_000)
    expect(forged.slice(at, at + 4064)).toEqual(content)
  })

  test('is nothing at all where memory is not as expected: then no byte changes', () => {
    const { heap } = layoutOf(options.module)
    const random = seeded(5)
    const broken: [what: string, change: (bytes: Uint8Array, view: DataView) => void][] = [
      ['a chunk too long', (_, view) => view.setUint32(heap + 4, 0x7ffffff3, true)],
      ['a chunk of nothing', (_, view) => view.setUint32(heap + 4, 3, true)],
      ['a chunk that says the one before were free', (_, view) => view.setUint32(heap + 4, 18, true)],
    ]
    for (const [what, change] of broken) {
      const bytes = memory.slice()
      change(bytes, new DataView(bytes.buffer))
      const before = sha256(bytes)
      expect([what, deadOf(bytes)]).toEqual([what, 0])
      expect([what, sha256(bytes)]).toEqual([what, before])
    }
    const other = { ...options, baseline: { ...options.baseline, memory: new Uint8Array(memory.length) } }
    const bytes = memory.slice()
    expect(deadOf(bytes, other)).toBe(0)
    expect(sha256(bytes)).toBe(sha256(memory))
    // Memory that is damaged somewhere: all or nothing, and never a fault.
    for (let n = 0; n < 200; n++) {
      const damaged = memory.slice()
      for (let i = 0; i < 8; i++) damaged[heap + random(damaged.length - heap)] = random(256)
      const before = sha256(damaged)
      if (deadOf(damaged) === 0) expect(sha256(damaged)).toBe(before)
    }
  })
})
