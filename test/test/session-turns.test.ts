/** What people do while a session works: steer, change the mode, allow for always; and what a model that fails becomes. */
import { describe, expect, it } from 'vitest'
import { callDigest } from '@baton/shared/digest.ts'
import type { Opened } from '@baton/shared/entries.ts'
import type { EffectRequest, GuestMessage, Json, LlmResult, Message } from '@baton/shared/guest.ts'
import type { Intent, Outcome } from '@baton/shared/journal.ts'
import { sessionKey, newDevice, newAccount, signMode } from '@baton/shared/keys.ts'
import { openJson, place } from '@baton/shared/seal.ts'
import { Link } from '@baton/runner/daemon/link.ts'
import { ModelFailure } from '@baton/runner/model/model.ts'
import { Loop, toolOf } from '../src/loop.ts'
import { approve, emit, llm, prompt, resultOf, said, tool } from '../src/script-asks.ts'
import type { Program } from '../src/script-harness.ts'
import { until } from '../src/until.ts'

const notes = (entries: Opened[]): Json[] =>
  entries.flatMap((entry) => (entry.kind === 'event' && entry.body.type === 'note' ? [entry.body.data] : []))
const intents = (entries: Opened[], effect: number): Intent[] =>
  entries.flatMap((entry) => (entry.kind === 'intent' && entry.body.effect === effect ? [entry.body] : []))
const outcome = (entries: Opened[], effect: number): Outcome | undefined =>
  entries.flatMap((entry) =>
    entry.kind === 'outcome' && entry.body.effect === effect ? [entry.body] : [],
  )[0]
const noted =
  (count = 1) =>
  (entries: Opened[]): boolean =>
    notes(entries).length >= count

const answer = (text: string): LlmResult => ({
  content: [{ type: 'text', text }],
  stop_reason: 'end_turn',
  model: 'm',
  usage: { input_tokens: 1, output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0 },
})

/** Collects `count` messages after some asks and tells what came, in order. */
const collecting = (asks: EffectRequest[], count: number): Program =>
  function* () {
    let message = yield {}
    message = yield { ask: asks }
    const came: Json[] = []
    for (let i = 0; i < count; i++) {
      came.push([effectOf(message), resultOf(message)])
      if (i < count - 1) message = yield {}
    }
    yield { ask: [emit(100, came), prompt(101)] }
    return null
  }

const effectOf = (message: GuestMessage): number => (message.type === 'outcome' ? message.effect : 0)

describe('prompts during a turn', () => {
  it('H11: one that steers reaches a turn under way; the others wait for its end, in their order', async () => {
    const program: Program = function* () {
      yield {}
      const steered = yield { ask: [prompt(1, true), tool(2, 'wait')] }
      const worked = yield { ask: [emit(3, resultOf(steered))] }
      const queued = yield { ask: [emit(4, resultOf(worked)), prompt(5)] }
      yield { ask: [emit(6, resultOf(queued)), prompt(7)] }
      return null
    }
    let open = (): void => undefined
    const opened = new Promise<void>((resolve) => (open = resolve))
    const run = async (): Promise<string> => {
      await opened
      return 'done'
    }
    await using loop = await Loop.open({ program, tools: { wait: { run } } })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    const queued = await loop.client.command(sid, 'prompt', { text: 'later' })
    const steer = await loop.client.command(sid, 'prompt', { text: 'now', steer: true })
    await loop.client.untilEntries(sid, 'the steering prompt arrived', noted(1))
    expect((await loop.client.info(sid)).pending).toBe(1)
    open()
    const entries = await loop.client.untilEntries(sid, 'all is told', noted(3))
    expect(notes(entries)).toEqual([
      { text: 'now', command: steer, steer: true },
      { text: 'done', is_error: false },
      { text: 'later', command: queued },
    ])
  })

  it('H11: one that steers begins a turn when none is under way, and a session that only listens is idle', async () => {
    await using loop = await Loop.open({ program: collecting([prompt(1, true), prompt(2)], 1) })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    await until('it is idle', async () => (await loop.client.info(sid)).status === 'idle')
    const command = await loop.client.command(sid, 'prompt', { text: 'go', steer: true })
    const entries = await loop.client.untilEntries(sid, 'it is told', noted())
    expect(notes(entries)).toEqual([[[2, { text: 'go', command, steer: true }]]])
  })
})

