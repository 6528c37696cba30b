import { describe, expect, test } from 'vitest'
import type { Intent } from '@baton/shared/journal.ts'
import { Rest } from '../src/session/rest.ts'
import { waitsForPerson, type OpenEffect } from '../src/session/state.ts'

describe('rest', () => {
  const never = 3_600_000

  test('is over after its time, and not before', () => {
    let due = 0
    const rest = new Rest(never, () => due++)
    expect([rest.isOver(), rest.since === undefined, due]).toEqual([false, false, 0])
    rest.pause()
    expect(new Rest(0, () => undefined).isOver()).toBe(true)
  })

  test('S8: a rest that has begun ends when its place is needed; one that has not begun is not cut short', () => {
    let due = 0
    const rest = new Rest(never, () => due++)
    rest.hurry()
    expect([due, rest.isOver()]).toEqual([0, false])
    rest.hurry()
    expect([due, rest.isOver()]).toEqual([1, true])
    rest.disturb()
    expect([rest.since, rest.isOver()]).toEqual([undefined, false])
    rest.pause()
  })

  test('T18: what runs in the background holds a session, also when others wait, for a bounded time', () => {
    const held = new Rest(
      0,
      () => undefined,
      () => true,
      never,
    )
    expect([held.isOver(true), held.isHeld, held.since]).toEqual([false, true, undefined])
    held.hurry()
    expect([held.isOver(true), held.isOver(false), held.isHeld]).toEqual([false, true, false])
    held.pause()
    const bound = new Rest(
      0,
      () => undefined,
      () => false,
      0,
    )
    expect(bound.isOver(true)).toBe(true)
    const patient = new Rest(never, () => undefined)
    expect([patient.isOver(true), patient.isHeld]).toEqual([false, false])
    patient.pause()
  })

  test('S8: while others wait, any rest is long enough', () => {
    let crowded = false
    const rest = new Rest(
      never,
      () => undefined,
      () => crowded,
    )
    expect(rest.isOver()).toBe(false)
    crowded = true
    expect(rest.isOver()).toBe(true)
    rest.pause()
  })
})

describe('what a session may park with', () => {
  const open = (...kinds: Intent['kind'][]): { open: Map<number, OpenEffect> } => {
    const effects = kinds.map((kind, i): [number, OpenEffect] => {
      const intent: Intent = { effect: i + 1, kind, replay: 'safe', digest: '', attempt: 1, now: 0 }
      return [i + 1, { seq: i + 1, intent }]
    })
    return { open: new Map(effects) }
  }

  test('H1: an effect that ended a moment ago is open until its outcome is written, so the session does not rest', () => {
    expect(waitsForPerson(open())).toBe(true)
    expect(waitsForPerson(open('prompt', 'approve'))).toBe(true)
    for (const kind of ['llm', 'tool', 'sleep'] as const)
      expect(waitsForPerson(open('prompt', kind))).toBe(false)
  })
})
