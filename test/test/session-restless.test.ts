/** A session that is moved again and again, at whatever moment, on real guests. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { Opened } from '@baton/shared/entries.ts'
import { bundleAgent } from '@baton/guest/bundle.ts'
import { GuestHarness } from '@baton/runner/vm/guest-harness.ts'
import { Loop } from '../src/loop.ts'
import { until } from '../src/until.ts'

const steps = (entries: Opened[]): number =>
  entries.filter((entry) => entry.kind === 'event' && entry.body.type === 'step').length

it('I8: asks the model exactly as often as one that rests, in first attempts only, and always fits its journal', async () => {
  const engine = await readFile(join(import.meta.dirname, '../../guest/dist/engine.wasm'))
  const bundle = await bundleAgent(join(import.meta.dirname, '../src/agents/asker.ts'))
  let calls = 0
  await using loop = await Loop.open({
    program: function* () {
      yield {}
      return null
    },
    harness: (code) => new GuestHarness({ engine, bundle: code }),
    model: async () => {
      const text = `answer ${++calls}`
      return {
        content: [{ type: 'text', text }],
        stop_reason: 'end_turn',
        model: 'm',
        usage: { input_tokens: 1, output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0 },
      }
    },
  })
  const agent = async (): Promise<Uint8Array> => bundle
  const runners = [await loop.runner('one', { agent }), await loop.runner('two', { agent })]
  const { client } = loop
  const sid = await loop.start(runners[0]?.id ?? '')
  await client.untilEntries(sid, 'the workspace is stored', (entries) =>
    entries.some(({ kind }) => kind === 'checkpoint'),
  )
  let entries: Opened[] = []
  for (let move = 1; steps(entries) < 12; move++) {
    const to = runners[move % 2]?.id ?? ''
    await client.command(sid, 'move', { label: 'other' }, { place: { prefer: to } })
    await until('it moved', async () => (await client.info(sid)).holder === to)
    entries = await client.entries(sid)
  }
  expect(calls).toBe(12)
  const intents = entries.flatMap((entry) => (entry.kind === 'intent' ? [entry.body] : []))
  expect(intents.map(({ attempt }) => attempt)).toEqual(intents.map(() => 1))
  expect(new Set(intents.map(({ effect }) => effect)).size).toBe(intents.length)
  expect(loop.logs.filter((line) => /diverged|bad/.test(line))).toEqual([])
  const moves = entries.filter((entry) => entry.kind === 'lease' && entry.lease.change === 'claimed').length
  expect(moves).toBeGreaterThan(3)
})