describe('modes and rules', () => {
  const run = async (): Promise<string> => 'ran'
  const tools = { bash: { access: 'run' as const, replay: 'never' as const, run }, look: { run } }

  it('F38: a change of mode counts once, in its place, signed by a device, and holds on the next runner', async () => {
    const program: Program = function* () {
      yield {}
      let id = 0
      let message = yield { ask: [prompt(++id)] }
      for (;;) {
        const type = message.type
        if (type === 'mode') {
          message = yield { ask: [emit(++id, message.mode)] }
          continue
        }
        const result = yield { ask: [tool(++id, 'bash', { command: 'ls' })] }
        message = yield { ask: [emit(++id, resultOf(result)), prompt(++id)] }
      }
    }
    await using loop = await Loop.open({ program, tools, park_after_ms: 0 })
    const one = await loop.runner('one')
    const sid = await loop.start(one.id)
    const { client } = loop
    await client.command(sid, 'prompt', { text: 'a' })
    await client.untilEntries(sid, 'refused in mode ask', noted(1))
    await client.setMode(sid, 'full', 0)
    await client.untilEntries(sid, 'the guest heard of it', noted(2))
    await client.command(sid, 'prompt', { text: 'b' })
    await client.untilEntries(sid, 'it ran', noted(3))
    // Played again, forged, of a stranger: none counts.
    await client.setMode(sid, 'plan', 0)
    const { id: device, certificate } = client.device
    await client.command(sid, 'mode', { mode: 'plan', revision: 1, device, certificate, signature: 'x' })
    const stranger = newDevice(newAccount())
    const signature = signMode(stranger, { sid, mode: 'plan', revision: 1 })
    await client.command(sid, 'mode', {
      ...{ mode: 'plan', revision: 1, device: stranger.id, certificate: stranger.certificate, signature },
    })
    await until('it parked', async () => (await client.info(sid)).holder === undefined)
    one.runner.close()
    const two = await loop.runner('two')
    await client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
    await client.command(sid, 'prompt', { text: 'c' })
    const entries = await client.untilEntries(sid, 'it ran on the other runner', noted(4))
    const ran = { text: 'ran', is_error: false }
    expect(notes(entries)).toEqual([{ error: 'not-approved' }, 'full', ran, ran])
    const late = entries.flatMap((entry) =>
      entry.kind === 'received' && entry.body.kind === 'mode' ? [entry.body.late] : [],
    )
    expect(late).toEqual([
      undefined,
      'The mode was changed meanwhile.',
      'The signature does not fit.',
      'The device is not of this account.',
    ])
  })

  it('F38: a change that the agent could not hear of yet counts once, also after a move', async () => {
    const program: Program = function* () {
      yield {}
      const waited = yield { ask: [tool(1, 'wait')], blockOn: 1 }
      yield { ask: [emit(2, resultOf(waited)), prompt(3)] }
      // Hears of the changes, before the move or after it.
      for (;;) yield {}
    }
    let open = (): void => undefined
    const opened = new Promise<void>((resolve) => (open = resolve))
    const wait = async (): Promise<string> => {
      await opened
      return 'waited'
    }
    await using loop = await Loop.open({ program, tools: { wait: { run: wait } } })
    const one = await loop.runner('one')
    const sid = await loop.start(one.id)
    const { client } = loop
    const changes = (entries: Opened[]): (string | undefined)[] =>
      entries.flatMap((entry) =>
        entry.kind === 'received' && entry.body.kind === 'mode' ? [entry.body.late] : [],
      )
    await client.untilEntries(sid, 'it waits', (entries) => intents(entries, 1).length > 0)
    await client.setMode(sid, 'full', 0)
    await client.untilEntries(sid, 'it counted', (entries) => changes(entries).length === 1)
    const two = await loop.runner('two')
    await client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
    open()
    await until('the other has it', async () => (await client.info(sid)).holder === two.id)
    await client.setMode(sid, 'edit', 1)
    const entries = await client.untilEntries(sid, 'both are read', (all) => changes(all).length === 2)
    expect(changes(entries)).toEqual([undefined, undefined])
  })

  it('B1: in plan mode the runner refuses whatever changes something, also with an approval', async () => {
    const program = collecting([tool(1, 'bash', { command: 'ls' }), tool(2, 'look'), approve(3, 'bash')], 3)
    await using loop = await Loop.open({ program, tools })
    const { id } = await loop.runner('one')
    const sid = await loop.client.start({ prefer: id }, { agent: 'script', workspace: '/w', mode: 'plan' })
    const entries = await loop.client.untilEntries(sid, 'all are told', noted())
    expect(notes(entries)).toEqual([
      expect.arrayContaining([
        [1, { error: 'not-allowed' }],
        [2, { text: 'ran', is_error: false }],
        [3, { approved: false, note: expect.stringContaining('plan mode') }],
      ]),
    ])
  })

  it('B5: "always" allows calls like the one that was approved, from then on, also on the next runner', async () => {
    const program: Program = function* () {
      yield {}
      const first = yield { ask: [approve(1, 'bash', { command: 'npm test' })] }
      const again = yield { ask: [emit(2, resultOf(first)), tool(3, 'bash', { command: 'npm test -- x' })] }
      const other = yield { ask: [emit(4, resultOf(again)), tool(5, 'bash', { command: 'npm publish' })] }
      const ruled = yield { ask: [emit(6, resultOf(other)), prompt(7)] }
      const asked = yield { ask: [approve(8, 'bash', { command: 'npm test' })] }
      yield { ask: [emit(9, [resultOf(ruled) !== null, resultOf(asked)]), prompt(10)] }
      return null
    }
    await using loop = await Loop.open({ program, tools })
    const one = await loop.runner('one')
    const sid = await loop.start(one.id)
    const { client } = loop
    await client.untilEntries(sid, 'it asks', (entries) => intents(entries, 1).length > 0)
    const digest = callDigest('bash', { command: 'npm test' })
    // A rule that allows something else than what was shown does not count.
    await client.decide(sid, 1, digest, true, { tool: 'bash', prefix: 'rm', action: 'allow' })
    await client.decide(sid, 1, digest, true, { tool: 'bash', prefix: 'npm test', action: 'allow' })
    await client.untilEntries(sid, 'three are told', noted(3))
    const two = await loop.runner('two')
    await client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
    await client.command(sid, 'prompt', { text: 'go' })
    const entries = await client.untilEntries(sid, 'the last is told', noted(4))
    expect(notes(entries)).toEqual([
      { approved: true, device: client.device.id },
      { text: 'ran', is_error: false },
      { error: 'not-approved' },
      [true, { approved: true }],
    ])
    const late = entries.flatMap((entry) =>
      entry.kind === 'received' && entry.body.kind === 'decision' ? [entry.body.late] : [],
    )
    expect(late).toEqual(['The rule that came with it does not allow this call.', undefined])
  })

  it('B7: what the mode allowed is no approval: a stricter mode counts for the call itself', async () => {
    const program: Program = function* () {
      yield {}
      const ruled = yield { ask: [approve(1, 'bash', { command: 'ls' })] }
      const mode = yield { ask: [emit(2, resultOf(ruled)), prompt(3)] }
      const called = yield { ask: [emit(4, resultOf(mode)), tool(5, 'bash', { command: 'ls' }, 1)] }
      yield { ask: [emit(6, resultOf(called)), prompt(7)] }
      return null
    }
    await using loop = await Loop.open({ program, tools })
    const { id } = await loop.runner('one')
    const sid = await loop.client.start({ prefer: id }, { agent: 'script', workspace: '/w', mode: 'full' })
    await loop.client.untilEntries(sid, 'the mode has allowed it', noted(1))
    await loop.client.setMode(sid, 'ask', 0)
    const entries = await loop.client.untilEntries(sid, 'the call was made', noted(3))
    expect(notes(entries)).toEqual([{ approved: true }, 'mode', { error: 'not-approved' }])
  })

  it('B8: on another runner a tool is not laxer than the agent was told at the start', async () => {
    const program: Program = function* () {
      yield {}
      const prompted = yield { ask: [prompt(1)] }
      const called = yield { ask: [emit(2, resultOf(prompted) !== null), tool(3, 'bash')] }
      yield { ask: [emit(4, resultOf(called)), prompt(5)] }
      return null
    }
    await using loop = await Loop.open({ program, tools })
    const one = await loop.runner('one')
    const sid = await loop.start(one.id)
    await until('it waits', async () => (await loop.client.info(sid)).status === 'idle')
    const lax = { ...toolOf('bash', { access: 'read', replay: 'safe', run }) }
    const two = await loop.runner('two', { tools: async () => [lax] })
    await loop.client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
    await loop.client.command(sid, 'prompt', { text: 'go' })
    const entries = await loop.client.untilEntries(sid, 'it was told', noted(2))
    expect(notes(entries)).toEqual([true, { error: 'not-approved' }])
    expect(intents(entries, 3)).toMatchObject([{ replay: 'never' }])
  })

  it('B6: rules of the config count where the session began; elsewhere only what restricts more', async () => {
    const program: Program = function* () {
      yield {}
      const first = yield { ask: [tool(1, 'bash', { command: 'make' })] }
      yield { ask: [emit(2, resultOf(first)), prompt(3)] }
      const second = yield { ask: [tool(4, 'bash', { command: 'make' })] }
      const third = yield { ask: [emit(5, resultOf(second)), tool(6, 'look')] }
      yield { ask: [emit(7, resultOf(third)), prompt(8)] }
      return null
    }
    await using loop = await Loop.open({ program, tools })
    const one = await loop.runner('one', {
      rules: async () => [{ tool: 'bash', prefix: 'make', action: 'allow' }],
    })
    const sid = await loop.start(one.id)
    await loop.client.untilEntries(sid, 'it ran', noted(1))
    const two = await loop.runner('two', {
      rules: async () => [
        { tool: 'bash', action: 'allow' },
        { tool: 'look', action: 'deny' },
      ],
    })
    await loop.client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
    await loop.client.command(sid, 'prompt', { text: 'go' })
    const entries = await loop.client.untilEntries(sid, 'all are told', noted(3))
    const ran = { text: 'ran', is_error: false }
    expect(notes(entries)).toEqual([ran, ran, { error: 'not-allowed' }])
  })
})

