/** Which sessions rest because something failed. */
import { expect, it } from 'vitest'
import type { Opened } from '@baton/shared/entries.ts'
import type { Json } from '@baton/shared/guest.ts'
import { troubleIn } from '../src/cli/trouble.ts'

const event = (type: string, data: Json, seq: number): Opened => ({
  ...{ seq, epoch: 1, at: 0, size: 1 },
  kind: 'event',
  body: { effect: seq, type, data },
})
const busy = { code: 'model-busy', message: 'The model is busy.', todo: 'Wait.' }
const failed = [
  event('turn', { turn: 1, state: 'start' }, 1),
  event('error', busy, 2),
  event('turn', { turn: 1, state: 'end', reason: 'error' }, 3),
]

it('is the error that the last turn ended with, until another turn begins or ends well', () => {
  expect(troubleIn(failed)).toEqual({ code: 'model-busy', message: 'The model is busy.' })
  expect(troubleIn([...failed, event('turn', { turn: 2, state: 'start' }, 4)])).toBeUndefined()
  expect(
    troubleIn([event('error', busy, 1), event('turn', { state: 'end', reason: 'done' }, 2)]),
  ).toBeUndefined()
  expect(troubleIn([event('error', 'odd', 1), event('turn', null, 2)])).toBeUndefined()
})
