/** What a session may do: its mode, changed by a person; rules of the config; what was allowed for always; on every runner the same. */
import { describe, expect, it } from 'vitest'
import { callDigest } from '@baton/shared/digest.ts'
import type { Opened } from '@baton/shared/entries.ts'
import { newDevice, newAccount, signMode } from '@baton/shared/keys.ts'
import { Loop, toolOf } from '../src/loop.ts'
import { begun, intents, noted, notes, outcome } from '../src/looks.ts'
import { approve, collecting, emit, prompt, resultOf, tool } from '../src/script-asks.ts'
import type { Program } from '../src/script-harness.ts'
import { until } from '../src/until.ts'

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

  it('H16: what waits for a decision when the mode becomes one that forbids it is answered by that', async () => {
    const asks = [
      approve(1, 'bash', { command: 'ls' }),
      approve(2, 'look'),
      approve(3, 'propose_plan'),
      prompt(4),
    ]
    const rules = [{ tool: 'look', action: 'ask' } as const]
    await using loop = await Loop.open({ program: collecting(asks, 1), tools })
    const { client } = loop
    const { id } = await loop.runner('one', { rules: async () => rules })
    const sid = await loop.start(id)
    await client.untilEntries(sid, 'it asks', begun(4))
    await client.setMode(sid, 'plan', 0)
    const entries = await client.untilEntries(sid, 'one is answered', (all) => outcome(all, 1) !== undefined)
    expect(outcome(entries, 1)?.result).toEqual({
      approved: false,
      note: expect.stringContaining('plan mode') as string,
    })
    expect([outcome(entries, 2), outcome(entries, 3)]).toEqual([undefined, undefined])
  })

  it('H18: the intent of a call that nobody was asked for names the rules that allowed it, or else the mode', async () => {
    const program: Program = function* () {
      yield {}
      const given = yield { ask: [approve(1, 'bash', { command: 'make' })] }
      const bash = (id: number, command: string, approval?: number) => tool(id, 'bash', { command }, approval)
      yield { ask: [emit(2, resultOf(given)), bash(3, 'make', 1)], blockOn: 3 }
      yield { ask: [bash(4, 'git status && ls -l')], blockOn: 4 }
      yield { ask: [tool(5, 'look')], blockOn: 5 }
      yield { ask: [bash(6, 'rm -rf /')], blockOn: 6 }
      yield { ask: [prompt(7)] }
      yield { ask: [bash(8, 'make')], blockOn: 8 }
      yield { ask: [emit(9, 'done'), prompt(10)] }
      return null
    }
    const git = { tool: 'bash', prefix: 'git status', action: 'allow' } as const
    const ls = { tool: 'bash', prefix: 'ls', action: 'allow' } as const
    await using loop = await Loop.open({ program, tools })
    const { client } = loop
    const { id } = await loop.runner('one', { rules: async () => [ls, git] })
    const sid = await loop.start(id)
    await client.untilEntries(sid, 'it asks', begun(1))
    await client.decide(sid, 1, callDigest('bash', { command: 'make' }), true)
    await client.untilEntries(sid, 'it waits', begun(7))
    await client.setMode(sid, 'full', 0)
    const entries = await client.untilEntries(sid, 'all are told', noted(2))
    const allowed = [3, 4, 5, 6, 8].map((effect) => intents(entries, effect)[0]?.allowed)
    // By a person; by two rules together; it only looks; refused; by the mode.
    expect(allowed).toEqual([undefined, { rules: [git, ls] }, undefined, undefined, { mode: 'full' }])
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
    // Not by its status, which is the same before it has begun.
    await loop.client.untilEntries(sid, 'it waits', begun(1))
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