describe('a model that fails', () => {
  const asking = collecting([llm(1, said('hi'))], 1)
  const busy = (): never => {
    throw new ModelFailure('model-busy', 'Status 529', { retry_after_ms: 5 })
  }

  it('F27: is asked again after a pause, counted in the journal; its answer then counts as if nothing had been', async () => {
    let calls = 0
    await using loop = await Loop.open({
      program: asking,
      model: async () => (++calls < 3 ? busy() : answer('hello')),
    })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    const entries = await loop.client.untilEntries(sid, 'it answered', noted())
    expect(calls).toBe(3)
    expect(intents(entries, 1).map(({ attempt, retry }) => [attempt, retry?.code])).toEqual([
      [1, undefined],
      [2, 'model-busy'],
      [3, 'model-busy'],
    ])
    expect(outcome(entries, 1)).toMatchObject({ result: answer('hello') })
    expect(outcome(entries, 1)?.repeated).toBeUndefined()
  })

  it('F75: is asked five times, then the agent is told and a person decides', async () => {
    let calls = 0
    await using loop = await Loop.open({
      program: asking,
      model: async () => {
        calls++
        throw new ModelFailure('model-unreachable', 'cut off')
      },
    })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    const entries = await loop.client.untilEntries(sid, 'it was told', noted())
    expect(calls).toBe(5)
    expect(notes(entries)).toEqual([[[1, { error: 'model-unreachable' }]]])
  })

  it('is not asked again when that can not help, or when the service wants more patience than a person has', async () => {
    const errors = [
      new ModelFailure('model-key'),
      new ModelFailure('model-busy', '', { retry_after_ms: 3_600_000 }),
    ]
    for (const error of errors) {
      await using loop = await Loop.open({
        program: asking,
        model: async () => {
          throw error
        },
      })
      const { id } = await loop.runner('one')
      const sid = await loop.start(id)
      const entries = await loop.client.untilEntries(sid, 'it was told', noted())
      expect(intents(entries, 1)).toHaveLength(1)
      expect(notes(entries)).toEqual([[[1, { error: error.code }]]])
    }
  })

  it('H12: Stop and a move do not wait for the pause: the next runner goes on waiting, with the attempt that stands', async () => {
    let calls = 0
    const model = async (): Promise<LlmResult> => {
      calls++
      throw new ModelFailure('model-busy', '', { retry_after_ms: 200_000 })
    }
    await using loop = await Loop.open({ program: collecting([llm(1, said('hi'))], 2), model })
    const one = await loop.runner('one')
    const sid = await loop.start(one.id)
    await loop.client.untilEntries(sid, 'it waits', (entries) => intents(entries, 1).length === 2)
    const two = await loop.runner('two')
    await loop.client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
    await until('the other runner has it', async () => (await loop.client.info(sid)).holder === two.id)
    await loop.client.command(sid, 'stop', {})
    const entries = await loop.client.untilEntries(sid, 'the guest was told', noted())
    expect(calls).toBe(1)
    expect(intents(entries, 1)).toHaveLength(2)
    expect(outcome(entries, 1)?.error?.code).toBe('stopped')
  })

  it('H12: a sleep does not hold up a move, and is not longer for it', async () => {
    const asks: EffectRequest[] = [{ id: 1, kind: 'sleep', input: { ms: 400_000 } }]
    await using loop = await Loop.open({ program: collecting(asks, 1) })
    const one = await loop.runner('one')
    const sid = await loop.start(one.id)
    await loop.client.untilEntries(sid, 'it sleeps', (entries) => intents(entries, 1).length === 1)
    const two = await loop.runner('two')
    await loop.client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
    await until('the other runner has it', async () => (await loop.client.info(sid)).holder === two.id)
    expect(intents(await loop.client.entries(sid), 1)).toHaveLength(1)
  })
})

