/** A text of several lines under a cursor. Pure: each change gives a new one. */
import { graphemes, graphemeWidth } from './text.ts'

export interface Draft {
  readonly text: string
  /** UTF-16 offset, on the border of a grapheme. */
  readonly at: number
}

export const BLANK: Draft = { text: '', at: 0 }

export function draftOf(text: string): Draft {
  return { text, at: text.length }
}

export function insert({ text, at }: Draft, more: string): Draft {
  return { text: text.slice(0, at) + more + text.slice(at), at: at + more.length }
}

function before({ text, at }: Draft): number {
  return at - (graphemes(text.slice(Math.max(0, at - 64), at)).at(-1)?.length ?? 0)
}

function after({ text, at }: Draft): number {
  return at + (graphemes(text.slice(at, at + 64))[0]?.length ?? 0)
}

function wordBefore({ text, at }: Draft): number {
  return /\S+\s*$/.exec(text.slice(0, at))?.index ?? 0
}

function wordAfter({ text, at }: Draft): number {
  return at + (/^\s*\S+/.exec(text.slice(at))?.[0].length ?? text.length - at)
}

const lineStart = ({ text, at }: Draft): number => text.lastIndexOf('\n', at - 1) + 1
const lineEnd = ({ text, at }: Draft): number => {
  const end = text.indexOf('\n', at)
  return end < 0 ? text.length : end
}

const cutOut = ({ text }: Draft, from: number, to: number): Draft => ({
  text: text.slice(0, from) + text.slice(to),
  at: from,
})

/** What a key does to it; undefined: not a key of an editor, or of no effect here. */
export function edited(draft: Draft, key: string, width: number): Draft | undefined {
  const move = (at: number): Draft | undefined => (at === draft.at ? undefined : { ...draft, at })
  const cut = (from: number, to: number): Draft | undefined =>
    from === to ? undefined : cutOut(draft, from, to)
  switch (key) {
    case 'left':
    case 'ctrl-b':
      return move(before(draft))
    case 'right':
    case 'ctrl-f':
      return move(after(draft))
    case 'ctrl-left':
    case 'alt-left':
    case 'alt-b':
      return move(wordBefore(draft))
    case 'ctrl-right':
    case 'alt-right':
    case 'alt-f':
      return move(wordAfter(draft))
    case 'home':
    case 'ctrl-a':
      return move(lineStart(draft))
    case 'end':
    case 'ctrl-e':
      return move(lineEnd(draft))
    case 'up':
      return vertical(draft, -1, width)
    case 'down':
      return vertical(draft, 1, width)
    case 'backspace':
    case 'ctrl-h':
      return cut(before(draft), draft.at)
    case 'delete':
      return cut(draft.at, after(draft))
    case 'ctrl-w':
    case 'alt-backspace':
      return cut(wordBefore(draft), draft.at)
    case 'ctrl-u':
      return cut(lineStart(draft), draft.at)
    case 'ctrl-k':
      return cut(draft.at, lineEnd(draft))
    default:
      return undefined
  }
}

interface Row {
  text: string
  /** Offset of its first character. */
  from: number
}

/** The text in rows of at most `width` columns, and where the cursor stands. */
export function laidOut({ text, at }: Draft, width: number): { rows: string[]; row: number; column: number } {
  const rows = rowsOf(text, width)
  const { row, column } = placeOf(rows, at)
  return { rows: rows.map((line) => line.text), row, column }
}

function rowsOf(text: string, width: number): Row[] {
  const rows: Row[] = []
  let from = 0
  for (const line of text.split('\n')) {
    let row = ''
    let columns = 0
    let start = from
    for (const grapheme of graphemes(line)) {
      const wide = graphemeWidth(grapheme)
      if (columns + wide > width && row !== '') {
        rows.push({ text: row, from: start })
        start += row.length
        row = ''
        columns = 0
      }
      row += grapheme
      columns += wide
    }
    rows.push({ text: row, from: start })
    // A full row leaves no place for the cursor after it.
    if (columns >= width) rows.push({ text: '', from: start + row.length })
    from += line.length + 1
  }
  return rows
}

function placeOf(rows: readonly Row[], at: number): { row: number; column: number } {
  const row = Math.max(
    0,
    rows.findLastIndex(({ from }) => from <= at),
  )
  const { text, from } = rows[row] ?? { text: '', from: 0 }
  const column = graphemes(text.slice(0, at - from)).reduce((sum, one) => sum + graphemeWidth(one), 0)
  return { row, column }
}

function vertical(draft: Draft, by: 1 | -1, width: number): Draft | undefined {
  const rows = rowsOf(draft.text, width)
  const { row, column } = placeOf(rows, draft.at)
  const target = rows[row + by]
  if (!target) return undefined
  let columns = 0
  let offset = 0
  for (const grapheme of graphemes(target.text)) {
    if (columns + graphemeWidth(grapheme) > column) break
    columns += graphemeWidth(grapheme)
    offset += grapheme.length
  }
  return { ...draft, at: target.from + offset }
}
