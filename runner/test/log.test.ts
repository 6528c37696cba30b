/** What `baton log` prints of a transcript. */
import { expect, it } from 'vitest'
import type { Item, ToolItem } from '@baton/shared/view/items.ts'
import { EMPTY } from '@baton/shared/view/transcript.ts'
import { logText } from '../src/cli/log.ts'

const names = new Map([
  ['d1', 'vm'],
  ['d2', 'phone'],
])
const nameOf = (device: string): string => names.get(device) ?? device
const textOf = (items: Item[], full = false): string => logText({ ...EMPTY, items }, { nameOf, now: 0, full })
const call = (values: Partial<ToolItem>): ToolItem => ({
  ...{ kind: 'tool', id: 'e1', at: 0, name: 'bash', input: { command: 'ls' }, state: 'ok', attempt: 1 },
  ...values,
})
const decided = (device: string, approved: boolean, note?: string): Pick<ToolItem, 'approval'> => ({
  approval: {
    ...{ effect: 1, digest: 'd' },
    decided: { approved, device, at: 0, ...(note === undefined ? {} : { note }) },
  },
})

it('F34: a call that waits is shown whole, every line and field of it', () => {
  const command = Array.from({ length: 80 }, (_, i) => `echo ${i} ${'x'.repeat(20)}`).join('\n')
  const text = textOf([call({ state: 'approval', input: { command, timeout_ms: 5 } })])
  expect(text).toMatch(/^\? Run this command\? {2}\[waits for you\]/)
  for (const line of command.split('\n')) expect(text).toContain(line)
  expect(text).toContain('timeout_ms: 5')
})

it('says who decided, and why; what is cut says how to see it', () => {
  expect(textOf([call(decided('d2', true))])).toContain('[approved by phone]')
  expect(textOf([call(decided('', true))])).toContain('[approved by a rule or the mode]')
  expect(textOf([call({ state: 'denied', ...decided('d2', false, 'not on Fridays') })])).toContain(
    '[denied by phone: not on Fridays]',
  )
  const long = call({
    result: { text: Array.from({ length: 40 }, (_, i) => `line ${i}`).join('\n'), is_error: false },
  })
  expect(textOf([long])).toMatch(/line 11\n.*28 more lines \(all: --full\)$/)
  expect(textOf([long], true)).toContain('line 39')
})

it('H18: says which rule or mode allowed a call that nobody was asked for', () => {
  const rules = [{ tool: 'bash', prefix: 'git status', action: 'allow' as const }]
  expect(textOf([call({ ...decided('', true), allowed: { rules } })])).toContain(
    '[allowed by rule "bash: git status"]',
  )
  expect(textOf([call({ allowed: { mode: 'edit' } })])).toContain('[allowed by mode edit]')
  expect(textOf([call({})])).not.toContain('allowed')
})

it('H17: a call that was ended in its middle is shown with what it had printed', () => {
  const error = { code: 'stopped', message: 'Stopped by a person.', printed: 'ok 1\nok 2\n' }
  expect(
    textOf([call({ state: 'stopped', error })])
      .split('\n')
      .slice(1),
  ).toEqual(['    Stopped by a person.', '    ok 1', '    ok 2'])
})

it('I8: a request that was cut off and asked again is told with the answer', () => {
  expect(textOf([{ kind: 'text', id: 'e1', at: 0, text: 'Done.', repeated: 2 }])).toBe(
    '-- 2 requests were cut off and asked again.\nDone.',
  )
})

it('moves, changes of the mode and words of a runner stand where they happened, and name the machine', () => {
  const at = { at: 0 }
  const text = textOf([
    { ...at, kind: 'prompt', id: 'e1', text: 'Go', command: 'c', device: 'd2' },
    {
      ...at,
      kind: 'event',
      id: 'e2',
      tone: 'quiet',
      text: 'Set-up on this machine: npm ci (3 s).',
      device: 'd1',
    },
    { ...at, kind: 'handoff', id: 'e3', how: 'moved', from: 'd1', to: 'd2', gap_ms: 40 },
    { ...at, kind: 'event', id: 'e4', tone: 'quiet', text: 'Mode: Edit files.' },
    { ...at, kind: 'text', id: 'e5', text: 'Done.', repeated: 0 },
  ])
  expect(text.split('\n')).toEqual([
    '> Go',
    '-- vm: Set-up on this machine: npm ci (3 s).',
    '-- moved to phone · 40 ms',
    '-- Mode: Edit files.',
    'Done.',
  ])
})

it('F75: an attempt that follows a failed one shows while it waits', () => {
  const retry = { attempt: 3, code: 'model-busy', message: 'The model is busy.', from: 8000 }
  const open = new Map([[4, { kind: 'llm' as const, attempt: 3, at: 0, retry }]])
  expect(logText({ ...EMPTY, open }, { nameOf, now: 0 })).toMatch(
    /^-- The model is busy: attempt 3 of \d+, in 8 s$/,
  )
})
