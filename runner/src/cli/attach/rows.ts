/** A transcript's items as lines of a terminal. Pure. Everything that a model, a tool or another device said is cleaned here. */
import type { Json } from '@baton/shared/guest.ts'
import { callBody, revealed, targetOf, verbOf } from '@baton/shared/view/call.ts'
import { diffLines } from '@baton/shared/view/diff.ts'
import type { Item, TextItem, ThoughtItem, ToolItem } from '@baton/shared/view/items.ts'
import { duration, size } from '@baton/shared/view/units.ts'
import { allowanceWords, handoffWords, repeatedWords } from '@baton/shared/view/words.ts'
import { markdownLines } from '../term/markdown.ts'
import { clean, cleanLine, cutLine, lineWidth, wrap, type Line, type Span } from '../term/text.ts'

export interface RowContext {
  width: number
  isOpen: boolean
  nameOf: (device: string) => string
  /** The whole of a result that was too long for its entry, once it is fetched. */
  whole?: string | undefined
  /** The newest output of a running call. */
  live?: string | undefined
}

/** Lines of output that an opened call shows; the rest is a `baton log` away. */
const OPEN_LINES_MAX = 500
const LIVE_LINES = 3
const THOUGHT_LINES = 3
const INDENT: Line = [{ text: '  ' }]

export function itemLines(item: Item, context: RowContext): Line[] {
  const { width, nameOf } = context
  switch (item.kind) {
    case 'prompt': {
      const pictures = item.images?.length ?? 0
      const text =
        clean(item.text) +
        (pictures > 0 ? `\n[${pictures === 1 ? 'a picture' : `${pictures} pictures`}]` : '')
      return [[], ...prefixed(text, 'cyan', width, [{ text: '> ', as: 'bold cyan' }], INDENT)]
    }
    case 'text':
      return [[], ...textLines(item, context)]
    case 'thought':
      return [[], ...thoughtLines(item, context)]
    case 'tool':
      return toolLines(item, context)
    case 'handoff':
      return [divider(handoffWords(item, nameOf), width)]
    case 'event': {
      if (item.divides === true) return [divider(item.text, width)]
      const isError = item.tone === 'error'
      const words = isError && item.todo !== undefined ? `${item.text} ${item.todo}` : item.text
      const mark: Line = isError ? [{ text: '! ', as: 'bold red' }] : [{ text: '· ', as: 'dim' }]
      return prefixed(clean(words), isError ? 'red' : 'dim', width, mark, INDENT)
    }
    case 'stop':
      return [[{ text: cleanLine(`· Stopped from ${nameOf(item.device)}.`), as: 'dim' }]]
    case 'unreadable':
      return prefixed(
        'An entry that can not be read here: damaged, or of a newer version.',
        'dim',
        width,
        [{ text: '· ', as: 'dim' }],
        INDENT,
      )
  }
}

function textLines(item: TextItem, { width, whole }: RowContext): Line[] {
  const text = item.blob
    ? (whole ?? `${item.blob.head}\n\n… (${size(item.blob.bytes)}; open it to read all)`)
    : item.text
  const again = item.repeated === 0 ? [] : [[{ text: `· ${repeatedWords(item.repeated)}`, as: 'dim' }]]
  return [...markdownLines(text, width), ...again]
}

/** What the model said while it thought: dim, since it is not the answer; its beginning until it is opened. */
function thoughtLines({ text }: ThoughtItem, { width, isOpen }: RowContext): Line[] {
  const lines = markdownLines(text, width)
  const shown = isOpen || lines.length <= THOUGHT_LINES + 1 ? lines : lines.slice(0, THOUGHT_LINES)
  const more = lines.length - shown.length
  return [
    ...shown.map((line) => line.map(({ text: words }): Span => ({ text: words, as: 'dim' }))),
    ...(more > 0 ? [[{ text: `… ${more} more lines of thought`, as: 'dim' }]] : []),
  ]
}

const MARKS: Record<ToolItem['state'], Span> = {
  approval: { text: '? ', as: 'bold yellow' },
  approved: { text: '… ', as: 'yellow' },
  running: { text: '… ', as: 'yellow' },
  ok: { text: '✓ ', as: 'green' },
  error: { text: '✗ ', as: 'red' },
  denied: { text: '✗ ', as: 'red' },
  interrupted: { text: '✗ ', as: 'red' },
  stopped: { text: '– ', as: 'dim' },
}

function toolLines(item: ToolItem, context: RowContext): Line[] {
  const { width, isOpen, live } = context
  const target = cleanLine(targetOf(item.name, item.input))
  const head: Line = [
    MARKS[item.state],
    { text: `${cleanLine(verbOf(item.name, item.state, item.input))} `, as: 'bold' },
    { text: target },
    { text: ` ${aboutTool(item)}`, as: item.state === 'error' || item.state === 'denied' ? 'red' : 'dim' },
  ]
  if (!isOpen) {
    const newest = live === undefined ? [] : tailLines(live, LIVE_LINES, width)
    return [headLine(head, width), ...newest]
  }
  return [
    headLine(head, width),
    ...callLines(item.name, item.input, width, INDENT),
    ...(item.allowed
      ? prefixed(
          cleanLine(`Allowed by ${allowanceWords(item.allowed)}; nobody was asked.`),
          'dim',
          width,
          INDENT,
          INDENT,
        )
      : []),
    ...resultLines(item, context),
  ]
}

