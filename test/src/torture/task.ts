/**
 * A task for a session to be disturbed in: edits, commands, approvals, steering, a change of mode, tools that may never run twice, a
 * compaction. What the model says
 * depends only on the conversation, and what a command leaves in the work tree does not depend on whether one that was cut off had run.
 */
import type { MessagesRequest } from '../model-rules.ts'
import { call, say, type Turn } from '../model-turns.ts'

/** Prompts, in order; after the second the conversation is compacted. */
export const PROMPTS = ['Task one: make the notes.', 'Task two: build it.', 'Task three: tidy up.']
export const COMPACT_AFTER = 2
/** Steers the second turn while its first command waits for approval; before the third, the mode becomes `edit`. */
export const STEERING = 'And keep it short, please.'
export const STEERED_TURN = 1

/** Written by so many calls: one `write`, then edits. */
export const WRITTEN = { path: 'notes/plan.md', times: 4 }

const TURNS: Turn[][] = [
  [
    [say('I look ', 'first.'), call('glob', { pattern: '**/*.md' }), call('read', { path: 'README.md' })],
    [
      say('Now the notes.'),
      call('write', { path: 'notes/plan.md', content: '# Plan\n\n- begin\n- go on\n' }),
    ],
    [call('edit', { path: 'notes/plan.md', old_string: '- begin', new_string: '- begun' })],
    // What it looks for still stands there afterwards: made twice, it shows.
    [call('edit', { path: 'notes/plan.md', old_string: '- begun\n', new_string: '- begun\n- more\n' })],
    [say('Probing.'), call('probe', {})],
    [say('The notes are made.')],
  ],
  [
    [call('bash', { command: 'mkdir -p out && printf built > out/app.txt' })],
    // Whether the one before had run or not, now it has.
    [call('bash', { command: 'mkdir -p out && test -s out/app.txt || printf built > out/app.txt' })],
    [say('I launch.'), call('launch', {})],
    [call('write', { path: 'notes/done.md', content: 'launched\n' })],
    [say('It is built ', 'and launched.')],
  ],
  [
    [
      call('edit', { path: 'notes/plan.md', old_string: '- go on\n', new_string: '' }),
      call('grep', { pattern: 'begun' }),
    ],
    [say('All is tidy.')],
  ],
]

/** The model's answer: by the newest prompt that the conversation holds, and how often it answered since. */
export function taskScript({ messages }: MessagesRequest): Turn {
  const texts = messages.map(({ role, content }) => (role === 'user' ? textOf(content) : ''))
  const newest = texts.findLastIndex((text) => PROMPTS.some((prompt) => text.includes(prompt)))
  const task = PROMPTS.findLastIndex((prompt) => texts[newest]?.includes(prompt))
  const isSummary = newest < 0 || /summar/i.test(texts.at(-1) ?? '')
  if (isSummary) return [say('The notes are made, the app is built and launched.')]
  const answered = messages.slice(newest).filter(({ role }) => role === 'assistant').length
  return TURNS[task]?.[answered] ?? { status: 400, message: `task ${task} has no answer ${answered}` }
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) return ''
  return content
    .map((block: unknown) =>
      typeof block === 'object' && block !== null && 'text' in block ? String(block.text) : '',
    )
    .join('\n')
}
