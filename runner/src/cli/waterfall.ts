/** A trace as lines of a terminal: one span a line, its bar on a common axis. Pure. */
import type { Span, Trace } from '@baton/shared/trace.ts'
import { duration, size } from '@baton/shared/view/units.ts'
import { countWords, exactDollars } from '@baton/shared/view/usage.ts'
import { filled } from './output.ts'
import { allowanceWords } from '@baton/shared/view/words.ts'
import { cleanLine, cut, widthOf } from './term/text.ts'

export interface WaterfallOptions {
  columns: number
  /** The end of what still runs, in milliseconds since 1970. */
  now: number
  /** Names of runners by device id. */
  nameOf: (device: string) => string
}

const COLUMNS_MIN = 30
/** Below this there is no room for offsets and tokens. */
const COLUMNS_WIDE = 64
/** Waiting for people takes at most this part of the axis at a time, so that an hour hides no second. */
const WAIT_PART = 0.05

const BARS: Record<Span['kind'], string> = {
  llm: '█',
  tool: '▓',
  sleep: '·',
  prompt: '·',
  decision: '░',
  handoff: '▒',
  takeover: '▒',
  parked: '·',
}

const LEGEND = ['█ model', '▓ tool', '░ decision', '▒ move', '· nothing to do', 'long waits are drawn short']

/** Lines without a line end; none is wider than `columns`. */
export function waterfall({ spans, totals }: Trace, options: WaterfallOptions): string[] {
  const columns = Math.max(COLUMNS_MIN, options.columns)
  const isWide = columns >= COLUMNS_WIDE
  const axis = axisOf(spans, options.now)
  const first = spans[0]?.start_ms ?? 0
  const nameWidth = isWide ? Math.min(30, Math.floor(columns * 0.34)) : Math.floor(columns * 0.42)
  const tail = isWide ? 22 : 8
  const barWidth = columns - nameWidth - tail - (isWide ? 9 : 1)
  const lines = spans.map((span) => {
    const end = span.end_ms ?? options.now
    const again = span.attempt === undefined ? '' : ` (attempt ${span.attempt})`
    // Which attempt it was stays, however long the name is.
    const title = cut(cleanLine(titleOf(span, options.nameOf)), Math.max(0, nameWidth - 2 - widthOf(again)))
    const name = `${marker(span)}${fit(`${title}${again}`, nameWidth - 2)}`
    const bar = barOf(axis(span.start_ms), axis(end), barWidth, BARS[span.kind])
    const took = span.end_ms === undefined ? 'open' : duration(end - span.start_ms)
    if (!isWide) return `${name} ${bar} ${took.padStart(7)}`.trimEnd()
    const offset = `+${duration(span.start_ms - first)}`.padStart(7)
    return `${offset}  ${name}${bar} ${took.padStart(7)} ${fit(costOf(span), tail - 9)}`.trimEnd()
  })
  const waited = (kind: Span['kind']): number =>
    spans
      .filter((span) => span.kind === kind)
      .reduce((sum, { start_ms, end_ms }) => sum + ((end_ms ?? options.now) - start_ms), 0)
  const sums = totalsIn(totals, waited('decision'), waited('prompt'))
  const legend = spans.length === 0 ? [] : wrapped(LEGEND, columns)
  return [...lines, '', ...legend, ...wrapped(sums, columns)].map((text) => cut(text, columns))
}

