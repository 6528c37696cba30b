/** One picture of `attach`: state in, lines out. Nothing here changes anything but what was seen of an approval. */
import type { Item } from '@baton/shared/view/items.ts'
import {
  isThinking,
  liveOutputs,
  liveThought,
  liveTexts,
  pendingApprovals,
  retryOf,
  type Transcript,
} from '@baton/shared/view/transcript.ts'
import { movingWords } from '@baton/shared/view/words.ts'
import type { NamedSession } from '../account.ts'
import { markdownLines } from '../term/markdown.ts'
import { clean, cleanLine, cut, cutLine, lineWidth, widthOf, wrap, type Line } from '../term/text.ts'
import { cardLines, whereOf } from './card.ts'
import { askRows, composerRows, hintLine, queueRows } from './foot.ts'
import { divider, itemLines, prefixed } from './rows.ts'
import { windowOn, type Blocks } from './scroll.ts'
import type { AttachState, Choice } from './state.ts'

export interface Picture {
  lines: Line[]
  cursor?: { row: number; column: number }
}

const QUEUE_ROWS_MAX = 3
const TRANSCRIPT_ROWS_MIN = 3
/** A connection that is lost for less is not worth a word. */
const LOST_MS = 2000

export function draw(state: AttachState, width: number, height: number, now: number): Picture {
  const { overlay } = state
  const head = headLine(state, width)
  const alarm = alarmLines(state, width, now)
  if (overlay && overlay.as !== 'ask') return overlaid(state, head, width, height)
  const hint = hintLine(state, width)
  const composer = overlay ? askRows(overlay, width) : composerRows(state, width, height)
  const queue = queueRows(state, width)
  const fixed = 1 + alarm.length + composer.lines.length + 1
  const approvals = pendingApprovals(state.live.transcript)
  const [approval] = approvals
  const room = height - fixed - Math.min(queue.length, QUEUE_ROWS_MAX)
  const card = approval ? cardLines(state, approval, approvals.length, width, room - TRANSCRIPT_ROWS_MIN) : []
  const rows = Math.max(0, room - card.length)
  const view = windowOn(blocksOf(state, width), state.top, rows)
  const shown = view.lines.map((line, i) => marked(line, isSelected(state, view.blocks[i])))
  const padding = Array.from({ length: rows - shown.length }, (): Line => [])
  const above = [head, ...alarm, ...shown, ...padding, ...card, ...queue.slice(-QUEUE_ROWS_MAX)]
  const lines = [...above, ...composer.lines, hint].slice(-height)
  const top = lines.length - 1 - composer.lines.length
  const hasCursor = overlay !== undefined || state.focus === 'composer'
  const cursor = { row: top + composer.row, column: Math.min(width - 1, composer.column) }
  return hasCursor ? { lines, cursor } : { lines }
}

/** How many rows the transcript has on a screen of this size. */
export function transcriptRows(state: AttachState, width: number, height: number, now: number): number {
  const [approval, ...others] = pendingApprovals(state.live.transcript)
  const composer = composerRows(state, width, height).lines.length
  const queue = Math.min(queueRows(state, width).length, QUEUE_ROWS_MAX)
  const room = height - 2 - alarmLines(state, width, now).length - composer - queue
  const card = approval
    ? cardLines(state, approval, others.length + 1, width, room - TRANSCRIPT_ROWS_MIN).length
    : 0
  return Math.max(1, room - card)
}

function overlaid({ overlay }: AttachState, head: Line, width: number, height: number): Picture {
  const rows = height - 3
  if (overlay?.as === 'choose') {
    const { title, choices, selected } = overlay
    const heading = wrap([{ text: cleanLine(title), as: 'bold' }], width)
    const all = choices.map((choice, i) => choiceLines(choice, i === selected, width))
    const lines = around(all, selected, rows - heading.length + 1)
    return filled([head, ...heading, ...lines], 'Enter choose · ↑↓ · Esc back', width, height)
  }
  if (overlay?.as === 'read') {
    const all = overlay.lines(width)
    const from = Math.max(0, Math.min(overlay.from, all.length - rows))
    const more = all.length - from - rows
    const hint = more > 0 ? `${more} more lines: ↓ PgDn · Esc back` : 'Esc back'
    return filled(
      [head, divider(overlay.title, width, 'bold'), ...all.slice(from, from + rows)],
      hint,
      width,
      height,
    )
  }
  return { lines: [] }
}

function choiceLines({ label, about, isNow }: Choice, isHere: boolean, width: number): Line[] {
  const first: Line = [{ text: isHere ? '› ' : '  ', as: 'bold cyan' }]
  const name = `${cleanLine(label)}${isNow === true ? ' (now)' : ''}`
  const head: Line = [...first, { text: name, as: isHere ? 'bold' : '' }]
  if (about === undefined) return [cutLine(head, width)]
  const beside: Line = [...head, { text: `  ${cleanLine(about)}`, as: 'dim' }]
  if (lineWidth(beside) <= width) return [beside]
  const indent: Line = [{ text: '    ' }]
  return [cutLine(head, width), ...wrap([{ text: cleanLine(about), as: 'dim' }], width, indent, indent)]
}

/** As many lines as there is room for, the selected block among them. */
function around(blocks: readonly Line[][], selected: number, rows: number): Line[] {
  let [from, to] = [selected, selected + 1]
  let height = blocks[selected]?.length ?? 0
  for (;;) {
    const [above, below] = [blocks[from - 1], blocks[to]]
    const next = below && to - selected <= selected - from ? below : (above ?? below)
    if (!next || height + next.length > rows) break
    height += next.length
    if (next === below) to++
    else from--
  }
  return blocks.slice(from, to).flat().slice(0, rows)
}

