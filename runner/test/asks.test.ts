import { ATTEMPTS_MAX } from '@baton/shared/backoff.ts'
import { describe, expect, it } from 'vitest'
import type { Intent } from '@baton/shared/journal.ts'
import { adoptOrphans } from '../src/session/asks.ts'
import type { Live } from '../src/session/live.ts'
import { backoffOf } from '../src/session/retry.ts'
import { emptyState, fold, statusOf } from '../src/session/state.ts'

const intent = (effect: number, rest: Partial<Intent>): Intent => ({
  ...{ effect, kind: 'tool', replay: 'safe', digest: 'a'.repeat(64), attempt: 1, now: 0 },
  ...(rest.kind === undefined || rest.kind === 'tool' ? { tool: { name: 't', input: {} } } : {}),
  ...rest,
})

/** A session whose journal ends with these intents. */
function liveWith(...intents: Intent[]): Live {
  const state = emptyState()
  intents.forEach((body, i) => fold(state, { kind: 'intent', seq: i + 1, at: 0, body }))
  return { state, toStart: new Map() } as unknown as Live
}

describe('effects that an earlier runner left open', () => {
  it('F27: attempts are counted in the journal and bounded; then the agent is told', () => {
    const live = liveWith(intent(1, { attempt: ATTEMPTS_MAX - 1 }), intent(2, { attempt: ATTEMPTS_MAX }))
    const drafts = adoptOrphans(live, 7)
    expect([...live.toStart]).toEqual([[1, 'again']])
    expect(drafts).toMatchObject([
      { kind: 'outcome', body: { effect: 2, now: 7, error: { code: 'attempts-exhausted' } } },
    ])
  })

  const paused = (not_before: number): Intent =>
    intent(1, {
      kind: 'llm',
      attempt: 2,
      now: 10_000,
      retry: { code: 'model-busy', message: '', not_before },
    })

  it.each([
    ['an hour behind', -3_600_000, 'again'],
    ['right', 11_000, 'first'],
    ['an hour ahead', 3_600_000, 'again'],
  ])('F27: a pause that the clock of this machine, %s, does not show counts as an attempt', (_, now, how) => {
    const live = liveWith(paused(12_000))
    expect(adoptOrphans(live, now)).toEqual([])
    expect([...live.toStart]).toEqual([[1, how]])
  })

  it('I2: a pause is as long as the runner that wrote it meant, whatever the clock here says, and bounded', () => {
    expect(backoffOf(paused(12_000))).toBe(2_000)
    expect(backoffOf(paused(0))).toBe(0)
    expect(backoffOf(paused(Number.MAX_SAFE_INTEGER))).toBe(300_000)
    expect(backoffOf(intent(1, {}))).toBe(0)
  })

  it('I5: a never effect ends as interrupted, whatever its kind of failure was', () => {
    const drafts = adoptOrphans(liveWith(intent(1, { replay: 'never' })), 7)
    expect(drafts).toMatchObject([{ kind: 'outcome', body: { effect: 1, error: { code: 'interrupted' } } }])
  })

  it('waiting for a person is taken up without a new attempt', () => {
    const live = liveWith(intent(1, { kind: 'prompt' }), intent(2, { kind: 'approve' }))
    expect(adoptOrphans(live, 7)).toEqual([])
    expect(live.toStart.size).toBe(0)
  })
})

describe('the status that the relay is told', () => {
  it('F34: waiting exactly when an approval is open', () => {
    const approve = intent(2, { kind: 'approve', approve: { name: 't', input: {}, digest: 'b'.repeat(64) } })
    expect(statusOf(liveWith(approve).state, true)).toBe('waiting')
    expect(statusOf(liveWith(intent(1, {})).state, false)).toBe('running')
    expect(statusOf(liveWith(intent(1, { kind: 'prompt' })).state, false)).toBe('idle')
    expect(statusOf(liveWith(intent(1, { kind: 'prompt' })).state, true)).toBe('running')
  })
})
