/** A runner whose machine goes to sleep, and comes back: what it does in which order, and what others see. */
import { describe, expect, it } from 'vitest'
import type { Opened } from '@baton/shared/entries.ts'
import type { Json, LlmResult } from '@baton/shared/guest.ts'
import { RunnerAbout } from '@baton/shared/journal.ts'
import { accountKey } from '@baton/shared/keys.ts'
import type { RunnerInfo } from '@baton/shared/protocol.ts'
import { openJson, place } from '@baton/shared/seal.ts'
import { Link } from '@baton/runner/daemon/link.ts'
import type { Workspace } from '@baton/runner/workspace/workspace.ts'
import * as v from 'valibot'
import { Loop, type LoopOptions } from '../src/loop.ts'
import { emit, llm, prompt, resultOf, said } from '../src/script-asks.ts'
import type { Program } from '../src/script-harness.ts'
import { until } from '../src/until.ts'

/** Asks the model when it is prompted, tells what became of it, and waits for the next prompt. */
const program: Program = function* () {
  yield {}
  yield { ask: [prompt(1)] }
  const message = yield { ask: [llm(2, said('hi'))] }
  yield { ask: [emit(3, resultOf(message)), prompt(4)] }
  return null
}

const stored = (entries: Opened[]): boolean => entries.some(({ kind }) => kind === 'checkpoint')
const told = (entries: Opened[]): Json[] =>
  entries.flatMap((entry) => (entry.kind === 'event' && entry.body.type === 'note' ? [entry.body.data] : []))
const repeated = (entries: Opened[]): number =>
  entries.reduce((sum, entry) => sum + (entry.kind === 'outcome' ? (entry.body.repeated ?? 0) : 0), 0)

/** A model that answers when the gate is opened. */
function heldModel() {
  const { promise: opened, resolve: open } = Promise.withResolvers<void>()
  const result: LlmResult = {
    content: [{ type: 'text', text: 'answer' }],
    stop_reason: 'end_turn',
    model: 'm',
    usage: { input_tokens: 1, output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0 },
  }
  const state = { calls: 0 }
  const model: NonNullable<LoopOptions['model']> = async (_request, { signal }) => {
    state.calls++
    await Promise.race([
      opened,
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(signal.reason as Error)),
      ),
    ])
    return result
  }
  return { model, open, state }
}

async function runnerOf(loop: Loop, id: string): Promise<RunnerInfo> {
  const { runners } = await loop.client.link.ask('list', {})
  const found = runners.find(({ device }) => device === id)
  if (!found) throw new Error(`no runner ${id}`)
  return found
}

async function awayOf(loop: Loop, id: string): Promise<string[]> {
  const { body } = await runnerOf(loop, id)
  return v.parse(RunnerAbout, openJson(accountKey(loop.account), body, place.runner(id))).away ?? []
}

