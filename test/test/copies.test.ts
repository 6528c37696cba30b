/** Copies of sessions, on the real session loop: what comes along, what does not, and what goes on where. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { bundleAgent } from '@baton/guest/bundle.ts'
import { readCopy } from '@baton/shared/copy-read.ts'
import type { Opened } from '@baton/shared/entries.ts'
import type { ImageRef, Json, Message } from '@baton/shared/guest.ts'
import type { SessionMeta } from '@baton/shared/journal.ts'
import { signDecision } from '@baton/shared/keys.ts'
import { transcriptOf } from '@baton/shared/transcript.ts'
import { copyPlace, startCopy } from '@baton/runner/cli/copying.ts'
import { untilStarted } from '@baton/runner/cli/started.ts'
import type { RunnerOptions } from '@baton/runner/daemon/runner.ts'
import type { SnapshotHeader } from '@baton/runner/harness.ts'
import type { Workspace } from '@baton/runner/workspace/workspace.ts'
import { GuestHarness } from '@baton/runner/vm/guest-harness.ts'
import { Loop } from '../src/loop.ts'
import { approve, emit, llm, prompt, resultOf, said, tool } from '../src/script-asks.ts'
import { ScriptHarness, type Program } from '../src/script-harness.ts'
import { until } from '../src/until.ts'

const META: SessionMeta = { title: 'test', agent: 'script', mode: 'ask', workspace: '/w' }

/** Copies a session as it stands, to a runner. */
async function fork(loop: Loop, sid: string, prefer: string): Promise<string> {
  const from = copyPlace(loop.client, sid)
  return (await startCopy(loop.client, { prefer }, () => readCopy(from, META))).sid
}

const scratch: Workspace = {
  root: '/scratch',
  checkpoint: async () => undefined,
  pack: () => Promise.reject(new Error('nothing is stored')),
  about: async () => ({ path: '/scratch', branch: '', platform: 'test' }),
  close: async () => undefined,
}

const effectsOf = (entries: Opened[], kind: 'intent' | 'outcome', effect: number): Opened[] =>
  entries.filter((entry) => entry.kind === kind && entry.body.effect === effect)
const hasOutcome = (effect: number) => (entries: Opened[]) => effectsOf(entries, 'outcome', effect).length > 0
const hasIntent = (effect: number) => (entries: Opened[]) => effectsOf(entries, 'intent', effect).length > 0
/** Its files are stored, so it can be copied. */
const isStored = (entries: Opened[]): boolean => entries.some(({ kind }) => kind === 'checkpoint')

/** Tells every prompt, for ever. */
const echo: Program = function* () {
  yield {}
  for (let effect = 1; ; effect += 3) {
    const message = yield { ask: [prompt(effect)] }
    yield { ask: [emit(effect + 1, resultOf(message)), tool(effect + 2, 'look')] }
  }
}

