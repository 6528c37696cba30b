import { expect, test } from 'vitest'
import { callBody, revealed, targetOf, verbOf } from '../src/view/call.ts'
import { diffLines } from '../src/view/diff.ts'

test('C11: every field of a call shows, whatever form it takes', () => {
  expect(callBody('bash', { command: 'ls', timeout_ms: 5 })).toEqual({
    as: 'command',
    command: 'ls',
    rest: ['timeout_ms: 5'],
  })
  expect(callBody('edit', { path: 'a', old_string: 'b', new_string: 'c', replace_all: true })).toMatchObject({
    as: 'diff',
    rest: ['replace_all: true'],
  })
  expect(callBody('write', { path: 'a', content: 'b', mode: 7 })).toMatchObject({
    as: 'diff',
    rest: ['mode: 7', 'no line break at the end'],
  })
  expect(callBody('edit', { path: 'a\nold_string: "x"' })).toEqual({
    as: 'fields',
    text: 'path: "a\\nold_string: \\"x\\""',
  })
  expect(callBody('bash', { command: 'npm run dev', background: true, timeout_ms: 5 })).toEqual({
    ...{ as: 'command', command: 'npm run dev' },
    rest: ['it goes on in the background, as a job', 'timeout_ms: 5'],
  })
  expect(callBody('fetch', { url: 'https://a.example/b', raw: true })).toEqual({
    ...{ as: 'command', command: 'https://a.example/b', rest: ['raw: true'] },
  })
  expect(callBody('fetch', { url: 'https://a.example/b\nraw: true' }).as).toBe('fields')
  expect(callBody('deploy', { to: 'live', force: true })).toEqual({
    as: 'fields',
    text: 'to: "live"\nforce: true',
  })
})

test('C11: text that would disguise a command is made visible', () => {
  expect(revealed('rm \u202e-rf\u2066 x\u200b\u0007')).toBe('rm ⟨U+202E⟩-rf⟨U+2066⟩ x⟨U+200B⟩⟨U+0007⟩')
  expect(revealed('if true; then\n\techo ünï 漢字 😀\nfi')).toBe('if true; then\n\techo ünï 漢字 😀\nfi')
})

test('a line names what is done to what', () => {
  expect(`${verbOf('bash', 'running')} ${targetOf('bash', { command: 'make\nall' })}`).toBe('Running make')
  expect(`${verbOf('edit', 'ok')} ${targetOf('edit', { path: 'src/a.ts' })}`).toBe('Edited src/a.ts')
  const job = { command: 'npm run dev', background: true }
  expect(`${verbOf('bash', 'ok', job)} ${targetOf('bash', job)}`).toBe('Started npm run dev')
  const stop = { action: 'stop', id: 'job-1' }
  expect(`${verbOf('job', 'ok', stop)} ${targetOf('job', stop)}`).toBe('Stopped job-1')
  expect(`${verbOf('job', 'ok', {})} ${targetOf('job', {})}`).toBe('Looked at background jobs')
  expect(targetOf('grep', { pattern: 'x', path: 'src' })).toBe('x in src')
})

test('a diff holds both texts whole', () => {
  const texts = ['', 'a', 'a\nb\nc', 'a\nx\nc\n', 'b\nc\na', 'x\n\n\ny', 'a\nb\nc\nd\ne\nf\ng']
  for (const before of texts) {
    for (const after of texts) {
      const lines = diffLines(before, after)
      const side = (gone: string): string =>
        lines
          .filter(({ change }) => change !== gone)
          .map(({ text }) => text)
          .join('\n')
      expect(side('added')).toBe(before)
      expect(side('removed')).toBe(after)
    }
  }
  expect(diffLines('a\nb\nc', 'a\nx\nc').map(({ change }) => change)).toEqual([
    'same',
    'removed',
    'added',
    'same',
  ])
})

test('a diff of two long texts ends soon and is still whole', () => {
  const before = Array.from({ length: 5000 }, (_, i) => `a${i}`).join('\n')
  const after = Array.from({ length: 5000 }, (_, i) => `b${i}`).join('\n')
  expect(diffLines(before, after)).toHaveLength(10_000)
})
