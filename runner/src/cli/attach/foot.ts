/** What stands below the transcript: prompts on their way, the composer, hints. */
import { modeName } from '@baton/shared/view/modes.ts'
import { usageWords } from '@baton/shared/view/usage.ts'
import type { NamedSession } from '../account.ts'
import { laidOut, type Draft } from '../term/editor.ts'
import { cleanLine, cutLine, widthOf, wrap, type Line } from '../term/text.ts'
import type { AttachState } from './state.ts'

const COMPOSER_ROWS_MAX = 8

/** Prompts that are on their way, or wait for their turn. */
export function queueRows({ live }: AttachState, width: number): Line[] {
  const mine = live.outgoing.flatMap(({ text, kind, state, error }) => {
    if (kind === 'decision') return []
    const what = text ?? kind
    if (state === 'refused')
      return [{ text: `! ${what}: ${error ?? 'refused'} (^P takes it back)`, as: 'red' }]
    return text === undefined
      ? []
      : [{ text: `${state === 'sent' ? 'waits' : 'sending'}: ${text}`, as: 'dim' }]
  })
  const known = new Set(live.outgoing.map(({ id }) => id))
  const theirs = live.waiting
    .filter(({ id }) => !known.has(id))
    .map(({ text }) => ({ text: `waits: ${text}`, as: 'dim' }))
  return [...theirs, ...mine].map(({ text, as }) => cutLine([{ text: `  ${cleanLine(text)}`, as }], width))
}

interface Rows {
  lines: Line[]
  row: number
  column: number
}

export function composerRows(state: AttachState, width: number, height: number): Rows {
  const most = Math.max(1, Math.min(COMPOSER_ROWS_MAX, Math.floor(height / 3)))
  const session = state.sessions.get(state.live.sid)
  const isOver = session?.status === 'done' || session?.status === 'failed'
  const empty = isOver
    ? 'The session has ended. Its transcript and files are kept.'
    : placeholder(state, session)
  return textRows(state.draft, '> ', state.focus === 'composer' ? 'bold cyan' : 'dim', empty, width, most)
}

function placeholder({ steers }: AttachState, session: NamedSession | undefined): string {
  const isBusy =
    session?.status === 'running' || session?.status === 'waiting' || session?.status === 'moving'
  if (!isBusy) return 'Write a prompt'
  return steers ? 'Steer: for the turn under way' : 'Queue: for after this turn'
}

export function askRows({ question, draft }: { question: string; draft: Draft }, width: number): Rows {
  const asked = wrap([{ text: question, as: 'bold' }], width)
  const rows = textRows(draft, '> ', 'bold yellow', '', width, 2)
  return { ...rows, lines: [...asked, ...rows.lines], row: rows.row + asked.length }
}

function textRows(draft: Draft, mark: string, as: string, empty: string, width: number, most: number): Rows {
  const inside = Math.max(1, width - mark.length)
  if (draft.text === '') {
    const line = cutLine(
      [
        { text: mark, as },
        { text: empty, as: 'dim' },
      ],
      width,
    )
    return { lines: [line], row: 0, column: mark.length }
  }
  const { rows, row, column } = laidOut(draft, inside)
  const from = Math.max(0, Math.min(row - most + 1, rows.length - most))
  const lines = rows
    .slice(from, from + most)
    .map((text, i): Line => [{ text: from + i === 0 ? mark : ' '.repeat(mark.length), as }, { text }])
  return { lines, row: row - from, column: column + mark.length }
}

/** As many hints as fit, the most needed first. */
export function hintLine(state: AttachState, width: number): Line {
  const { said, overlay, focus, live } = state
  if (said !== undefined) return cutLine([{ text: cleanLine(said), as: 'bold' }], width)
  const session = state.sessions.get(live.sid)
  const isBusy = session?.status === 'running' || session?.status === 'waiting'
  const { usage, mode } = live.transcript
  const facts = mode ? [modeName(mode)] : []
  const sends = !isBusy ? 'Enter send' : state.steers ? 'Enter: steer this turn' : 'Enter: queue'
  const hints =
    overlay?.as === 'ask'
      ? ['Enter: go on', 'Esc: back']
      : focus === 'transcript'
        ? ['↑↓ select', 'Enter open', ...facts, '? keys', 'm move', 's sessions', 'Esc write']
        : [
            ...(focus === 'approval' ? ['Esc write'] : [sends]),
            ...facts,
            ...(isBusy ? ['^X stop', state.steers ? '^S: queue' : '^S: steer'] : []),
            ...(focus === 'approval' ? [] : ['Esc keys']),
            '^C leave',
            '^J new line',
          ]
  const line = fitting([...hints, ...(usage ? [usageWords(usage.session)] : [])], width)
  return [{ text: line, as: 'dim' }]
}

function fitting(words: readonly string[], width: number): string {
  let line = ''
  for (const word of words) {
    const next = line === '' ? word : `${line} · ${word}`
    if (widthOf(next) <= width) line = next
  }
  return line
}