describe('a copy', () => {
  it('X1: begins with all that was said and done in its origin, and both go on for themselves', async () => {
    await using loop = await Loop.open({ program: echo, tools: { look: { run: async () => 'seen' } } })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    await loop.client.command(sid, 'prompt', { text: 'first' })
    const origin = await loop.client.untilEntries(
      sid,
      'it waits again',
      (all) => hasIntent(4)(all) && isStored(all),
    )
    const copy = await fork(loop, sid, id)
    await loop.client.command(copy, 'prompt', { text: 'only in the copy' })
    const copied = await loop.client.untilEntries(copy, 'the copy went on', hasIntent(7))
    expect(await loop.client.entries(sid), 'the origin').toEqual(origin)
    expect(transcriptOf(copied).slice(0, transcriptOf(origin).length)).toEqual(transcriptOf(origin))
    expect(JSON.stringify(transcriptOf(copied))).toContain('only in the copy')

    await loop.client.command(sid, 'prompt', { text: 'only in the origin' })
    const gone = await loop.client.untilEntries(sid, 'the origin went on', hasIntent(7))
    expect(JSON.stringify(gone)).not.toContain('only in the copy')
    expect((await loop.client.info(copy)).status).toBe((await loop.client.info(sid)).status)
  })

  it('X2: an approval that was open is asked anew; a decision for the origin does not count', async () => {
    let runs = 0
    const program: Program = function* () {
      yield {}
      const decided = yield { ask: [approve(1, 'deploy')] }
      yield { ask: [emit(2, resultOf(decided)), tool(3, 'deploy', {}, 1)] }
      yield { ask: [prompt(4)] }
      return null
    }
    const tools = { deploy: { access: 'run', run: async () => `run ${++runs}` } } as const
    await using loop = await Loop.open({ program, tools })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    await loop.client.untilEntries(sid, 'it asks', (all) => hasIntent(1)(all) && isStored(all))
    const copy = await fork(loop, sid, id)
    const [open] = await until('the copy asks', async () => {
      const pending = await loop.client.pending(copy).catch(() => [])
      return (await loop.client.info(copy)).status === 'waiting' && pending.length > 0 && pending
    })
    // Signed for the origin, sent to the copy.
    const { device } = loop.client
    const signature = signDecision(device, { sid, effect: 1, digest: open?.digest ?? '', approved: true })
    await loop.client.command(copy, 'decision', {
      ...{ effect: 1, digest: open?.digest ?? '', approved: true, signature },
      ...{ device: device.id, certificate: device.certificate },
    })
    const refused = await loop.client.untilEntries(copy, 'it was consumed', (all) =>
      all.some((entry) => entry.kind === 'received' && entry.body.kind === 'decision'),
    )
    expect(JSON.stringify(refused)).toContain('The signature does not fit.')
    expect(hasOutcome(1)(refused)).toBe(false)

    await loop.client.approveNext(copy)
    await loop.client.untilEntries(copy, 'the copy went on', hasIntent(4))
    expect(runs).toBe(1)
    expect(hasOutcome(1)(await loop.client.entries(sid)), 'the origin still waits').toBe(false)
  })

  // One at a time: calls that may change files run one after the other.
  it.each([
    ['may never run twice', { replay: 'never' }],
    ['changes files', { replay: 'safe', access: 'edit' }],
  ] as const)(
    'X3, I5: what ran in the origin and %s is not run again in the copy; what only looks is',
    async (_, policy) => {
      const runs: Record<string, number> = {}
      const held = (name: string) => async () => {
        runs[name] = (runs[name] ?? 0) + 1
        // The origin's never end; those of the copy do.
        if ((runs[name] ?? 0) === 1) await new Promise(() => undefined)
        return 'seen'
      }
      const program: Program = function* () {
        yield {}
        yield { ask: [tool(1, 'change'), tool(2, 'look'), prompt(3)] }
        yield {}
        yield {}
        yield { ask: [prompt(4)] }
        return null
      }
      await using loop = await Loop.open({
        program,
        tools: {
          change: { ...policy, run: held('change') },
          look: { replay: 'safe', access: 'read', run: held('look') },
        },
      })
      const { id } = await loop.runner('one')
      const sid = await loop.client.start({ prefer: id }, { agent: 'script', workspace: '/w', mode: 'full' })
      await until('both run', () => Object.keys(runs).length === 2)
      await loop.client.untilEntries(sid, 'its files are stored', isStored)
      const copy = await fork(loop, sid, id)
      const entries = await loop.client.untilEntries(copy, 'the copy looked', hasOutcome(2))
      const outcome = (effect: number): string => JSON.stringify(effectsOf(entries, 'outcome', effect))
      expect(outcome(1)).toContain('interrupted')
      expect(outcome(2)).toContain('seen')
      expect(runs).toEqual({ change: 1, look: 2 })
      expect((await loop.client.entries(sid)).some(({ kind }) => kind === 'outcome')).toBe(false)
    },
  )

  it('X4: what was approved in the origin and not begun is not allowed in the copy', async () => {
    const ran: string[] = []
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    const program: Program = function* () {
      yield {}
      yield { ask: [approve(1, 'deploy')] }
      // Approved; before the call there is something else to wait for.
      yield { ask: [tool(2, 'wait')] }
      const answer = yield { ask: [tool(3, 'deploy', {}, 1)] }
      yield { ask: [emit(4, JSON.stringify(answer)), prompt(5)] }
      return null
    }
    await using loop = await Loop.open({
      program,
      tools: {
        deploy: { access: 'run', run: async () => `${ran.push('deploy')}` },
        wait: { access: 'read', run: () => held.then(() => 'waited') },
      },
    })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    await loop.client.approveNext(sid)
    await loop.client.untilEntries(sid, 'it waits', (all) => hasIntent(2)(all) && isStored(all))
    const copy = await fork(loop, sid, id)
    await loop.client.untilEntries(copy, 'the copy waits', hasIntent(2))
    release()
    const entries = await loop.client.untilEntries(copy, 'the copy went on', hasIntent(5))
    expect(JSON.stringify(effectsOf(entries, 'outcome', 3))).toContain('not-approved')
    await loop.client.untilEntries(sid, 'the origin went on', hasIntent(5))
    expect(ran).toEqual(['deploy'])
  })

  it('X5: a runner that ends in the middle leaves a history that the next one completes, each entry once', async () => {
    const many = 600
    const program: Program = function* () {
      yield {}
      yield { ask: [...Array.from({ length: many }, (_, i) => emit(i + 1, `line ${i}`)), prompt(many + 1)] }
      return null
    }
    await using loop = await Loop.open({ program, lease_ms: 600 })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    const origin = await loop.client.untilEntries(
      sid,
      'it waits',
      (all) => hasIntent(many + 1)(all) && isStored(all),
    )
    // The engine is asked for when the history is written and nothing has been started: there it stays.
    const stuck = await loop.runner('two', { agent: () => new Promise(() => undefined) })
    const copy = await fork(loop, sid, stuck.id)
    await until('the history is written', async () => (await loop.client.info(copy)).seq > many)
    expect((await loop.client.info(copy)).status).toBe('idle')
    stuck.runner.close()
    await loop.runner('three', {}, stuck.device)
    const entries = await loop.client.untilEntries(copy, 'it has started', isStored)
    expect(transcriptOf(entries)).toEqual(transcriptOf(origin))
    expect(entries.filter((entry) => entry.kind === 'event' && entry.body.effect !== undefined)).toHaveLength(
      many,
    )
  })

  it('X6: a session that has not begun, or whose files are not stored, can not be copied yet', async () => {
    await using loop = await Loop.open({ program: echo })
    const { id } = await loop.runner('one')
    const sid = await loop.client.start({ prefer: 'A'.repeat(43) }, { agent: 'script', workspace: '/w' })
    await expect(fork(loop, sid, id)).rejects.toThrow(/can not be copied yet/)
  })
})

