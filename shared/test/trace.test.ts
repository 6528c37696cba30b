import { describe, expect, it } from 'vitest'
import type { Opened } from '../src/entries.ts'
import { traceOf } from '../src/trace.ts'

const HASH = 'a'.repeat(64)
const ID = 'command-1'

/** Entries one second apart. A runner's own clock is an hour ahead. */
function journal(
  ...bodies: (Omit<Extract<Opened, { body: unknown }>, 'seq' | 'at'> | { lease: unknown })[]
): Opened[] {
  return bodies.map((entry, i) => ({
    ...{ kind: 'lease', seq: i + 1, at: (i + 1) * 1000 },
    ...entry,
  })) as Opened[]
}
const intent = (effect: number, rest: object, attempt = 1) =>
  ({
    kind: 'intent',
    body: { effect, replay: 'safe', digest: HASH, attempt, now: 3_600_000, ...rest },
  }) as never
const outcome = (effect: number, rest: object) =>
  ({ kind: 'outcome', body: { effect, now: 3_600_000, ...rest } }) as never
const lease = (change: string, holder: string) => ({ lease: { change, holder } }) as never
const usage = { input_tokens: 10, output_tokens: 4, cache_read_tokens: 3, cache_write_tokens: 2 }
const answer = { model: 'claude-sonnet-5-5', content: [], stop_reason: 'end_turn', usage, cost_usd: 0.5 }

describe('a trace', () => {
  it('has a span from intent to outcome, on the clock of the relay, with what it cost', () => {
    const { spans, totals } = traceOf(
      journal(
        intent(1, { kind: 'llm', llm: { prior: 0, added: 1 } }),
        outcome(1, { result: answer }),
        intent(2, { kind: 'tool', tool: { name: 'bash', input: { command: 'ls\nls' } } }),
        outcome(2, { result: { text: '', is_error: true } }),
      ),
    )
    expect(spans).toEqual([
      {
        ...{ kind: 'llm', name: 'claude-sonnet-5-5', start_ms: 1000, end_ms: 2000, end: 'ok', effect: 1 },
        usage: { ...usage, cost_usd: 0.5 },
      },
      { kind: 'tool', name: 'bash', detail: 'ls', start_ms: 3000, end_ms: 4000, end: 'error', effect: 2 },
    ])
    expect(totals).toMatchObject({
      requests: 1,
      tools: 1,
      model_ms: 1000,
      tool_ms: 1000,
      cost_usd: 0.5,
      ...usage,
    })
  })

  it('begins with the work, not with the wait for it', () => {
    const { spans } = traceOf(
      journal(
        intent(1, { kind: 'llm' }),
        intent(2, { kind: 'sleep' }),
        outcome(1, { result: answer, duration_ms: 500 }),
      ),
    )
    expect(spans).toContainEqual(expect.objectContaining({ kind: 'llm', start_ms: 2500, end_ms: 3000 }))
    expect(spans).toContainEqual(expect.objectContaining({ kind: 'sleep', start_ms: 2000 }))
    expect(spans.find(({ kind }) => kind === 'sleep')).not.toHaveProperty('end_ms')
  })

  it('tells what was cut off and asked again from what failed and was tried again', () => {
    const { spans, totals } = traceOf(
      journal(
        intent(1, { kind: 'llm' }),
        intent(1, { kind: 'llm' }, 2),
        intent(1, { kind: 'llm', retry: { code: 'model-busy', message: 'busy', not_before: 0 } }, 3),
        outcome(1, { result: answer }),
      ),
    )
    expect(spans.map(({ end, attempt }) => [end, attempt])).toEqual([
      ['cut', undefined],
      ['error', 2],
      ['ok', 3],
    ])
    expect(spans[1]?.error?.code).toBe('model-busy')
    expect(totals).toMatchObject({ requests: 3, repeated: 2, cut_off: 1 })
  })

  it('shows how long people were waited for, and not the open ear of a turn', () => {
    const { spans, totals } = traceOf(
      journal(
        intent(1, { kind: 'prompt' }),
        {
          kind: 'received',
          body: { id: ID, device: '', now: 0, kind: 'prompt', command: { text: 'Do it.\nNow.' } },
        } as never,
        outcome(1, { result: { text: 'Do it.\nNow.' } }),
        intent(2, { kind: 'prompt', prompt: { steer: true } }),
        intent(3, { kind: 'approve', approve: { name: 'bash', input: {}, digest: HASH } }),
        outcome(3, { result: { approved: false } }),
      ),
    )
    expect(spans.map(({ kind, detail, end }) => [kind, detail, end])).toEqual([
      ['prompt', 'Do it.', 'ok'],
      ['decision', undefined, 'denied'],
    ])
    expect(totals.people_ms).toBe(3000)
  })

  it('tells a handoff from a takeover and from rest', () => {
    const { spans } = traceOf(
      journal(
        lease('claimed', 'a'),
        { kind: 'snapshot', body: { bytes: 77 } } as never,
        lease('released', 'a'),
        lease('claimed', 'b'),
        lease('expired', 'b'),
        lease('claimed', 'a'),
        lease('released', 'a'),
        lease('claimed', 'a'),
      ),
    )
    expect(
      spans.map(({ kind, from, to, bytes, start_ms, end_ms }) => [kind, from, to, bytes, start_ms, end_ms]),
    ).toEqual([
      ['handoff', 'a', 'b', 77, 3000, 4000],
      ['takeover', 'b', 'a', undefined, 5000, 6000],
      ['parked', 'a', 'a', undefined, 7000, 8000],
    ])
  })

  it('X1: shows what was copied at the time when it happened', () => {
    const command = { agent: 'coder', workspace: '/w', mode: 'ask' }
    const { spans } = traceOf(
      journal(
        intent(1, { kind: 'llm', now: 100 }),
        outcome(1, { result: answer, now: 200 }),
        {
          kind: 'received',
          body: {
            id: ID,
            device: '',
            now: 0,
            kind: 'start',
            command,
            copied: { seed: HASH, snapshot: 0, blobs: {} },
          },
        } as never,
        intent(2, { kind: 'llm' }),
      ),
    )
    expect(spans.map(({ start_ms, end_ms }) => [start_ms, end_ms])).toEqual([
      [100, 200],
      [4000, undefined],
    ])
  })

  it('survives what it can not read, and outcomes of nothing', () => {
    expect(traceOf([{ kind: 'unreadable', seq: 1, at: 1 }, ...journal(outcome(7, {}))]).spans).toEqual([])
    expect(traceOf([]).spans).toEqual([])
  })
})
