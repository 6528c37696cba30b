import type { BodyOf } from '@baton/shared/entries.ts'
import type { SealedKind, SessionInfo } from '@baton/shared/protocol.ts'
import type { Read } from '@baton/shared/view/entry.ts'
import { EMPTY, reduce, type Transcript } from '@baton/shared/view/transcript.ts'
import { expect, test } from 'vitest'
import { compareIn } from '../src/parts/TranscriptRow.tsx'
import { firstPrompt, hasTrouble, isFailedCompaction, statusWords } from '../src/store/session.ts'

/** Opened entries, numbered as a journal numbers them. */
class Journal {
  readonly entries: Read[] = []

  add<K extends SealedKind>(kind: K, body: BodyOf<K>): this {
    this.entries.push({ kind, seq: this.entries.length + 1, at: 1, body } as Read)
    return this
  }

  prompt(text: string): this {
    return this.add('received', { kind: 'prompt', id: text, device: 'phone', now: 0, command: { text } })
  }
}

const read = (journal: Journal): Transcript => reduce(EMPTY, journal.entries)
const error = { type: 'error', data: { code: 'model-failed', message: 'It could not be reached.' } }

test('C26: what is tried again is what failed: the compaction that was asked for, or the turn', () => {
  const journal = new Journal().prompt('Tidy up')
  expect(isFailedCompaction(read(journal.add('event', { ...error, effect: 1 })))).toBe(false)
  journal.add('received', { kind: 'compact', id: 'c', device: 'phone', now: 0, command: {} })
  expect(isFailedCompaction(read(journal.add('event', { ...error, effect: 2 })))).toBe(true)
  journal.prompt('Go on')
  expect(isFailedCompaction(read(journal.add('event', { ...error, effect: 3 })))).toBe(false)
})

test('a turn that ended in an error is not called ready', () => {
  const idle = { status: 'idle', pending: 0 } as SessionInfo
  const words = (transcript: Transcript): string => statusWords(idle, transcript, true, 'laptop', undefined)
  const journal = new Journal().prompt('Tidy up')
  expect(words(read(journal))).toBe('Ready')
  journal.add('event', { ...error, effect: 1 })
  expect(hasTrouble(read(journal))).toBe(true)
  expect(words(read(journal))).toBe('Error')
  expect(words(read(journal.prompt('Again')))).toBe('Ready')
})

test('what was kept on a branch comes with the command that shows it', () => {
  const diff = 'git diff baton/kept/GvcU4pim-1'
  expect(compareIn('Changes are kept on branch baton/kept/GvcU4pim-1: a.ts.')).toBe(diff)
  expect(compareIn(`Changed on both sides: a.ts. Compare with: ${diff} and diff -r . /x`)).toBe(diff)
  expect(compareIn('Mode: Plan.')).toBeUndefined()
})

test('C18: a session that took nothing was asked what waits for it here', () => {
  const queued = { shown: { as: 'prompt', text: 'Tidy up' } } as Parameters<typeof firstPrompt>[1][number]
  expect(firstPrompt(EMPTY, [])).toBeUndefined()
  expect(firstPrompt(EMPTY, [queued])).toBe('Tidy up')
  expect(firstPrompt(read(new Journal().prompt('First').prompt('Second')), [queued])).toBe('First')
})