describe('pictures', () => {
  it('I9: travel as sealed blobs: from a prompt and from a tool, into the request, never into the journal', async () => {
    const bytes = new Uint8Array([137, 80, 78, 71, 1, 2, 3])
    const base64 = Buffer.from(bytes).toString('base64')
    const seen: Message[][] = []
    const program: Program = function* () {
      yield {}
      const prompted = yield { ask: [prompt(1)] }
      const shown = yield { ask: [tool(2, 'look')] }
      const blocks = [prompted, shown].flatMap((message) => {
        const result = resultOf(message) as { images: { blob: string; media_type: string }[] }
        return result.images.map((image) => ({ type: 'image', source: { type: 'blob', ...image } }))
      })
      const [first = { type: 'text' }, second = { type: 'text' }] = blocks
      const nested = { type: 'tool_result', tool_use_id: 't', content: [second] }
      yield { ask: [llm(3, { role: 'user', content: [first, nested] })] }
      yield { ask: [emit(4, 'done'), prompt(5)] }
      return null
    }
    await using loop = await Loop.open({
      program,
      tools: {
        look: {
          run: async () => ({
            text: 'a picture',
            is_error: false,
            images: [{ media_type: 'image/png', bytes }],
          }),
        },
      },
      model: async ({ messages }) => {
        seen.push(messages)
        return answer('nice')
      },
    })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    const key = sessionKey(loop.account, sid)
    const blob = await loop.client.link.blobs.put(sid, key, bytes)
    await loop.client.command(sid, 'prompt', { text: '', images: [{ blob, media_type: 'image/png' }] })
    const entries = await loop.client.untilEntries(sid, 'all is told', noted())
    const source = { type: 'base64', media_type: 'image/png', data: base64 }
    expect(seen).toEqual([
      [
        {
          role: 'user',
          content: [
            { type: 'image', source },
            { type: 'tool_result', tool_use_id: 't', content: [{ type: 'image', source }] },
          ],
        },
      ],
    ])
    expect(JSON.stringify(entries)).not.toContain(base64)
  })
})

