/** What sessions of one runner do to each other: they share its threads and its room. */
import { describe, expect, it } from 'vitest'
import { callDigest } from '@baton/shared/digest.ts'
import { BatonError } from '@baton/shared/errors.ts'
import type { Opened } from '@baton/shared/entries.ts'
import type { EffectRequest, GuestMessage, Json, Pause } from '@baton/shared/guest.ts'
import { Loop } from '../src/loop.ts'
import { ScriptHarness, type Program } from '../src/script-harness.ts'
import { until } from '../src/until.ts'

const prompt = (id: number): EffectRequest => ({ id, kind: 'prompt', input: {} })
const emit = (id: number, data: Json): EffectRequest => ({ id, kind: 'emit', input: { type: 'note', data } })

const textOf = (message: GuestMessage): Json => (message.type === 'outcome' ? (message.result ?? null) : null)

/** Tells that it got a prompt, for ever. */
const echo: Program = function* () {
  yield {}
  let id = 0
  for (;;) {
    const message = yield { ask: [prompt(++id)] }
    yield { ask: [emit(++id, textOf(message)), { id: ++id, kind: 'sleep', input: { ms: 0 } }] }
  }
}

const events = (entries: Opened[], type: string): Opened[] =>
  entries.filter((entry) => entry.kind === 'event' && entry.body.type === type)
const stored = (entries: Opened[]): boolean => entries.some(({ kind }) => kind === 'checkpoint')
const leases = (entries: Opened[]): string[] =>
  entries.flatMap((entry) => (entry.kind === 'lease' ? [entry.lease.change] : []))

describe('a thread that dies', () => {
  const trapped = (): Promise<Pause> =>
    Promise.reject(new BatonError('guest-trapped', '(its thread has ended)'))

  it('I11: costs its sessions nothing: they go on from their last snapshot', async () => {
    let falls = 0
    class Falling extends ScriptHarness {
      override deliver(message: Parameters<ScriptHarness['deliver']>[0]) {
        return message.type === 'outcome' && falls++ === 0 ? trapped() : super.deliver(message)
      }
    }
    await using loop = await Loop.open({ program: echo, harness: () => new Falling(echo) })
    const { client } = loop
    const one = await loop.runner('one')
    const sid = await loop.start(one.id)
    await client.untilEntries(sid, 'it waits for a prompt', stored)
    await client.command(sid, 'prompt', { text: 'go' })
    const entries = await client.untilEntries(sid, 'it was told', (all) => events(all, 'note').length > 0)
    expect(events(entries, 'fallen')).toHaveLength(1)
    expect(events(entries, 'failed')).toEqual([])
    expect(leases(entries)).toEqual(['claimed', 'released', 'claimed'])
  })

  it('F27: again and again, it fails, and says so', async () => {
    class Falling extends ScriptHarness {
      override deliver(message: Parameters<ScriptHarness['deliver']>[0]) {
        return message.type === 'outcome' ? trapped() : super.deliver(message)
      }
    }
    await using loop = await Loop.open({ program: echo, harness: () => new Falling(echo) })
    const { client } = loop
    const one = await loop.runner('one')
    const sid = await loop.start(one.id)
    await client.untilEntries(sid, 'it waits for a prompt', stored)
    await client.command(sid, 'prompt', { text: 'go' })
    const entries = await client.untilEntries(sid, 'it failed', (all) => events(all, 'failed').length > 0)
    expect(events(entries, 'fallen')).toHaveLength(3)
    await until('it is told', async () => (await client.info(sid)).status === 'failed')
  })
})