describe('at the notice of sleep', () => {
  it('Z2: what is at work is saved before what rests, three at a time', async () => {
    const { model, state } = heldModel()
    const { promise: opened, resolve: open } = Promise.withResolvers<void>()
    const saves: string[] = []
    let saving = 0
    let most = 0
    const openWorkspace = async (sid: string): Promise<Workspace> => {
      let isFirst = true
      const oid = 'c'.repeat(40)
      const empty = { bytes: 0, pieces: async function* () {}, discard: async () => undefined }
      return {
        root: '/w',
        checkpoint: async () => {
          if (isFirst) {
            isFirst = false
            return { kind: 'git', commit: oid, tree: oid, head: oid, branch: 'main' }
          }
          saves.push(sid)
          most = Math.max(most, ++saving)
          await opened
          saving--
          return undefined
        },
        pack: async () => empty,
        about: async () => ({ path: '/w', branch: 'main', platform: 'test' }),
        close: async () => undefined,
      }
    }
    await using loop = await Loop.open({ program, model })
    const { client } = loop
    const one = await loop.runner('one', { openWorkspace })
    const sids: string[] = []
    for (let i = 0; i < 6; i++) sids.push(await loop.start(one.id))
    for (const sid of sids) await client.untilEntries(sid, 'its files are stored', stored)
    const busy = [sids[2] ?? '', sids[5] ?? '']
    for (const sid of busy) await client.command(sid, 'prompt', { text: 'go' })
    await until('both ask the model', () => state.calls === 2)
    const asleep = one.runner.sleep(5_000)
    await until('three are being saved', () => saves.length === 3)
    expect(saves).toEqual(expect.arrayContaining(busy))
    open()
    await asleep
    expect(saves.toSorted()).toEqual(sids.toSorted())
    expect(most).toBe(3)
  })

  it('Z3: an answer that comes in time is not asked for again; one that does not is, once, and that is counted', async () => {
    const [early, late] = [heldModel(), heldModel()]
    let calls = 0
    await using loop = await Loop.open({
      program,
      model: (...args) => (++calls === 1 ? early.model(...args) : late.model(...args)),
    })
    const { client } = loop
    const one = await loop.runner('one')
    const sids = [await loop.start(one.id), await loop.start(one.id)]
    for (const [i, sid] of sids.entries()) {
      await client.command(sid, 'prompt', { text: 'go' })
      await client.untilEntries(sid, 'its files are stored', stored)
      await until('it asks the model', () => calls === i + 1)
    }
    await loop.runner('two')
    const asleep = one.runner.sleep(1_000)
    early.open()
    await asleep
    late.open()
    const journals = []
    for (const sid of sids) {
      journals.push(await client.untilEntries(sid, 'it was told', (all) => told(all).length === 1))
    }
    expect(calls).toBe(3)
    expect(journals.map(repeated)).toEqual([0, 1])
  })

  it('Z4: others go on at once; a pinned session stays parked until its runner is back', async () => {
    const { model, open, state } = heldModel()
    await using loop = await Loop.open({ program, model })
    const { client } = loop
    const one = await loop.runner('one')
    const start = { agent: 'script', workspace: '/w' }
    const free = await client.start({ prefer: one.id }, start)
    const pinned = await client.start({ prefer: one.id, pin: true }, start)
    for (const sid of [free, pinned]) {
      await client.command(sid, 'prompt', { text: 'go' })
      await client.untilEntries(sid, 'its files are stored', stored)
    }
    await until('both ask the model', () => state.calls === 2)
    const two = await loop.runner('two')
    const rooms: number[] = []
    const watcher = new Link({
      ...{ origin: loop.relay.url, account: loop.account, device: client.device },
      about: { name: 'watcher', kind: 'cli' },
      onNotice: (notice) => {
        if (notice.t === 'runner' && notice.runner.device === one.id) rooms.push(notice.runner.capacity)
      },
    })
    watcher.connection.start()
    await watcher.ready()
    await watcher.ask('list', {})

    await one.runner.sleep(200)
    await until('the free one goes on elsewhere', async () => (await client.info(free)).holder === two.id)
    // It says itself that it goes: nobody has to miss it first (F5).
    await until('it is offline', async () => !(await runnerOf(loop, one.id)).online)
    expect(rooms).toContain(0)
    watcher.connection.close()
    open()
    await client.untilEntries(free, 'it was told', (all) => told(all).length === 1)
    expect(await client.info(pinned)).toMatchObject({ status: 'running' })
    expect(await client.info(pinned)).not.toHaveProperty('holder')

    one.runner.wake()
    await client.untilEntries(pinned, 'it was told', (all) => told(all).length === 1)
    expect((await client.info(pinned)).holder).toBe(one.id)
    expect((await runnerOf(loop, one.id)).capacity).toBe(8)
    expect(state.calls).toBe(4)
  })

  it('Z3: a move that waits for an answer of minutes does not wait any longer', async () => {
    const { model, open, state } = heldModel()
    await using loop = await Loop.open({ program, model })
    const { client } = loop
    const one = await loop.runner('one', { finish_within_ms: 600_000 })
    const two = await loop.runner('two')
    const sid = await loop.start(one.id)
    await client.command(sid, 'prompt', { text: 'go' })
    await client.untilEntries(sid, 'its files are stored', stored)
    await until('it asks the model', () => state.calls === 1)
    await client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
    await client.untilEntries(sid, 'it waits', (all) =>
      all.some((entry) => entry.kind === 'event' && entry.body.type === 'moving'),
    )
    await one.runner.sleep(200)
    open()
    const entries = await client.untilEntries(sid, 'it was told', (all) => told(all).length === 1)
    expect((await client.info(sid)).holder).toBe(two.id)
    expect(repeated(entries)).toBe(1)
  })

  it('Z4: a machine that does not sleep after all serves on, and takes its sessions back', async () => {
    const { model, open, state } = heldModel()
    await using loop = await Loop.open({ program, model })
    const { client } = loop
    const one = await loop.runner('one')
    const sid = await loop.start(one.id)
    await client.command(sid, 'prompt', { text: 'go' })
    await client.untilEntries(sid, 'its files are stored', stored)
    await until('it asks the model', () => state.calls === 1)
    const asleep = one.runner.sleep(500)
    one.runner.wake()
    await asleep
    open()
    await client.untilEntries(sid, 'it was told', (all) => told(all).length === 1)
    expect(await client.info(sid)).toMatchObject({ holder: one.id })
    expect(await runnerOf(loop, one.id)).toMatchObject({ online: true, capacity: 8 })
  })
})

