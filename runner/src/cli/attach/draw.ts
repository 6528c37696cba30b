/** One picture of `attach`: state in, lines out. Nothing here changes anything but what was seen of an approval. */
import { isTrueCall, questionOf } from '@baton/shared/view/call.ts'
import type { Approval, Item } from '@baton/shared/view/items.ts'
import { modeName } from '@baton/shared/view/modes.ts'
import { lastPart } from '@baton/shared/view/units.ts'
import {
  isThinking,
  liveOutputs,
  liveTexts,
  pendingApprovals,
  retryOf,
  type Transcript,
} from '@baton/shared/view/transcript.ts'
import { usageWords } from '@baton/shared/view/usage.ts'
import { movingWords } from '@baton/shared/view/words.ts'
import type { NamedSession } from '../account.ts'
import { laidOut, type Draft } from '../term/editor.ts'
import { markdownLines } from '../term/markdown.ts'
import { clean, cleanLine, cut, cutLine, widthOf, wrap, type Line } from '../term/text.ts'
import { callLines, divider, itemLines, prefixed } from './rows.ts'
import { windowOn, type Blocks } from './scroll.ts'
import type { AttachState } from './state.ts'

export interface Picture {
  lines: Line[]
  cursor?: { row: number; column: number }
}

const COMPOSER_ROWS_MAX = 8
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
    const from = Math.max(0, Math.min(selected - Math.floor(rows / 2), choices.length - rows))
    const lines = choices.slice(from, from + rows).map(({ label, about }, i) => {
      const isHere = from + i === selected
      const line: Line = [
        { text: isHere ? '› ' : '  ', as: 'bold cyan' },
        { text: cleanLine(label), as: isHere ? 'bold' : '' },
        { text: about === undefined ? '' : `  ${cleanLine(about)}`, as: 'dim' },
      ]
      return cutLine(line, width)
    })
    return filled(
      [head, divider(title, width, 'bold'), ...lines],
      'Enter choose · ↑↓ · Esc back',
      width,
      height,
    )
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

function filled(lines: Line[], hint: string, width: number, height: number): Picture {
  const padding = Array.from({ length: Math.max(0, height - 1 - lines.length) }, (): Line => [])
  return { lines: [...lines, ...padding, cutLine([{ text: hint, as: 'dim' }], width)].slice(0, height) }
}

// ---- head ---------------------------------------------------------------------------------------------------------------

function headLine(state: AttachState, width: number): Line {
  const session = state.sessions.get(state.live.sid)
  const where = whereOf(state, session)
  const about = cut(
    cleanLine([where, statusWords(state.live.transcript, session)].filter(Boolean).join(' · ')),
    Math.floor(width * 0.6),
  )
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

function whereOf({ names }: AttachState, session: NamedSession | undefined): string {
  return session?.holder === undefined ? '' : (names.get(session.holder) ?? session.holder.slice(0, 8))
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
  else if (isThinking(transcript) && texts.length === 0) blocks.push(dim('Thinking …'))
  if (transcript.moving) blocks.push(dim(`${movingWords(transcript.moving)} …`))
  if (transcript.items.length === 0 && blocks.length === 0) {
    const seq = sessions.get(live.sid)?.seq ?? 0
    blocks.push(dim(seq > transcript.seq ? 'Loading …' : 'Nothing has happened yet.'))
  }
  return blocks
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

// ---- approval -----------------------------------------------------------------------------------------------------------

/** Pinned above the composer: the whole call. A long one is scrolled, and can be approved once its end was seen. */
function cardLines(
  state: AttachState,
  approval: Approval,
  count: number,
  width: number,
  room: number,
): Line[] {
  const { live, sessions, focus } = state
  const others = count > 1 ? ` (1 of ${count})` : ''
  const where = [whereOf(state, sessions.get(live.sid)), lastPart(live.transcript.workspace ?? '')]
    .filter(Boolean)
    .join(' · ')
  const rule = focus === 'approval' ? 'bold yellow' : 'yellow'
  const title = divider(
    [`${questionOf(approval.name)}${others}`, where].filter(Boolean).join(' · '),
    width,
    rule,
  )
  const given = live.outgoing.find(({ decided }) => decided?.effect === approval.effect)
  const lie = isTrueCall(approval)
    ? []
    : prefixed(
        'What is shown here is not what would run: the call and its digest differ. It can not be approved.',
        'red',
        width,
        [],
        [],
      )
  const call = callLines(approval.name, approval.input, width)
  const rows = Math.max(1, room - 2 - lie.length)
  const from =
    state.card?.effect === approval.effect ? Math.min(state.card.from, Math.max(0, call.length - rows)) : 0
  const isSeen = from + rows >= call.length
  state.card = {
    effect: approval.effect,
    from,
    seen: isSeen || (state.card?.effect === approval.effect && state.card.seen),
  }
  const rest = call.length - from - rows
  const foot = given
    ? givenWords(
        given.state,
        given.decided?.approved === true,
        whereOf(state, sessions.get(live.sid)),
        given.error,
      )
    : cardHint(focus === 'approval', rest, state.card.seen)
  return [
    title,
    ...call.slice(from, from + rows),
    ...lie,
    cutLine([{ text: foot, as: given ? 'yellow' : 'dim' }], width),
  ]
}

function cardHint(isHere: boolean, rest: number, seen: boolean): string {
  if (!isHere) return rest > 0 ? `${rest} more lines · Tab: see the rest and decide` : 'Tab: decide'
  const more = rest > 0 ? `↓ ${rest} more lines · ` : ''
  return `${more}${seen ? 'y approve · n deny · a always' : 'n deny · see it all to approve'} · Esc back`
}

function givenWords(state: string, approved: boolean, runner: string, error: string | undefined): string {
  const what = approved ? 'Approved' : 'Denied'
  if (state === 'refused') return `${what}, but refused: ${cleanLine(error ?? '')} (x takes it back)`
  if (state === 'sending') return `${what}. Sending …`
  return runner === ''
    ? `${what}. Held until a runner is back.`
    : `${what}. ${cleanLine(runner)} takes it next.`
}

// ---- foot ---------------------------------------------------------------------------------------------------------------

/** Prompts that are on their way, or wait for their turn. */
function queueRows({ live }: AttachState, width: number): Line[] {
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

function composerRows(state: AttachState, width: number, height: number): Rows {
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

function askRows({ question, draft }: { question: string; draft: Draft }, width: number): Rows {
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
function hintLine(state: AttachState, width: number): Line {
  const { said, overlay, focus, live } = state
  if (said !== undefined) return cutLine([{ text: cleanLine(said), as: 'bold' }], width)
  const session = state.sessions.get(live.sid)
  const isBusy = session?.status === 'running' || session?.status === 'waiting'
  const hints =
    overlay?.as === 'ask'
      ? ['Enter: go on', 'Esc: back']
      : focus === 'transcript'
        ? ['↑↓ select', 'Enter open', '? keys', 'm move', 's sessions', 'Esc write']
        : [
            ...(focus === 'approval' ? ['Esc write'] : ['Enter send']),
            ...(isBusy ? ['^X stop', state.steers ? '^S: queue' : '^S: steer'] : []),
            ...(focus === 'approval' ? [] : ['Esc keys']),
            '^C leave',
            '^J new line',
          ]
  const { usage, mode } = live.transcript
  const facts = [...(mode ? [modeName(mode)] : []), ...(usage ? [usageWords(usage.session)] : [])]
  const line = fitting([...hints, ...facts], width)
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
