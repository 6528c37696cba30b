import { expect, test } from 'vitest'
import { hear, NOTHING_HEARD } from '../src/store/hearing.ts'
import { EMPTY, pendingApprovals, reduce, type Transcript } from '@baton/shared/view/transcript.ts'
import { Journal } from '@baton/shared/test/journal.ts'

/** Plays readings one after the other, as the screen sees them; gives what was told at each. */
function told(...readings: [transcript: Transcript, tail: number | undefined][]): string[][] {
  let heard = NOTHING_HEARD
  return readings.map(([transcript, tail]) => {
    const fresh = hear(heard, transcript, pendingApprovals(transcript), tail)
    heard = fresh.heard
    return [...fresh.items.map(({ kind }) => kind), ...fresh.approvals.map(({ name }) => name)]
  })
}

const old = new Journal().prompt('a').llm(1).says(1, 'One.').llm(2).says(2, 'Two.').asks(3, 'old', {}).entries
const at = (seq: number): Transcript => reduce(EMPTY, old.slice(0, seq))
const more = new Journal()
more.entries.push(...old)
more.llm(4).says(4, 'Three.').asks(5, 'new', {})
const whole = reduce(EMPTY, more.entries)

test('after a reload nothing old is told, in whatever pieces and from wherever it comes', () => {
  expect(told([EMPTY, undefined], [at(3), undefined], [at(5), 6], [at(6), 6], [at(6), 6]).flat()).toEqual([])
})

test('what arrives after the first catch-up is told, once', () => {
  expect(told([at(6), 6], [whole, 9], [whole, 9])).toEqual([[], ['text', 'tool', 'new'], []])
})

test('once caught up it stays so, though the list may know of an entry before the screen does', () => {
  expect(told([at(3), 3], [at(3), 5], [at(5), 5])).toEqual([[], [], ['text']])
})

test('F23: a journal that is read anew is old again until its end', () => {
  expect(told([at(6), 6], [EMPTY, 6], [at(3), 6], [at(6), 6], [whole, 9])).toEqual([
    [],
    [],
    [],
    [],
    ['text', 'tool', 'new'],
  ])
})
