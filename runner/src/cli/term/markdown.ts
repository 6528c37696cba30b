/** Markdown as lines of a terminal. What it does not know stands as it was written. */
import { lexer, type MarkedToken, type Token, type Tokens } from 'marked'
import { clean, lineWidth, widthOf, wrap, type Line, type Span } from './text.ts'

const BULLET = '• '

/** Lines of at most `width` columns. The text is cleaned of whatever a terminal would obey. */
export function markdownLines(text: string, width: number): Line[] {
  const lines = blocks(lexer(clean(text), { gfm: true }), width, [])
  while (lines.length > 0 && lineWidth(lines.at(-1) ?? []) === 0) lines.pop()
  return lines
}

function blocks(tokens: readonly Token[], width: number, indent: Line): Line[] {
  const lines: Line[] = []
  for (const token of tokens) {
    if (token.type === 'space') continue
    if (lines.length > 0) lines.push([])
    lines.push(...block(token as MarkedToken, width, indent))
  }
  return lines
}

function block(token: MarkedToken, width: number, indent: Line): Line[] {
  switch (token.type) {
    case 'heading':
      return wrapped(inline(token.tokens, 'bold'), width, indent)
    case 'paragraph':
      return wrapped(inline(token.tokens), width, indent)
    case 'text':
      return wrapped(token.tokens ? inline(token.tokens) : [{ text: plain(token.text) }], width, indent)
    case 'code': {
      const inside = [...indent, { text: '  ' }]
      return token.text
        .split('\n')
        .flatMap((line) => wrap([{ text: line, as: 'cyan' }], width, inside, inside, true))
    }
    case 'blockquote':
      return blocks(token.tokens, width, [...indent, { text: '│ ', as: 'dim' }])
    case 'list':
      return list(token, width, indent)
    case 'table':
      return table(token, width, indent)
    case 'hr':
      return [
        [...indent, { text: '─'.repeat(Math.max(3, Math.min(24, width - lineWidth(indent)))), as: 'dim' }],
      ]
    default:
      return wrapped([{ text: 'raw' in token ? token.raw.trimEnd() : '' }], width, indent)
  }
}

function wrapped(spans: readonly Span[], width: number, first: Line, rest: Line = first): Line[] {
  const lines: Span[][] = [[]]
  for (const span of spans) {
    const [head = '', ...more] = span.text.split('\n')
    lines.at(-1)?.push({ ...span, text: head })
    for (const text of more) lines.push([{ ...span, text }])
  }
  return lines.flatMap((line, i) => wrap(line, width, i === 0 ? first : rest, rest))
}

function list({ items, ordered, start }: Tokens.List, width: number, indent: Line): Line[] {
  return items.flatMap((item, i) => {
    const number = ordered ? `${(start === '' ? 1 : start) + i}. ` : BULLET
    const mark = item.task ? `${item.checked === true ? '[x]' : '[ ]'} ` : number
    const rest: Line = [...indent, { text: ' '.repeat(widthOf(mark)) }]
    const inside = item.tokens
      .filter(({ type }) => type !== 'space' && type !== 'checkbox')
      .flatMap((token, at) => {
        const lines = block(token as MarkedToken, width, rest)
        return item.loose && at > 0 ? [[], ...lines] : lines
      })
    const [first = [], ...others] = inside
    // The mark takes the place of the last indent.
    return [[...indent, { text: mark, as: 'dim' }, ...first.slice(rest.length)], ...others]
  })
}

/** In columns when they fit, else a block a row: names and values. */
function table({ header, rows }: Tokens.Table, width: number, indent: Line): Line[] {
  const cells = [header, ...rows].map((row) => row.map((cell) => inline(cell.tokens)))
  const widths = header.map((_, i) => Math.max(...cells.map((row) => lineWidth(row[i] ?? []))))
  const whole = widths.reduce((sum, one) => sum + one, 0) + 2 * (widths.length - 1) + lineWidth(indent)
  if (whole <= width) {
    return cells.map((row, at) => [
      ...indent,
      ...row.flatMap((cell, i) => {
        const bold = at === 0 ? cell.map((span) => ({ ...span, as: 'bold' })) : cell
        const gap = (widths[i] ?? 0) - lineWidth(cell) + (i < row.length - 1 ? 2 : 0)
        return [...bold, { text: ' '.repeat(gap) }]
      }),
    ])
  }
  return cells.slice(1).flatMap((row, at) => [
    ...(at > 0 ? [[] as Line] : []),
    ...row.flatMap((cell, i) => {
      const name = (cells[0]?.[i] ?? []).map((span) => ({ ...span, as: 'bold' }))
      return wrapped([...name, { text: ': ' }, ...cell], width, indent, [...indent, { text: '  ' }])
    }),
  ])
}

function inline(tokens: readonly Token[] | undefined, as = ''): Span[] {
  return (tokens ?? []).flatMap((token): Span[] => {
    const known = token as MarkedToken
    const styled = (more: string): string => `${as} ${more}`.trim()
    switch (known.type) {
      case 'strong':
        return inline(known.tokens, styled('bold'))
      case 'em':
        return inline(known.tokens, styled('italic'))
      case 'del':
        return inline(known.tokens, styled('strike'))
      case 'codespan':
        return [{ text: plain(known.text), as: styled('cyan') }]
      case 'br':
        return [{ text: '\n' }]
      case 'link': {
        const words = inline(known.tokens, styled('underline'))
        // Where a link goes is always shown: there is nothing to hover over.
        const isBare = words.map(({ text }) => text).join('') === known.href
        return isBare ? words : [...words, { text: ` (${known.href})`, as: 'dim' }]
      }
      case 'image':
        return [{ text: `[${known.text || 'picture'}] (${known.href})`, as: 'dim' }]
      case 'text':
        if (known.tokens) return inline(known.tokens, as)
        return [span(plain(known.text), as)]
      case 'escape':
        return [span(plain(known.text), as)]
      default:
        return [span('raw' in known ? known.raw : '', as)]
    }
  })
}

const span = (text: string, as: string): Span => (as === '' ? { text } : { text, as })

const ENTITIES: Record<string, string> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" }

/** The lexer leaves entities as they were written. */
function plain(text: string): string {
  return text.replaceAll(/&(amp|lt|gt|quot|#39);/g, (whole, name: string) => ENTITIES[name] ?? whole)
}
