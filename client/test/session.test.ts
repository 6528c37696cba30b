import type { SessionInfo } from '@baton/shared/protocol.ts'
import { EMPTY, reduce, type Transcript } from '@baton/shared/view/transcript.ts'
import { expect, test } from 'vitest'
import { Journal } from '../../shared/test/journal.ts'
import { compareIn } from '../src/parts/TranscriptRow.tsx'
import { firstPrompt, hasTrouble, isFailedCompaction, statusWords } from '../src/store/session.ts'

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

test('C15: a prompt that steers looks undelivered until the model is asked next', () => {
  const steer = {
    kind: 'prompt',
    id: 's',
    device: 'phone',
    now: 0,
    command: { text: 'Not so', steer: true },
  } as const
  const waits = (journal: Journal): unknown[] =>
    read(journal).items.flatMap((item) => (item.kind === 'prompt' ? [item.waits ?? false] : []))
  const llm = (effect: number) =>
    ({ effect, kind: 'llm', replay: 'safe', digest: 'a'.repeat(64), attempt: 1, now: 0 }) as const
  const journal = new Journal().prompt('Tidy up').add('intent', llm(1)).add('received', steer)
  expect(waits(journal)).toEqual([false, true])
  // The same request, asked again, does not carry it.
  expect(waits(journal.add('intent', { ...llm(1), attempt: 2 }))).toEqual([false, true])
  expect(waits(journal.add('intent', llm(2)))).toEqual([false, false])
})

test('what was kept on a branch comes with the command that shows it', () => {
  const diff = 'git diff baton/kept/GvcU4pim-1'
  expect(compareIn('Changes are kept on branch baton/kept/GvcU4pim-1: a.ts.')).toBe(diff)
  expect(compareIn(`Changed on both sides: a.ts. Compare with: ${diff} and diff -r . /x`)).toBe(diff)
  expect(compareIn('Mode: Plan.')).toBeUndefined()
})

test('a job counts as running from its start until the agent saw its end, or the session left its machine', () => {
  const told = (journal: Journal, effect: number, detail: { [key: string]: string | boolean }): Journal =>
    journal.add('outcome', { effect, now: 0, result: { text: '', is_error: false, detail } })
  const started = (): Journal => {
    const journal = new Journal().call(1, 'bash', { command: 'npm run dev', background: true })
    return told(journal, 1, { job: 'job-1' })
  }
  const jobs = (journal: Journal): string[] => [...(read(journal).jobs?.values() ?? [])]
  expect(jobs(started())).toEqual(['npm run dev'])
  const looked = started().call(2, 'job', { action: 'status', id: 'job-1' })
  expect(jobs(told(looked, 2, { job: 'job-1', running: true }))).toEqual(['npm run dev'])
  looked.call(3, 'job', { action: 'stop', id: 'job-1' })
  expect(jobs(told(looked, 3, { job: 'job-1', running: false }))).toEqual([])
  expect(jobs(started().lease('released', 'laptop'))).toEqual([])
})

test('C18: a session that took nothing was asked what waits for it here', () => {
  const queued = { shown: { as: 'prompt', text: 'Tidy up' } } as Parameters<typeof firstPrompt>[1][number]
  expect(firstPrompt(EMPTY, [])).toBeUndefined()
  expect(firstPrompt(EMPTY, [queued])).toBe('Tidy up')
  expect(firstPrompt(read(new Journal().prompt('First').prompt('Second')), [queued])).toBe('First')
})