function filled(lines: Line[], hint: string, width: number, height: number): Picture {
  const padding = Array.from({ length: Math.max(0, height - 1 - lines.length) }, (): Line => [])
  return { lines: [...lines, ...padding, cutLine([{ text: hint, as: 'dim' }], width)].slice(0, height) }
}

// ---- head ---------------------------------------------------------------------------------------------------------------

function headLine(state: AttachState, width: number): Line {
  const session = state.sessions.get(state.live.sid)
  const status = cleanLine(statusWords(state.live.transcript, session))
  const both = cleanLine([whereOf(state, session), status].filter(Boolean).join(' · '))
  const room = Math.floor(width * 0.6)
  // What it waits for counts more than where it is.
  const about = cut(widthOf(both) <= room ? both : status, room)
  const title = cut(
    cleanLine(session?.named.title ?? state.live.sid),
    Math.max(0, width - widthOf(about) - 2),
  )
  const gap = ' '.repeat(Math.max(1, width - widthOf(title) - widthOf(about)))
  return cutLine(
    [
      { text: title, as: 'bold inverse' },
      { text: gap + about, as: 'inverse' },
    ],
    width,
  )
}

export function statusWords(transcript: Transcript, session: NamedSession | undefined): string {
  if (!session) return ''
  switch (session.status) {
    case 'waiting':
      return 'waits for you'
    case 'running':
      return session.holder === undefined ? 'waits for a runner' : 'working'
    case 'moving':
      return transcript.moving ? movingWords(transcript.moving) : 'moving'
    case 'idle':
      return session.pending > 0 ? 'waits for a runner' : 'ready'
    case 'done':
      return 'ended'
    case 'failed':
      return 'failed'
  }
}

function alarmLines(state: AttachState, width: number, now: number): Line[] {
  const { connection, lost_at, live } = state
  if (connection.at === 'refused') return prefixed(clean(connection.message), 'red', width, [], [])
  if (live.refused)
    return prefixed(clean(`${live.refused.message} ${live.refused.todo}`), 'red', width, [], [])
  if (lost_at === undefined || now - lost_at < LOST_MS) return []
  const why = connection.at === 'waiting' ? ` (${connection.reason})` : ''
  const words = `No connection to the relay${why}. It is tried again; what you send is kept until then.`
  return prefixed(clean(words), 'yellow', width, [], [])
}

// ---- transcript ---------------------------------------------------------------------------------------------------------

const THOUGHT_LINES = 2
const cache = new WeakMap<Item, { key: string; lines: Line[] }>()

/** The items, and what stands at their end while the session goes on. */
export function blocksOf(state: AttachState, width: number): Blocks {
  const { live, opened, names } = state
  const { transcript } = live
  const outputs = liveOutputs(transcript)
  const tail = tailBlocks(state, width)
  const nameOf = (device: string): string => names.get(device) ?? device.slice(0, 8)
  return {
    count: transcript.items.length + tail.length,
    lines: (index) => {
      const item = transcript.items[index]
      if (!item) return tail[index - transcript.items.length] ?? []
      const isOpen = opened.has(item.id)
      const blob = item.kind === 'tool' || item.kind === 'text' ? item.blob : undefined
      const whole = blob && isOpen ? live.wholes.get(blob.hash) : undefined
      const output = outputs.get(index)
      const context = { width, isOpen, nameOf, whole, live: output }
      if (output !== undefined) return itemLines(item, context)
      const key = `${width}|${isOpen}|${whole?.length ?? ''}|${names.size}`
      const known = cache.get(item)
      if (known?.key === key) return known.lines
      const lines = itemLines(item, context)
      cache.set(item, { key, lines })
      return lines
    },
  }
}

function tailBlocks({ live, sessions }: AttachState, width: number): Line[][] {
  const { transcript } = live
  const texts = liveTexts(transcript)
  const blocks = texts.map(([, text]) => [[], ...markdownLines(text, width)])
  const retry = retryOf(transcript)
  const dim = (text: string): Line[] =>
    prefixed(clean(text), 'dim', width, [{ text: '· ', as: 'dim' }], [{ text: '  ' }])
  if (retry) blocks.push(dim(`${retry.message} Attempt ${retry.attempt} follows.`))
  else if (isThinking(transcript)) {
    const thought = liveThought(transcript)
    if (thought !== undefined || texts.length === 0)
      blocks.push([...dim('Thinking …'), ...endOf(thought, width)])
  }
  if (transcript.moving) blocks.push(dim(`${movingWords(transcript.moving)} …`))
  if (transcript.items.length === 0 && blocks.length === 0) {
    const seq = sessions.get(live.sid)?.seq ?? 0
    blocks.push(dim(seq > transcript.seq ? 'Loading …' : 'Nothing has happened yet.'))
  }
  return blocks
}

/** The last lines of what the model thinks just now, so few that little moves. */
function endOf(thought = '', width: number): Line[] {
  const indent: Line = [{ text: '  ' }]
  const text = clean(thought).replaceAll(/\s+/g, ' ').trim()
  return text === '' ? [] : wrap([{ text, as: 'dim' }], width, indent, indent).slice(-THOUGHT_LINES)
}

function isSelected({ focus, selected, live }: AttachState, block: number | undefined): boolean {
  return (
    focus === 'transcript' &&
    block !== undefined &&
    selected !== undefined &&
    live.transcript.items[block]?.id === selected
  )
}

function marked(line: Line, isHere: boolean): Line {
  return isHere ? line.map(({ text, as }) => ({ text, as: `${as ?? ''} inverse`.trim() })) : line
}
