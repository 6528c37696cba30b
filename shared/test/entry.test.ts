import { newAccount, sessionKey } from '../src/keys.ts'
import type { Entry } from '../src/protocol.ts'
import { place, sealJson } from '../src/seal.ts'
import { expect, test } from 'vitest'
import { readEntry } from '../src/view/entry.ts'

const SID = 'session-one-0000'
const key = sessionKey(newAccount(), SID)

function entry(seq: number, body: unknown, sealed_for = seq): Entry {
  const where = place.entry(SID, 'event', sealed_for)
  return { seq, epoch: 1, kind: 'event', at: 5, size: 1, body: sealJson(key, body, where), blobs: [] }
}

test('an entry opens for its own place', () => {
  const read = readEntry(key, SID, entry(3, { type: 'note', data: 'x' }))
  expect(read).toEqual({ kind: 'event', seq: 3, at: 5, body: { type: 'note', data: 'x' } })
})

test('I9, C5: an entry that the relay moved, a damaged one, or one of another form is unreadable, not a crash', () => {
  expect(readEntry(key, SID, entry(3, { type: 'note', data: 'x' }, 4))).toMatchObject({
    kind: 'unreadable',
    seq: 3,
  })
  expect(readEntry(key, SID, { ...entry(3, {}), body: '!' })).toMatchObject({ kind: 'unreadable' })
  expect(readEntry(key, SID, entry(3, { from: 'the future' }))).toMatchObject({ kind: 'unreadable' })
  expect(readEntry(key, SID, { ...entry(3, {}), kind: 'lease' })).toMatchObject({ kind: 'unreadable' })
})
