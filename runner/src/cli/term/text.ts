/**
 * Text for a terminal: made harmless, measured in columns, wrapped. What models, tools and other devices say must never reach the
 * terminal as it came: an escape sequence in it could move the cursor, fake a prompt, or write to the clipboard.
 */
import { stripVTControlCharacters } from 'node:util'
import { eastAsianWidth } from 'get-east-asian-width'

/** `as`: names of styles, separated by spaces; see style.ts. */
export interface Span {
  text: string
  as?: string
}
export type Line = readonly Span[]

/** Reorders or hides text without being seen; joiners of emoji and scripts stay. */
const DISGUISES = /[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/gu
/** All controls but the line break. */
const CONTROLS = /(?!\n)[\p{Cc}\u2028\u2029]/gu

/** Without escape sequences, controls and disguises; lines and tabs (as blanks) are kept. */
export function clean(text: string): string {
  return stripVTControlCharacters(text.toWellFormed())
    .replaceAll(/\r\n?/g, '\n')
    .replaceAll('\t', '    ')
    .replaceAll(CONTROLS, '')
    .replaceAll(DISGUISES, '')
}

/** The same, on one line. */
export function cleanLine(text: string): string {
  return clean(text)
    .replaceAll(/\s*\n\s*/g, ' ')
    .trim()
}

const segmenter = new Intl.Segmenter()
const WIDE = /^\p{RGI_Emoji}$/v
const NO_WIDTH = /^[\p{Mn}\p{Me}\p{Cf}\p{Cc}]+$/u
const ASCII = /^[\x20-\x7e]*$/
const known = new Map<string, number>()
const KNOWN_MAX = 4096

/** What a person sees as characters. */
export function graphemes(text: string): string[] {
  return ASCII.test(text) ? text.split('') : Array.from(segmenter.segment(text), ({ segment }) => segment)
}

/** Columns of one grapheme: 0, 1 or 2. */
export function graphemeWidth(grapheme: string): number {
  if (grapheme.length === 1 && grapheme >= ' ' && grapheme <= '~') return 1
  let width = known.get(grapheme)
  if (width === undefined) {
    width = measured(grapheme)
    if (known.size >= KNOWN_MAX) known.clear()
    known.set(grapheme, width)
  }
  return width
}

function measured(grapheme: string): number {
  if (NO_WIDTH.test(grapheme)) return 0
  if (WIDE.test(grapheme)) return 2
  return eastAsianWidth(grapheme.codePointAt(0) ?? 0x20)
}

/** Columns that a text takes. */
export function widthOf(text: string): number {
  if (ASCII.test(text)) return text.length
  return graphemes(text).reduce((sum, grapheme) => sum + graphemeWidth(grapheme), 0)
}

export function lineWidth(line: Line): number {
  return line.reduce((sum, { text }) => sum + widthOf(text), 0)
}

/** At most `width` columns of a text; what is cut ends with `…`. */
export function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text
  let taken = ''
  let columns = 0
  for (const grapheme of graphemes(text)) {
    const next = graphemeWidth(grapheme)
    if (columns + next > width - 1) break
    taken += grapheme
    columns += next
  }
  return width <= 0 ? '' : `${taken}…`
}

export function cutLine(line: Line, width: number): Line {
  if (lineWidth(line) <= width) return line
  const shown: Span[] = []
  let left = width
  for (const span of line) {
    const columns = widthOf(span.text)
    if (columns >= left) {
      shown.push({ ...span, text: cut(`${span.text} `, left) })
      break
    }
    shown.push(span)
    left -= columns
  }
  return shown
}

interface Piece {
  text: string
  as: string | undefined
  width: number
  isBlank: boolean
}

/** Words and blanks, each with its width; a word may go over several spans. */
function piecesOf(line: Line): Piece[][] {
  const words: Piece[][] = []
  let isBlank: boolean | undefined
  for (const { text, as } of line) {
    for (const part of text.split(/( +)/)) {
      if (part === '') continue
      const blank = part.startsWith(' ')
      const piece = { text: part, as, width: widthOf(part), isBlank: blank }
      if (blank === isBlank) words.at(-1)?.push(piece)
      else words.push([piece])
      isBlank = blank
    }
  }
  return words
}

/**
 * One line of spans as lines of at most `width` columns: broken between words, and within words that are longer. `first` and `rest`
 * stand before the first line and the others. `hard`: broken anywhere, blanks kept: for code.
 */
export function wrap(line: Line, width: number, first: Line = [], rest: Line = first, hard = false): Line[] {
  const lines: Span[][] = []
  let current: Span[] = [...first]
  let left = Math.max(1, width - lineWidth(first))
  let isEmpty = true
  const next = (): void => {
    lines.push(current)
    current = [...rest]
    left = Math.max(1, width - lineWidth(rest))
    isEmpty = true
  }
  const put = ({ text, as }: { text: string; as: string | undefined }, columns: number): void => {
    const last = current.at(-1)
    if (!isEmpty && last && last.as === as) current[current.length - 1] = { ...last, text: last.text + text }
    else current.push(as === undefined ? { text } : { text, as })
    left -= columns
    isEmpty = false
  }
  for (const word of piecesOf(line)) {
    const columns = word.reduce((sum, piece) => sum + piece.width, 0)
    if (word[0]?.isBlank === true && !hard) {
      // A break takes the place of blanks; those at the very beginning are meant.
      if (columns > left || (isEmpty && lines.length > 0)) {
        if (!isEmpty) next()
        continue
      }
    } else if (columns > left && !isEmpty && !hard) next()
    for (const piece of word) {
      if (piece.width <= left) put(piece, piece.width)
      else {
        for (const grapheme of graphemes(piece.text)) {
          const wide = graphemeWidth(grapheme)
          if (wide > left && !isEmpty) next()
          put({ text: grapheme, as: piece.as }, wide)
        }
      }
    }
  }
  if (!isEmpty || lines.length === 0) lines.push(current)
  return lines
}