/** Maps a time to 0 … 1. */
function axisOf(spans: readonly Span[], now: number): (ms: number) => number {
  const works = (kind: Span['kind']): boolean => kind !== 'prompt' && kind !== 'decision' && kind !== 'parked'
  const cuts = [...new Set(spans.flatMap(({ start_ms, end_ms }) => [start_ms, end_ms ?? now]))].toSorted(
    (a, b) => a - b,
  )
  const busy = spans.filter(({ kind }) => works(kind))
  const pieces = cuts.slice(1).map((to, i) => {
    const from = cuts[i] ?? to
    const isWork = busy.some(({ start_ms, end_ms }) => start_ms < to && (end_ms ?? now) > from)
    return { from, to, isWork }
  })
  const work = pieces.reduce((sum, { from, to, isWork }) => sum + (isWork ? to - from : 0), 0)
  const most = Math.max(1, work * WAIT_PART)
  const marks: { at: number; x: number }[] = [{ at: cuts[0] ?? 0, x: 0 }]
  for (const { from, to, isWork } of pieces) {
    marks.push({ at: to, x: (marks.at(-1)?.x ?? 0) + (isWork ? to - from : Math.min(to - from, most)) })
  }
  const whole = marks.at(-1)?.x || 1
  const known = new Map(marks.map(({ at, x }) => [at, x / whole]))
  return (ms) => known.get(ms) ?? 1
}

function barOf(from: number, to: number, width: number, glyph: string): string {
  const start = Math.min(width - 1, Math.floor(from * width))
  const length = Math.max(1, Math.min(width - start, Math.round((to - from) * width)))
  return `${' '.repeat(start)}${glyph.repeat(length)}`.padEnd(width)
}

function marker({ end, end_ms }: Span): string {
  if (end_ms === undefined) return '… '
  return end === 'error' || end === 'denied' ? '✗ ' : end === 'cut' ? '⌁ ' : '  '
}

function titleOf({ kind, name, detail, from, to }: Span, nameOf: (device: string) => string): string {
  const more = detail === undefined ? '' : ` ${detail}`
  switch (kind) {
    case 'llm':
      return name
    case 'tool':
      return `${name}${more}`
    case 'decision':
      return `decide: ${name}${more}`
    case 'prompt':
      return detail === undefined ? 'waits for a prompt' : `> ${detail}`
    case 'sleep':
      return 'sleep'
    case 'parked':
      return 'parked'
    case 'handoff':
    case 'takeover':
      return `${kind}: ${nameOf(from ?? '')} → ${nameOf(to ?? '')}`
  }
}

function costOf({ usage, bytes, allowed }: Span): string {
  if (allowed) return allowanceWords(allowed)
  if (usage)
    return `${countWords(usage.input_tokens + usage.cache_read_tokens)}→${countWords(usage.output_tokens)}${usage.cost_usd === undefined ? '' : ` ${exactDollars(usage.cost_usd)}`}`
  return bytes === undefined ? '' : size(bytes)
}

function totalsIn(totals: Trace['totals'], decisions_ms: number, idle_ms: number): string[] {
  const { requests, repeated, cut_off, tools, handoffs, model_ms, tool_ms, cost_usd } = totals
  const input = totals.input_tokens + totals.cache_read_tokens + totals.cache_write_tokens
  return [
    `${plural(requests, 'model call')}${repeatedIn(repeated, cut_off)} ${duration(model_ms)}`,
    `${plural(tools, 'tool')} ${duration(tool_ms)}`,
    `waited for decisions ${duration(decisions_ms)}`,
    `without a prompt ${duration(idle_ms)}`,
    plural(handoffs, 'handoff'),
    `${countWords(input)} tokens in (${countWords(totals.cache_read_tokens)} cached), ${countWords(totals.output_tokens)} out`,
    ...(cost_usd === undefined ? [] : [exactDollars(cost_usd)]),
  ]
}

/** A request that failed costs little; one that was cut off may be billed without an answer. */
function repeatedIn(repeated: number, cut_off: number): string {
  if (repeated === 0) return ''
  return cut_off === 0 ? ` (${repeated} repeated)` : ` (${repeated} repeated, ${cut_off} of them cut off)`
}

function plural(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`
}

/** Parts joined by dots, in lines of at most `columns`. */
function wrapped(parts: string[], columns: number): string[] {
  const lines: string[] = []
  for (const part of parts) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + part.length + 3 <= columns)
      lines[lines.length - 1] = `${last} · ${part}`
    else lines.push(part)
  }
  return lines
}

/** Cut or filled to a width. */
function fit(text: string, width: number): string {
  return filled(cut(cleanLine(text), width), width)
}
