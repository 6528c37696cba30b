/** A session's journal as text for people: what was said, done and decided, line by line, in the order in which it happened. */
import type { Opened } from '@baton/shared/entries.ts'
import type { Json } from '@baton/shared/guest.ts'
import { transcriptOf } from '@baton/shared/transcript.ts'
import { questionOf } from '@baton/shared/view/call.ts'
import type { Item, ToolItem } from '@baton/shared/view/items.ts'
import { readModelText, readToolResult } from '@baton/shared/view/results.ts'
import { retryOf, type Transcript } from '@baton/shared/view/transcript.ts'
import { size } from '@baton/shared/view/units.ts'
import {
  allowanceWords,
  handoffWords,
  movingWords,
  repeatedWords,
  retryWords,
  todoOf,
} from '@baton/shared/view/words.ts'
import { namesOf, withAccount, type AccountView } from './account.ts'
import { parseFor } from './args.ts'
import { callLines } from './attach/rows.ts'
import { print } from './output.ts'
import { painted } from './term/style.ts'
import { clean } from './term/text.ts'

const SHOWN_LINES = 12
const INPUT_CHARS = 160
const WIDTH_MAX = 110

export interface LogOptions {
  nameOf: (device: string) => string
  /** Milliseconds since 1970. */
  now: number
  /** Nothing is cut. */
  full?: boolean
  /** Whole results by the hash of their blob. */
  wholes?: ReadonlyMap<string, string>
}

export async function log(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('log', args)
  return withAccount(values.data, async (view) => {
    const { sid } = await view.find(positionals[0])
    if (values.json === true) {
      const entries: Opened[] = []
      for await (const entry of view.entries(sid)) entries.push(entry)
      print(true, values.entries === true ? entries : transcriptOf(entries), '')
      return 0
    }
    const [transcript, listed] = [await view.transcript(sid), await view.list()]
    const names = namesOf(listed)
    const nameOf = (device: string): string => names.get(device) ?? device.slice(0, 8)
    const full = values.full === true
    const wholes = full ? await wholesOf(view, sid, transcript) : undefined
    const text = logText(transcript, { nameOf, now: Date.now(), full, ...(wholes ? { wholes } : {}) })
    print(false, null, clean(text))
    return 0
  })
}

/** What was said, with marks: `>` a person, `*` a call, `?` it waits for you, `--` what happened to the session. */
export function logText(transcript: Transcript, options: LogOptions): string {
  const retry = retryOf(transcript)
  const lines = transcript.items.flatMap((item) => linesOf(item, options))
  if (retry) lines.push(`-- ${retryWords(retry, options.now)}`)
  if (transcript.moving) lines.push(`-- ${movingWords(transcript.moving)} …`)
  return lines.join('\n')
}

function linesOf(item: Item, options: LogOptions): string[] {
  const { nameOf, full = false, wholes } = options
  switch (item.kind) {
    case 'prompt':
      return [`> ${item.text}${item.images?.length ? ` [${item.images.length} pictures]` : ''}`]
    case 'text': {
      const again = item.repeated > 0 ? [`-- ${repeatedWords(item.repeated)}`] : []
      if (!item.blob) return [...again, item.text]
      const { hash, head, bytes } = item.blob
      return [...again, wholes?.get(hash) ?? `${head}\n… (${size(bytes)}; all: --full)`]
    }
    case 'thought':
      return full ? [`~ ${item.text}`] : []
    case 'tool':
      return toolLines(item, options)
    case 'handoff':
      return [`-- ${handoffWords(item, nameOf)}`]
    case 'event': {
      const where = item.device === undefined ? '' : `${nameOf(item.device)}: `
      const todo = item.tone === 'error' ? todoOf(item) : ''
      return [`-- ${where}${[item.text, todo].filter((part) => part !== '').join(' ')}`]
    }
    case 'stop':
      return [`-- Stopped from ${nameOf(item.device)}.`]
    case 'unreadable':
      return ['-- An entry that can not be read here: damaged, or of a newer version.']
  }
}

function toolLines(item: ToolItem, { nameOf, full = false, wholes }: LogOptions): string[] {
  const { name, input, state, approval, allowed, error, result, blob } = item
  if (state === 'approval') {
    // Whoever decides by this has to see all of it.
    const call = callLines(name, input, WIDTH_MAX, [{ text: '    ' }])
    const shown = call.map((line) => painted(line, 'none').trimEnd())
    return [`? ${questionOf(name)}  [waits for you]`, ...shown]
  }
  const decided = approval?.decided
  const who = decided && (decided.device === '' ? 'by a rule or the mode' : `by ${nameOf(decided.device)}`)
  const note = decided?.note === undefined ? '' : `: ${decided.note}`
  const answer = allowed
    ? `  [allowed by ${allowanceWords(allowed)}]`
    : decided && `  [${decided.approved ? 'approved' : 'denied'} ${who}${note}]`
  const open = state === 'running' ? '  [runs]' : state === 'approved' ? ' [has not begun]' : ''
  const text = blob
    ? (wholes?.get(blob.hash) ?? [blob.head, blob.tail].filter(Boolean).join(`\n… (${size(blob.bytes)}) …\n`))
    : error
      ? [error.message, error.printed ?? ''].filter(Boolean).join('\n')
      : (result?.text ?? '')
  return [`* ${called(name, input, full)}${answer ?? ''}${open}`, ...shortened(text, full)]
}

function called(name: string, input: { [key: string]: Json }, full: boolean): string {
  const text = JSON.stringify(input)
  return `${name} ${!full && text.length > INPUT_CHARS ? `${text.slice(0, INPUT_CHARS)}…` : text}`
}

function shortened(text: string, full: boolean): string[] {
  const lines = text.trimEnd().split('\n')
  const shown = full ? lines : lines.slice(0, SHOWN_LINES)
  const more = lines.length - shown.length
  return [...shown, ...(more > 0 ? [`… ${more} more lines (all: --full)`] : [])]
    .filter((line) => line !== '')
    .map((line) => `    ${line}`)
}

async function wholesOf(view: AccountView, sid: string, { items }: Transcript): Promise<Map<string, string>> {
  const wholes = new Map<string, string>()
  for (const item of items) {
    if ((item.kind !== 'tool' && item.kind !== 'text') || !item.blob) continue
    const bytes = await view.link.blobs.get(sid, view.keyOf(sid), item.blob.hash)
    const result = JSON.parse(new TextDecoder().decode(bytes)) as Json
    wholes.set(item.blob.hash, item.kind === 'text' ? readModelText(result) : readToolResult(result).text)
  }
  return wholes
}
