/** What a move waits for, what travels along, and in which order a guest gets to hear. */
import { describe, expect, it } from 'vitest'
import type { Opened } from '@baton/shared/entries.ts'
import type { EffectRequest, GuestMessage, Json, Pause } from '@baton/shared/guest.ts'
import { newId } from '@baton/shared/keys.ts'
import { Loop } from '../src/loop.ts'
import { prompt, tool } from '../src/script-asks.ts'
import { ScriptHarness, type Program } from '../src/script-harness.ts'
import { until } from '../src/until.ts'

const emit = (id: number, data: Json): EffectRequest => ({ id, kind: 'emit', input: { type: 'note', data } })

const events = (entries: Opened[], type: string): Json[] =>
  entries.flatMap((entry) => (entry.kind === 'event' && entry.body.type === type ? [entry.body.data] : []))
const stored = (entries: Opened[]): boolean => entries.some(({ kind }) => kind === 'checkpoint')
const effectOf = (message: GuestMessage): Json => (message.type === 'outcome' ? message.effect : message.type)

function gate(): { opened: Promise<void>; open: () => void } {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { opened, open }
}

/** Tells its first prompt. */
const tellPrompt: Program = function* () {
  yield {}
  const message = yield { ask: [prompt(1)] }
  yield { ask: [emit(2, effectOf(message)), prompt(3)] }
  return null
}

describe('a move', () => {
  it('H3: waits for what runs and says so; the outcome is written here and told there', async () => {
    const { opened, open } = gate()
    let runs = 0
    const program: Program = function* () {
      yield {}
      const message = yield { ask: [tool(1, 'slow')] }
      yield { ask: [emit(2, effectOf(message)), prompt(3)] }
      return null
    }
    const run = async (): Promise<string> => {
      runs++
      await opened
      return 'done'
    }
    await using loop = await Loop.open({ program, tools: { slow: { replay: 'never', run } } })
    const { client } = loop
    const [one, two] = [await loop.runner('one'), await loop.runner('two')]
    const sid = await loop.start(one.id)
    await client.untilEntries(sid, 'the tool runs', (all) => stored(all) && runs === 1)
    await client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
    const waiting = await client.untilEntries(
      sid,
      'it says that it waits',
      (all) => events(all, 'moving').length > 0,
    )
    expect(events(waiting, 'moving')).toEqual([{ to: 'two', waits: ['tool'] }])
    expect((await client.info(sid)).holder).toBe(one.id)
    open()
    const entries = await client.untilEntries(sid, 'it was told', (all) => events(all, 'note').length > 0)
    expect(runs).toBe(1)
    const told = entries.findIndex((entry) => entry.kind === 'event' && entry.body.type === 'note')
    const claims = entries.flatMap((entry, i) =>
      entry.kind === 'lease' && entry.lease.change === 'claimed' ? [i] : [],
    )
    expect(claims).toHaveLength(2)
    expect(claims[1]).toBeLessThan(told)
  })

  it('H3: starts nothing new: what the guest asks for meanwhile travels along and starts there, once', async () => {
    const { opened, open } = gate()
    const ran: string[] = []
    let interrupts = 0
    const program: Program = function* () {
      yield {}
      yield { ask: [prompt(1)] }
      const message = yield { ask: [emit(2, 'asking'), tool(3, 'fire')] }
      yield { ask: [emit(4, effectOf(message)), prompt(5)] }
      return null
    }
    /** Computes until the gate opens. */
    class Busy extends ScriptHarness {
      override async deliver(message: GuestMessage): Promise<Pause> {
        const pause = await super.deliver(message)
        if (message.type === 'outcome' && message.effect === 1) await opened
        return pause
      }
      override interrupt(): void {
        interrupts++
        open()
      }
    }
    const run = (name: string) => async (): Promise<string> => {
      ran.push(name)
      return name
    }
    await using loop = await Loop.open({
      program,
      harness: () => new Busy(program),
      tools: { fire: { replay: 'never', run: run('fire') } },
    })
    const { client } = loop
    const [one, two] = [await loop.runner('one'), await loop.runner('two')]
    const sid = await loop.start(one.id)
    await client.command(sid, 'prompt', { text: 'go' })
    const consumed = (all: Opened[]): boolean =>
      stored(all) && all.some((e) => e.kind === 'received' && e.body.kind === 'prompt')
    await client.untilEntries(sid, 'the guest computes', consumed)
    await client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
    const entries = await client.untilEntries(
      sid,
      'the call was told',
      (all) => events(all, 'note').length === 2,
    )
    expect(interrupts).toBeGreaterThan(0)
    expect(ran).toEqual(['fire'])
    expect(events(entries, 'note')).toEqual(['asking', 3])
    const [, released] = entries.flatMap((entry, i) => (entry.kind === 'lease' ? [i] : []))
    const intent = entries.findIndex((entry) => entry.kind === 'intent' && entry.body.effect === 3)
    expect(intent).toBeGreaterThan(released ?? Infinity)
  })

  it('a move to where the session is changes nothing', async () => {
    await using loop = await Loop.open({ program: tellPrompt })
    const { client } = loop
    const one = await loop.runner('one')
    const sid = await loop.start(one.id)
    await client.untilEntries(sid, 'it waits for a prompt', stored)
    await client.command(sid, 'move', { label: 'one' }, { place: { prefer: one.id } })
    await client.command(sid, 'prompt', { text: 'go' })
    const entries = await client.untilEntries(
      sid,
      'the prompt was told',
      (all) => events(all, 'note').length === 1,
    )
    expect(entries.filter(({ kind }) => kind === 'lease')).toHaveLength(1)
  })
})

describe('the guest', () => {
  it('H2: blocked, hears only of the effect that it waits for; what came before is told afterwards, in order', async () => {
    const gates = { a: gate(), b: gate() }
    const heard: Json[] = []
    const program: Program = function* () {
      yield {}
      let message = yield { ask: [tool(1, 'a'), tool(2, 'b')], blockOn: 2 }
      heard.push(effectOf(message))
      message = yield {}
      heard.push(effectOf(message))
      yield { ask: [prompt(3)] }
      return null
    }
    const tools = {
      a: { run: () => gates.a.opened.then(() => 'a') },
      b: { run: () => gates.b.opened.then(() => 'b') },
    }
    await using loop = await Loop.open({ program, tools })
    const { client } = loop
    const one = await loop.runner('one')
    const sid = await loop.start(one.id)
    gates.a.open()
    await client.untilEntries(sid, 'a has ended', (all) => all.some(({ kind }) => kind === 'outcome'))
    expect(heard).toEqual([])
    gates.b.open()
    await until('both were told', () => heard.length === 2)
    expect(heard).toEqual([2, 1])
  })
})

it('H6: a command that nobody can read is dropped in words, and does not stand in the way', async () => {
  await using loop = await Loop.open({ program: tellPrompt })
  const { client } = loop
  const one = await loop.runner('one')
  const sid = await loop.start(one.id)
  await client.untilEntries(sid, 'it waits for a prompt', stored)
  await client.link.ask('command', { sid, id: newId(), kind: 'prompt', body: 'AAAA' })
  await client.command(sid, 'prompt', { text: 'go' })
  const entries = await client.untilEntries(
    sid,
    'the prompt was told',
    (all) => events(all, 'note').length === 1,
  )
  expect(JSON.stringify(entries)).toContain('could not be read and was dropped')
  expect((await client.info(sid)).pending).toBe(0)
})