describe('after waking', () => {
  it('Z6: what went on elsewhere is named until it is home, or somebody gives it another home', async () => {
    const { model, open } = heldModel()
    open()
    await using loop = await Loop.open({ program, model })
    const { client } = loop
    const one = await loop.runner('one')
    const sids = [await loop.start(one.id), await loop.start(one.id), await loop.start(one.id)]
    const [went = '', moved = '', rested = ''] = sids
    for (const sid of sids) await client.untilEntries(sid, 'its files are stored', stored)
    await loop.runner('two')
    await one.runner.sleep(1_000)
    // A prompt wakes these two, wherever there is a runner; the third rests where it was.
    for (const sid of [went, moved]) {
      await client.command(sid, 'prompt', { text: 'go' })
      await client.untilEntries(sid, 'it was told', (all) => told(all).length === 1)
    }
    one.runner.wake()
    await until('two are away', async () => (await awayOf(loop, one.id)).length === 2)
    expect((await awayOf(loop, one.id)).toSorted()).toEqual([went, moved].toSorted())
    const three = await loop.runner('three')
    await client.command(moved, 'move', { label: 'three' }, { place: { prefer: three.id } })
    await until('one is away', async () => (await awayOf(loop, one.id)).length === 1)
    await client.command(went, 'move', { label: 'one' }, { place: { prefer: one.id } })
    await until('none is away', async () => (await awayOf(loop, one.id)).length === 0)
    await until('it is home', async () => (await client.info(went)).holder === one.id)
    await until('the other is where it was sent', async () => (await client.info(moved)).holder === three.id)
    expect(await client.info(rested)).not.toHaveProperty('holder')
  })

  it('Z5: a runner that nobody told of the end of its sleep finds it out, and serves again', async () => {
    await using loop = await Loop.open({ program })
    const one = await loop.runner('one')
    await one.runner.sleep(100)
    await until('it is offline', async () => !(await runnerOf(loop, one.id)).online)
    one.runner.lookAgain()
    await until('it serves again', async () => (await runnerOf(loop, one.id)).online)
    expect((await runnerOf(loop, one.id)).capacity).toBe(8)
  })

  it('F7: phones keep their connection while runners come and go', async () => {
    await using loop = await Loop.open({ program })
    const { connection } = loop.client.link
    const before = connection.state
    const one = await loop.runner('one')
    await one.runner.sleep(100)
    one.runner.wake()
    await until('it serves again', async () => (await runnerOf(loop, one.id)).online)
    one.runner.close()
    await until('it is offline', async () => !(await runnerOf(loop, one.id)).online)
    expect(connection.state).toBe(before)
  })
})