describe('live output of a tool', () => {
  it('H13: the newest of it is shown while it runs', async () => {
    let open = (): void => undefined
    const opened = new Promise<void>((resolve) => (open = resolve))
    await using loop = await Loop.open({
      program: collecting([tool(1, 'build')], 1),
      tools: {
        build: {
          run: async (_input, _signal, { onOutput }) => {
            onOutput?.('x'.repeat(10_000))
            onOutput?.('the end')
            await opened
            return 'built'
          },
        },
      },
    })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    const shown: Json[] = []
    const watcher = new Link({
      ...{ origin: loop.relay.url, account: loop.account, device: newDevice(loop.account) },
      about: { name: 'watcher', kind: 'cli' },
      onNotice: (notice) => {
        if (notice.t !== 'delta') return
        const at = place.delta(sid, notice.effect)
        shown.push(openJson(sessionKey(loop.account, sid), notice.body, at))
      },
    })
    watcher.connection.start()
    await watcher.ready()
    await watcher.ask('watch', { sid, from: 1 })
    await until('the newest output is shown', async () => shown.length > 0)
    expect(shown.at(-1)).toEqual({ text: `${'x'.repeat(3_993)}the end` })
    watcher.connection.close()
    open()
    await loop.client.untilEntries(sid, 'it ended', noted())
  })
})
