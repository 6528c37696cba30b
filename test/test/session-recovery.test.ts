/** What a successor does with bad snapshots, with requests that could not start, with Stop, and with a journal cut anywhere. */
import { describe, expect, it } from 'vitest'
import { BatonError } from '@baton/shared/errors.ts'
import type { Opened } from '@baton/shared/entries.ts'
import type { EffectRequest, GuestMessage, Json } from '@baton/shared/guest.ts'
import { transcriptOf } from '@baton/shared/transcript.ts'
import { Loop } from '../src/loop.ts'
import { prompt, tool } from '../src/script-asks.ts'
import { ScriptHarness, type Program } from '../src/script-harness.ts'
import { until } from '../src/until.ts'

const emit = (id: number, data: Json): EffectRequest => ({ id, kind: 'emit', input: { type: 'note', data } })

const count = (entries: Opened[], kind: Opened['kind']): number =>
  entries.filter((entry) => entry.kind === kind).length
const stored = (entries: Opened[]): boolean => count(entries, 'checkpoint') > 0

function textOf(message: GuestMessage): Json {
  if (message.type !== 'outcome') return null
  if (message.error) return message.error.code
  return typeof message.result === 'object' && message.result !== null && 'text' in message.result
    ? (message.result['text'] ?? null)
    : null
}

/** Tells every prompt, for ever. */
const echo: Program = function* () {
  yield {}
  let id = 0
  for (;;) {
    const message = yield { ask: [prompt(++id)] }
    yield { ask: [emit(++id, textOf(message)), tool(++id, 'tick')] }
  }
}

const notes = (entries: Opened[]): Json[] =>
  entries.flatMap((entry) => (entry.kind === 'event' && entry.body.type === 'note' ? [entry.body.data] : []))

describe('snapshots that can not be used', () => {
  async function movedWith(restore: ScriptHarness['restore']): Promise<{ entries: Opened[] }> {
    let restores = 0
    class Fussy extends ScriptHarness {
      override restore(chain: Uint8Array[]) {
        return ++restores === 1 ? restore.call(this, chain) : super.restore(chain)
      }
    }
    await using loop = await Loop.open({
      program: echo,
      harness: () => new Fussy(echo),
      tools: { tick: { run: async () => 'tock' } },
    })
    const [one, two] = [await loop.runner('one'), await loop.runner('two')]
    const sid = await loop.start(one.id)
    await loop.client.command(sid, 'prompt', { text: 'first' })
    await loop.client.untilEntries(
      sid,
      'the first prompt was told',
      (entries) => notes(entries).length === 1 && stored(entries),
    )
    await loop.client.untilEntries(
      sid,
      'it asks for the next prompt',
      (entries) => count(entries, 'intent') === 3,
    )
    await loop.client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
    await loop.client.command(sid, 'prompt', { text: 'second' })
    const entries = await loop.client.untilEntries(
      sid,
      'the second prompt was told',
      (all) => notes(all).length >= 2,
    )
    return { entries }
  }

  it('F28: a torn snapshot is passed over for the one before, and said so', async () => {
    const { entries } = await movedWith(() => Promise.reject(new BatonError('snapshot-torn')))
    expect(notes(entries)).toEqual(['first', 'second'])
    expect(JSON.stringify(entries)).toContain('A snapshot could not be used')
    // One says what the agent is, the others where that stands.
    const [first, ...others] = entries.flatMap((entry) => (entry.kind === 'snapshot' ? [entry] : []))
    expect(first?.body.agent).toMatchObject({ name: 'script' })
    expect(others.length).toBeGreaterThan(0)
    for (const { body } of others) expect([body.agent, body.agent_at]).toEqual([undefined, first?.seq])
  })

  it('F29: a snapshot that disagrees with the journal is given up for an earlier one, and said so', async () => {
    const other: Program = function* () {
      yield {}
      yield { ask: [] }
      for (;;) yield { ask: [tool(1, 'elsewhere'), tool(4, 'elsewhere'), tool(5, 'elsewhere')] }
    }
    const { entries } = await movedWith(async function (this: ScriptHarness) {
      return new ScriptHarness(other)
        .restore([new TextEncoder().encode('{"messages":[]}')])
        .then((pause) => ({
          ...pause,
          asked: [tool(1, 'elsewhere')],
        }))
    })
    expect(notes(entries)).toEqual(['first', 'second'])
    expect(JSON.stringify(entries)).toContain('did not fit the journal')
  })
})

describe('stop', () => {
  it('H10: ends what runs with an outcome, at once, and tells the guest', async () => {
    const heard: string[] = []
    const program: Program = function* () {
      yield {}
      const first = yield { ask: [tool(1, 'hang')] }
      heard.push(first.type)
      const second = yield { ask: [] }
      yield { ask: [emit(2, [first, second].map(textOf)), prompt(3)] }
      return null
    }
    const run = (_: unknown, signal: AbortSignal): Promise<string> =>
      new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    await using loop = await Loop.open({ program, tools: { hang: { run } } })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    await loop.client.untilEntries(sid, 'the tool runs', (entries) => count(entries, 'intent') === 1)
    await loop.client.command(sid, 'stop', {})
    const entries = await loop.client.untilEntries(sid, 'the stop was told', (all) => notes(all).length === 1)
    expect(heard).toEqual(['stop'])
    expect(notes(entries)).toEqual([[null, 'stopped']])
  })
})

describe('I7: cut anywhere', () => {
  const program: Program = function* () {
    yield {}
    let id = 0
    for (let turn = 0; turn < 3; turn++) {
      const said = yield { ask: [prompt(++id)] }
      const [note, a, b] = [++id, ++id, ++id]
      const one = yield { ask: [emit(note, textOf(said)), tool(a, 'tick'), tool(b, 'tock')] }
      const two = yield {}
      yield { ask: [emit(++id, [textOf(one), textOf(two)].map(String).toSorted()), tool(++id, 'tick')] }
    }
    return 'end'
  }

  it('a runner that goes away in any call leaves a session that ends as if nothing had happened, no event told twice', async () => {
    const undisturbed = await play(Infinity)
    expect(undisturbed.length).toBeGreaterThan(10)
    for (let cut = 1; cut <= 9; cut++) {
      expect(await play(cut), `cut in call ${cut}`).toEqual(undisturbed)
    }

    /** The call with number `cut` never ends, and its runner goes away. */
    async function play(cut: number) {
      let calls = 0
      const run = (name: string) => (): Promise<string> =>
        ++calls === cut ? new Promise(() => undefined) : Promise.resolve(name)
      const tools = { tick: { run: run('tick') }, tock: { run: run('tock') } }
      await using loop = await Loop.open({ program, tools, lease_ms: 400 })
      const { client } = loop
      const one = await loop.runner('one')
      const sid = await loop.start(one.id)
      for (const text of ['a', 'b', 'c']) await client.command(sid, 'prompt', { text })
      await client.untilEntries(sid, 'the workspace is stored', stored)
      if (cut < Infinity) {
        await until(`call ${cut} has begun`, () => calls >= cut)
        await loop.runner('two')
        one.runner.close()
      }
      return transcriptOf(await client.untilEntries(sid, 'the program has ended', ended))
    }
  })

  const ended = (entries: Opened[]): boolean =>
    entries.some((entry) => entry.kind === 'event' && entry.body.type === 'done')
})
