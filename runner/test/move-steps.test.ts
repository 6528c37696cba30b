/** How a move gets on, as the journal tells it. */
import { describe, expect, it } from 'vitest'
import type { Read } from '@baton/shared/view/entry.ts'
import { MoveReading, type Step } from '../src/cli/move-steps.ts'

const entry = (part: object): Read =>
  ({ seq: 1, at: 0, epoch: 1, size: 0, blobs: [], ...part }) as unknown as Read
const lease = (change: string, holder: string): Read =>
  entry({ kind: 'lease', lease: { change, holder, epoch: 1 } })
const event = (type: string, data: unknown = null, effect?: number): Read =>
  entry({ kind: 'event', body: { type, data, ...(effect === undefined ? {} : { effect }) } })
const taken = (id: string): Read => entry({ kind: 'received', body: { kind: 'move', id } })

const steps = (holder: string | undefined, entries: Read[]): Step[] => {
  const reading = new MoveReading('mine', holder)
  return entries.flatMap((one) => reading.read(one) ?? [])
}

describe('a move', () => {
  it('V3: is over when another runner has the session, whoever had it before', () => {
    const way = [
      taken('mine'),
      event('moving', { waits: ['llm'] }),
      entry({ kind: 'snapshot', body: { bytes: 7 } }),
    ]
    expect(steps('a', [...way, lease('released', 'a'), lease('claimed', 'b'), event('arrived')])).toEqual([
      { step: 'waits', for: ['the model’s answer'] },
      { step: 'saved', bytes: 7 },
      { step: 'moved', to: 'b' },
      // Nobody listens any more.
      { step: 'stays', to: 'b' },
    ])
    expect(steps(undefined, [lease('claimed', 'b')])).toEqual([{ step: 'moved', to: 'b' }])
    expect(steps('a', [lease('expired', 'a'), lease('claimed', 'b')])).toEqual([
      { step: 'expired' },
      { step: 'moved', to: 'b' },
    ])
  })

  it('V3: to the pool in which the session is already is over as soon as its runner says so', () => {
    expect(steps('a', [taken('mine'), event('arrived')])).toEqual([{ step: 'stays', to: 'a' }])
    // The one before is told of late; and an agent may emit what it likes.
    expect(steps('a', [event('arrived'), taken('other'), event('arrived'), taken('mine')])).toEqual([])
    expect(
      steps('a', [taken('mine'), event('arrived', null, 3), event('done', null, 4), event('failed', {}, 5)]),
    ).toEqual([])
  })

  it.each(['done', 'failed'])('V3: of a session that is %s meanwhile ends with the reason', (type) => {
    expect(() => steps('a', [taken('mine'), event(type)])).toThrow(
      expect.objectContaining({ code: 'session-ended' }),
    )
    expect(() => steps(undefined, [event(type)])).toThrow(/before it could be moved/)
  })
})
