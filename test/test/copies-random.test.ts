/** Copies of one session draw different random numbers. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { bundleAgent } from '@baton/guest/bundle.ts'
import type { Opened } from '@baton/shared/entries.ts'
import type { RunnerOptions } from '@baton/runner/daemon/runner.ts'
import { GuestHarness } from '@baton/runner/vm/guest-harness.ts'
import { echo, fork, hasOutcome, isStored } from '../src/copies.ts'
import { Loop } from '../src/loop.ts'

const built = (file: string): Uint8Array =>
  new Uint8Array(readFileSync(join(import.meta.dirname, '../../guest/dist', file)))

/** Draws a random number for every prompt. */
const DRAWS = `import { emit, prompt } from 'baton'
export default async function main() {
  for (;;) {
    await prompt()
    emit('drawn', Math.random())
  }
}`
/** The same, blocked in between. */
const DRAWS_SYNC = `import { emit, prompt } from 'baton'
export default function main() {
  for (;;) {
    prompt.sync()
    emit('drawn', Math.random())
  }
}`
/** Draws one, computes for seconds, draws another one. */
const DRAWS_LATE = `import { emit, prompt, sleep } from 'baton'
export default async function main() {
  await prompt()
  emit('drawn', Math.random())
  await sleep(1)
  let sum = 0
  for (let i = 0; i < 4_000_000; i++) sum = (sum + i) % 1_000_003
  emit('sum', sum)
  emit('drawn', Math.random())
  await prompt()
}`

/** Real guests of this source. */
async function guests(loop: Loop, source: string): Promise<Partial<RunnerOptions['hands']>> {
  const file = join(loop.folder, 'agent.ts')
  writeFileSync(file, source)
  const [engine, bundle] = [built('engine.wasm'), await bundleAgent(file)]
  return { agent: async () => bundle, harness: (bytes) => new GuestHarness({ engine, bundle: bytes }) }
}

const drawn = (entries: Opened[], type = 'drawn'): string[] =>
  entries.flatMap((entry) =>
    entry.kind === 'event' && entry.body.type === type ? [JSON.stringify(entry.body.data)] : [],
  )

describe('random numbers of copies', () => {
  it.each([
    ['rests', DRAWS],
    ['is blocked', DRAWS_SYNC],
  ])(
    'F58: are other ones, from a guest that %s; also in a copy of a copy, and after a crash',
    async (_, agent) => {
      await using loop = await Loop.open({ program: echo, lease_ms: 1500 })
      const hands = await guests(loop, agent)
      const one = await loop.runner('one', hands)
      const sid = await loop.start(one.id)
      await loop.client.command(sid, 'prompt', { text: 'draw' })
      const before = await loop.client.untilEntries(
        sid,
        'it drew',
        (all) => drawn(all).length === 1 && isStored(all),
      )
      const copies = [await fork(loop, sid, one.id), await fork(loop, sid, one.id)]
      const told: string[] = []
      for (const session of [sid, ...copies]) {
        await loop.client.untilEntries(session, 'it waits', (all) => drawn(all).length === 1 && isStored(all))
        await loop.client.command(session, 'prompt', { text: 'draw' })
        const entries = await loop.client.untilEntries(session, 'it drew', (all) => drawn(all).length === 2)
        expect(drawn(entries)[0]).toBe(drawn(before)[0])
        told.push(drawn(entries)[1] ?? '')
      }
      expect(new Set(told).size, told.join()).toBe(3)

      // The next number is the same whether the copy went on or was restored, and a copy of a copy draws others again.
      const [copy = ''] = copies
      const twin = await fork(loop, copy, one.id)
      await loop.client.untilEntries(twin, 'the twin waits', isStored)
      one.runner.close()
      await loop.runner('two', hands)
      for (const session of [copy, twin]) {
        await loop.client.command(session, 'prompt', { text: 'draw' })
      }
      const again = await loop.client.untilEntries(copy, 'it drew', (all) => drawn(all).length === 3)
      const twins = await loop.client.untilEntries(twin, 'the twin drew', (all) => drawn(all).length === 3)
      expect(drawn(twins).slice(0, 2)).toEqual(drawn(again).slice(0, 2))
      expect(drawn(twins)[2]).not.toBe(drawn(again)[2])
      expect(JSON.stringify(again)).not.toContain('did not fit the journal')
    },
  )

  it('F58: are other ones, from a guest that was copied while it computed', async () => {
    await using loop = await Loop.open({ program: echo, lease_ms: 1500 })
    const hands = await guests(loop, DRAWS_LATE)
    const one = await loop.runner('one', hands)
    const sid = await loop.start(one.id)
    await loop.client.command(sid, 'prompt', { text: 'draw' })
    await loop.client.untilEntries(sid, 'it computes', (all) => hasOutcome(3)(all) && isStored(all))
    await one.runner.drain(0)
    const origin = await loop.client.entries(sid)
    const saved = origin.filter((entry) => entry.kind === 'snapshot').at(-1)
    expect(saved?.kind === 'snapshot' && saved.body.state).toBe('interrupted')

    const copies = [await fork(loop, sid, one.id), await fork(loop, sid, one.id)]
    await loop.runner('one', hands, one.device)
    const told = []
    for (const session of [sid, ...copies]) {
      const all = await loop.client.untilEntries(session, 'it drew', (entries) => drawn(entries).length === 2)
      expect(drawn(all)[0]).toBe(drawn(origin)[0])
      told.push(drawn(all)[1])
    }
    expect(new Set(told).size, told.join()).toBe(3)
  })
})
