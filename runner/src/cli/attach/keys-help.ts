/** The keys of `attach`, for its help and for nothing else. */
import { wrap, type Line } from '../term/text.ts'

const KEYS: readonly (readonly [head: string, rows: readonly (readonly [key: string, what: string])[]])[] = [
  [
    'Anywhere',
    [
      ['PgUp PgDn', 'scroll; at the end it follows'],
      ['Tab', 'decide what waits for you, or back'],
      ['Ctrl-X', 'stop what runs'],
      ['Ctrl-T', 'move to another runner'],
      ['Ctrl-G', 'go to another session'],
      ['Ctrl-O', 'open or close the newest call'],
      ['Ctrl-P', 'take back what the relay refused'],
      ['Ctrl-L', 'draw anew'],
      ['Ctrl-C', 'leave; the session goes on, the draft is kept'],
    ],
  ],
  [
    'Writing',
    [
      ['Enter', 'send'],
      ['Ctrl-J', 'new line (also Alt-Enter, or \\ and Enter)'],
      ['Ctrl-S', 'while the agent works: steer this turn, or queue for after it'],
      ['↑ ↓', 'in the text; else scroll'],
      ['Ctrl-A Ctrl-E', 'start and end of the line'],
      ['Ctrl-W Ctrl-U Ctrl-K', 'cut a word, to the start, to the end'],
      ['Esc', 'to the transcript'],
    ],
  ],
  [
    'Deciding',
    [
      ['↑ ↓', 'scroll the call; it can be approved once all was seen'],
      ['y', 'approve'],
      ['n', 'deny, with a word why'],
      ['a', 'approve, and allow calls like it from now on'],
      ['Esc', 'later'],
    ],
  ],
  [
    'Transcript',
    [
      ['↑ ↓', 'select a call'],
      ['Enter', 'open or close it'],
      ['a', 'open or close all'],
      ['g G', 'start and end'],
      ['m', 'move'],
      ['s', 'sessions'],
      ['M', 'mode'],
      ['e', 'model and effort'],
      ['c', 'compact the conversation'],
      ['d', 'documents'],
      ['x', 'stop'],
      ['q', 'leave'],
    ],
  ],
]

/** Below this long keys would leave no room for words. */
const COLUMNS_WIDE = 60

export function helpLines(width: number): Line[] {
  return KEYS.flatMap(([head, rows], i) => {
    const longest = Math.max(10, ...rows.map(([key]) => key.length))
    const pad = width < COLUMNS_WIDE ? 10 : longest
    const rest: Line = [{ text: width < COLUMNS_WIDE ? '    ' : ' '.repeat(pad + 3) }]
    return [
      ...(i > 0 ? [[] as Line] : []),
      [{ text: head, as: 'bold' }],
      ...rows.flatMap(([key, what]) =>
        wrap([{ text: what }], width, [{ text: `  ${key.padEnd(pad)} `, as: 'cyan' }], rest),
      ),
    ]
  })
}
