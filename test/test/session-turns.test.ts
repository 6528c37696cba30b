/** What people do while a session works, which is to steer; and what a model that fails becomes. */
import { describe, expect, it } from 'vitest'
import type { EffectRequest, LlmResult } from '@baton/shared/guest.ts'
import { ModelFailure } from '@baton/runner/model/model.ts'
import { Loop } from '../src/loop.ts'
import { begun, intents, noted, notes, outcome } from '../src/looks.ts'
import { answer, collecting, emit, llm, prompt, resultOf, said, tool } from '../src/script-asks.ts'
import type { Program } from '../src/script-harness.ts'
import { until } from '../src/until.ts'

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
    await loop.client.untilEntries(sid, 'it listens', begun(2))
    expect((await loop.client.info(sid)).status).toBe('idle')
    const command = await loop.client.command(sid, 'prompt', { text: 'go', steer: true })
    const entries = await loop.client.untilEntries(sid, 'it is told', noted())
    expect(notes(entries)).toEqual([[[2, { text: 'go', command, steer: true }]]])
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