describe('what a copy brings along', () => {
  it('X6: no files of a scratch workspace, which are never stored', async () => {
    await using loop = await Loop.open({ program: echo })
    const openWorkspace = async (): Promise<Workspace> => scratch
    const { id } = await loop.runner('one', { openWorkspace })
    const sid = await loop.client.start({ prefer: id }, { agent: 'script', workspace: 'scratch' })
    await loop.client.untilEntries(sid, 'it waits', hasIntent(1))
    const from = copyPlace(loop.client, sid)
    const meta = { ...META, workspace: 'scratch' }
    const { sid: copy } = await startCopy(loop.client, { prefer: id }, () => readCopy(from, meta))
    expect(await untilStarted(loop.client, copy)).toBe(true)
    await loop.client.command(copy, 'prompt', { text: 'go on' })
    await loop.client.untilEntries(copy, 'it went on', hasIntent(3))
  })

  it('X1: the same as its origin has, whenever it is taken from a session at work', async () => {
    const steps = 10
    const program: Program = function* () {
      yield {}
      for (let step = 0; step < steps; step++) {
        const first = step * 4 + 1
        const one = yield { ask: [tool(first, 'read', { step }), llm(first + 1, said(`step ${step}`))] }
        const other = yield {}
        // Whichever came first.
        const both = [one, other].map((message) => JSON.stringify(resultOf(message))).toSorted()
        yield { ask: [emit(first + 2, both), approve(first + 3, 'change', { step })] }
      }
      yield { ask: [prompt(steps * 4 + 1)] }
      return null
    }
    const usage = { input_tokens: 1, output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0 }
    await using loop = await Loop.open({
      program,
      tools: {
        read: { access: 'read', run: async ({ step }) => `read ${JSON.stringify(step)}` },
        change: { access: 'edit', run: async () => 'never called' },
      },
      model: async () => ({ content: [], stop_reason: 'end_turn', model: 'm', usage }),
    })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    const end = hasIntent(steps * 4 + 1)
    const decided = new Set<string>()
    const isThrough = async (session: string): Promise<boolean> => {
      for (const { effect, digest } of await loop.client.pending(session)) {
        if (decided.has(`${session} ${effect}`)) continue
        decided.add(`${session} ${effect}`)
        await loop.client.decide(session, effect, digest)
      }
      return end(await loop.client.entries(session))
    }
    await loop.client.untilEntries(sid, 'its files are stored', isStored)
    const copies: string[] = []
    await until('the origin is through', async () => {
      if (copies.length < 6) copies.push(await fork(loop, sid, id))
      return isThrough(sid)
    })
    const origin = transcriptOf(await loop.client.entries(sid))
    const taken = new Set<number>()
    for (const copy of copies) {
      await until('the copy is through', () => isThrough(copy))
      const entries = await loop.client.entries(copy)
      for (const entry of entries) {
        if (entry.kind === 'received' && entry.body.kind === 'start' && entry.body.command.copy)
          taken.add(entry.body.command.copy.seq)
      }
      expect(transcriptOf(entries)).toEqual(origin)
    }
    expect(taken.size, 'places in the journal').toBeGreaterThan(2)
  })

  it('X9: pictures, under the name that the guest has for them, also in a copy of a copy; and long results', async () => {
    const picture = { media_type: 'image/png', bytes: new Uint8Array([137, 80, 78, 71, 7]) } as const
    const long = 'long '.repeat(20_000)
    const program: Program = function* () {
      yield {}
      const seen = yield { ask: [tool(1, 'photo'), tool(2, 'read')] }
      const read = yield {}
      const results = [seen, read].map(resultOf) as unknown as { text: string; images?: ImageRef[] }[]
      const image = results.flatMap(({ images }) => images ?? [])[0]
      const text = results.map((result) => result.text).join('')
      for (let effect = 3; ; effect += 2) {
        yield { ask: [prompt(effect)] }
        const source = { type: 'blob', ...(image as unknown as Record<string, Json>) }
        const message: Message = {
          role: 'user',
          content: [
            { type: 'image', source },
            { type: 'text', text },
          ],
        }
        yield { ask: [llm(effect + 1, message)] }
      }
    }
    const asked: string[] = []
    await using loop = await Loop.open({
      program,
      tools: {
        photo: { access: 'read', run: async () => ({ text: '', is_error: false, images: [picture] }) },
        read: { access: 'read', run: async () => long },
      },
      model: async ({ messages }) => {
        asked.push(JSON.stringify(messages))
        const usage = { input_tokens: 1, output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0 }
        return { content: [], stop_reason: 'end_turn', model: 'm', usage }
      },
    })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    await loop.client.untilEntries(sid, 'it waits', (all) => hasIntent(3)(all) && isStored(all))
    const copy = await fork(loop, sid, id)
    await loop.client.untilEntries(copy, 'the copy waits', isStored)
    const twin = await fork(loop, copy, id)
    for (const session of [sid, copy, twin]) {
      await loop.client.untilEntries(session, 'it waits', (all) => hasIntent(3)(all) && isStored(all))
      await loop.client.command(session, 'prompt', { text: 'look' })
      await loop.client.untilEntries(session, 'it looked', hasOutcome(4))
    }
    expect(asked).toHaveLength(3)
    expect(new Set(asked).size).toBe(1)
    expect(asked[0]).toContain(Buffer.from(picture.bytes).toString('base64'))
    expect(asked[0]).toContain(long)
  })

  it('X10, F60: a runner with another engine refuses it, naming both, and starts nothing', async () => {
    class Other extends ScriptHarness {
      override async open(): Promise<SnapshotHeader> {
        return { ...(await super.open()), engine: 'b'.repeat(64) }
      }
    }
    await using loop = await Loop.open({ program: echo })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    await loop.client.untilEntries(sid, 'it waits', (all) => hasIntent(1)(all) && isStored(all))
    const other = await loop.runner('two', { harness: () => new Other(echo) })
    const copy = await fork(loop, sid, other.id)
    await expect(untilStarted(loop.client, copy)).rejects.toThrow(
      new RegExp(`needs engine ${'a'.repeat(64)}, this runner has ${'b'.repeat(64)}`),
    )
    expect((await loop.client.info(copy)).status).toBe('failed')
    expect(await untilStarted(loop.client, await fork(loop, sid, id))).toBe(true)
  })
})

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