/** What a call says stays whole before its target is cut. */
function headLine([mark, verb, target, about]: Line, width: number): Line {
  const others = lineWidth([mark, verb, about].flatMap((one) => one ?? []))
  const room = Math.max(4, width - others)
  return cutLine(
    [mark, verb, ...cutLine(target ? [target] : [], room), about].flatMap((one) => one ?? []),
    width,
  )
}

function aboutTool({ state, attempt, duration_ms, result, error, approval }: ToolItem): string {
  const detail: { [key: string]: Json } = result?.detail ?? {}
  const code = detail['exit_code'] ?? detail['code']
  const words = [
    ...(state === 'approval' ? ['waits for you'] : []),
    ...(state === 'approved' ? ['approved'] : []),
    ...(state === 'denied' ? ['denied'] : []),
    ...(state === 'stopped' ? ['stopped'] : []),
    ...(state === 'interrupted' ? ['interrupted, may have run'] : []),
    ...(typeof code === 'number' && code !== 0 ? [`exit ${code}`] : []),
    ...(duration_ms === undefined || duration_ms < 1000 ? [] : [duration(duration_ms)]),
    ...(attempt > 1 ? [`attempt ${attempt}`] : []),
    ...(state === 'error' && error ? [error.message] : []),
    ...(approval?.decided?.note === undefined ? [] : [`“${approval.decided.note}”`]),
  ]
  return words.length === 0 ? '' : `· ${cleanLine(words.join(' · '))}`
}

function resultLines(item: ToolItem, { width, whole, live }: RowContext): Line[] {
  const { blob, error } = item
  if (error) {
    const told = prefixed(clean(error.message), 'red', width, INDENT, INDENT)
    return [...told, ...(error.printed === undefined ? [] : outputLines(error.printed, width))]
  }
  const text =
    whole ??
    item.result?.text ??
    (blob ? [blob.head, blob.tail].filter(Boolean).join(`\n… (${size(blob.bytes)}) …\n`) : (live ?? ''))
  return outputLines(text, width)
}

function outputLines(text: string, width: number): Line[] {
  const lines = clean(text).trimEnd().split('\n')
  const shown = lines.slice(0, OPEN_LINES_MAX)
  const more = lines.length - shown.length
  return [
    ...(text === ''
      ? []
      : shown.flatMap((line) => wrap([{ text: line, as: 'dim' }], width, INDENT, INDENT, true))),
    ...(more > 0 ? [[...INDENT, { text: `… ${more} more lines: baton log --full`, as: 'dim' }]] : []),
  ]
}

/** The whole of a call, every field; what could disguise it is made visible. What a person approves is what they see. */
export function callLines(
  name: string,
  input: { [key: string]: Json },
  width: number,
  indent: Line = [],
): Line[] {
  const body = callBody(name, input)
  const code = (text: string, as: string, sign = ''): Line[] =>
    shown(text).flatMap((line) => {
      const first: Line = sign === '' ? indent : [...indent, { text: sign, as }]
      const rest: Line = sign === '' ? indent : [...indent, { text: ' '.repeat(sign.length) }]
      return wrap([{ text: line, as }], width, first, rest, true)
    })
  switch (body.as) {
    case 'command':
      return [...code(body.command, 'bold'), ...body.rest.flatMap((line) => code(line, 'dim'))]
    case 'diff':
      return [
        ...code(body.path, 'bold'),
        ...body.rest.flatMap((line) => code(line, 'dim')),
        ...diffLines(revealed(body.before.toWellFormed()), revealed(body.after.toWellFormed())).flatMap(
          ({ change, text }) => {
            if (change === 'added') return code(text, 'green', '+ ')
            return change === 'removed' ? code(text, 'red', '- ') : code(text, 'dim', '  ')
          },
        ),
      ]
    case 'plan': {
      const lines = markdownLines(revealed(body.plan.toWellFormed()), Math.max(1, width - lineWidth(indent)))
      return lines.map((line) => [...indent, ...line])
    }
    case 'fields':
      return code(body.text, 'bold')
  }
}

function shown(text: string): string[] {
  return revealed(text.toWellFormed()).replaceAll('\t', '    ').split('\n')
}

/** The end of what runs right now. */
export function tailLines(text: string, count: number, width: number): Line[] {
  const lines = clean(text).trimEnd().split('\n').slice(-count)
  return lines.map((line) => cutLine([...INDENT, { text: line, as: 'dim' }], width))
}

export function prefixed(text: string, as: string, width: number, first: Line, rest: Line): Line[] {
  return text
    .split('\n')
    .flatMap((line, i) => wrap([{ text: line, as }], width, i === 0 ? first : rest, rest))
}

/** `── moved to cloud-2 · 64 ms · 41 KB ──` */
export function divider(words: string, width: number, as = 'dim'): Line {
  const text = cleanLine(words)
  const line = cutLine([{ text: `── ${text} `, as }], width)
  return [...line, { text: '─'.repeat(Math.max(0, width - lineWidth(line))), as }]
}