describe('a runner without room', () => {
  it('S8: parks what rests when others wait, and takes them one after the other', async () => {
    await using loop = await Loop.open({ program: echo, park_after_ms: 3_600_000 })
    const { client } = loop
    const one = await loop.runner('one', {}, undefined, { capacity: 2 })
    const sids: string[] = []
    for (let i = 0; i < 8; i++) sids.push(await loop.start(one.id))
    for (const sid of sids) await client.command(sid, 'prompt', { text: sid })
    for (const sid of sids) {
      await client.untilEntries(sid, 'it was told', (all) =>
        JSON.stringify(events(all, 'note')).includes(sid),
      )
    }
    // With nobody waiting any more, the last ones rest where they are.
    const { sessions } = await until('all rest', async () => {
      const all = await client.link.ask('list', {})
      return all.sessions.every(({ status }) => status === 'idle') && all
    })
    expect(sessions.filter(({ holder }) => holder === undefined).length).toBeGreaterThanOrEqual(6)
  })

  it('S10: one that computes without end gives others their turn, and goes on after them', async () => {
    let computing = 0
    /** Computes from its start on until it is interrupted, and again whenever it may go on. */
    class Busy extends ScriptHarness {
      #stop: ((pause: Pause) => void) | undefined
      override deliver(): Promise<Pause> {
        return this.run()
      }
      override run(): Promise<Pause> {
        computing++
        return new Promise((resolve) => (this.#stop = resolve))
      }
      override restore(): Promise<Pause> {
        return Promise.resolve({ state: 'interrupted', asked: [] })
      }
      override interrupt(): void {
        this.#stop?.({ state: 'interrupted', asked: [] })
      }
    }
    let isBusy = true
    /** Once it has got its prompt, whoever is restored is the one that computes. */
    const quick: Program = function* () {
      yield {}
      const message = yield { ask: [prompt(1)] }
      isBusy = true
      yield { ask: [emit(2, textOf(message)), prompt(3)] }
      return null
    }
    await using loop = await Loop.open({
      program: echo,
      harness: () => (isBusy ? new Busy(echo) : new ScriptHarness(quick)),
    })
    const { client } = loop
    const one = await loop.runner('one', {}, undefined, { capacity: 1, turn_ms: 0 })
    const sid = await loop.start(one.id)
    await client.untilEntries(sid, 'it computes', (all) => computing === 1 && stored(all))
    isBusy = false
    const other = await loop.start(one.id)
    await client.command(other, 'prompt', { text: 'now' })
    await client.untilEntries(other, 'the other one was told', (all) => events(all, 'note').length > 0)
    await until('it computes again', () => computing > 1)
    const entries = await client.entries(sid)
    expect(leases(entries).slice(0, 3)).toEqual(['claimed', 'released', 'claimed'])
    expect(events(entries, 'failed')).toEqual([])
  })

  it('F19: an agent that waits for nothing is parked, and not woken again and again', async () => {
    const mute: Program = function* () {
      yield {}
      yield { ask: [emit(1, 'said all')] }
      return null
    }
    await using loop = await Loop.open({ program: mute, park_after_ms: 10 })
    const { client } = loop
    const one = await loop.runner('one')
    const sid = await loop.start(one.id)
    await client.untilEntries(sid, 'it is parked', (all) => leases(all).includes('released'))
    expect((await client.info(sid)).status).toBe('idle')
    // Another one comes, rests and is parked meanwhile.
    const other = await loop.start(one.id)
    await client.untilEntries(other, 'so is another', (all) => leases(all).includes('released'))
    expect(leases(await client.entries(sid))).toEqual(['claimed', 'released'])
  })

  it('S8: what waits for a decision makes room too, also with a prompt behind it', async () => {
    const asking: Program = function* () {
      yield {}
      yield {
        ask: [{ id: 1, kind: 'approve', input: { name: 'x', input: {}, digest: callDigest('x', {}) } }],
      }
      return null
    }
    let asks = true
    const first = (): ScriptHarness => new ScriptHarness(asks ? asking : echo)
    await using loop = await Loop.open({ program: echo, harness: first, park_after_ms: 3_600_000 })
    const { client } = loop
    const one = await loop.runner('one', {}, undefined, { capacity: 1 })
    const sid = await loop.start(one.id)
    await client.command(sid, 'prompt', { text: 'later' })
    await client.untilEntries(sid, 'it waits for a decision', stored)
    asks = false
    const other = await loop.start(one.id)
    await client.command(other, 'prompt', { text: 'now' })
    await client.untilEntries(other, 'it was told', (all) => events(all, 'note').length > 0)
    const info = await client.info(sid)
    expect([info.status, info.holder, info.pending]).toEqual(['waiting', undefined, 1])
    expect(leases(await client.entries(sid))).toEqual(['claimed', 'released'])
  })
})
