/** The short form: a few places of the journal. The whole form is `npm run torture -- handoff`. */
import { expect, it } from 'vitest'
import { tortureHandoff } from '../src/torture.ts'
import type { Verdict } from '../src/torture/handoff.ts'

// Before anything is stored; in a turn with approvals; around a tool that may never run twice; near the end.
const PLACES = [3, 57, 93, 120]

it('I1 to I8: a session killed after some entries of its journal ends as if nothing had been', async () => {
  const verdicts: Verdict[] = []
  const summary = await tortureHandoff({ how: ['kill'], at: PLACES }, (verdict) => verdicts.push(verdict))
  expect(verdicts.flatMap(({ at, violations }) => violations.map((text) => `${at}: ${text}`))).toEqual([])
  expect(summary.entries).toBeGreaterThan(Math.max(...PLACES))
}, 300_000)

it('I7 I11 K16: a session killed when an edit is in place, and nothing tells of it yet, ends as if nothing had been', async () => {
  const verdicts: Verdict[] = []
  await tortureHandoff({ how: ['write'], at: [3] }, (verdict) => verdicts.push(verdict))
  expect(verdicts.flatMap(({ at, violations }) => violations.map((text) => `${at}: ${text}`))).toEqual([])
}, 300_000)

it('I8: a session moved after some entries of its journal makes no request more', async () => {
  const verdicts: Verdict[] = []
  await tortureHandoff({ how: ['move'], at: PLACES.slice(1, 3) }, (verdict) => verdicts.push(verdict))
  expect(verdicts.flatMap(({ at, violations }) => violations.map((text) => `${at}: ${text}`))).toEqual([])
}, 300_000)
