/** A session's journal as text for people: what was said and done, line by line. */
import type { Opened } from '@baton/shared/entries.ts'
import type { Json } from '@baton/shared/guest.ts'
import { transcriptOf, type TranscriptItem } from '@baton/shared/transcript.ts'
import { withAccount } from './account.ts'
import { parseFor } from './args.ts'
import { print } from './output.ts'
import { clean } from './term/text.ts'

const SHOWN_LINES = 12
const INPUT_CHARS = 160

export async function log(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('log', args)
  return withAccount(values.data, async (view) => {
    const { sid } = await view.find(positionals[0])
    const entries: Opened[] = []
    for await (const entry of view.entries(sid)) entries.push(entry)
    const items = values.entries === true ? entries : transcriptOf(entries)
    print(values.json, items, clean(logText(entries)))
    return 0
  })
}

/** Runner's words (failures, notices) come where they were said; long output is cut with a word. */
export function logText(entries: Opened[]): string {
  const lines = transcriptOf(entries).flatMap(linesOf)
  for (const entry of entries) {
    if (entry.kind !== 'event' || entry.body.effect !== undefined) continue
    const message = textIn(entry.body.data, 'message')
    if (message !== undefined) lines.push(`-- ${message}`)
  }
  return lines.join('\n')
}

function linesOf(item: TranscriptItem): string[] {
  switch (item.t) {
    case 'prompt':
      return [`> ${item.text}`]
    case 'event':
      return item.type === 'error' ? [`-- ${textIn(item.data, 'message') ?? item.type}`] : []
    case 'llm':
      return item.error ? [`-- ${item.error.message}`] : [spoken(item.result)].filter((text) => text !== '')
    case 'approve': {
      const approved = item.result !== undefined && JSON.stringify(item.result).includes('"approved":true')
      const answer = item.result === undefined ? 'waits for you' : approved ? 'approved' : 'denied'
      return [`? ${called(item)}  [${item.error ? item.error.code : answer}]`]
    }
    case 'tool':
      return [
        `* ${called(item)}`,
        ...shortened(item.error?.message ?? textIn(item.result ?? null, 'text') ?? ''),
      ]
  }
}

function called({ name, input }: { name: string; input: { [key: string]: Json } }): string {
  const text = JSON.stringify(input)
  return `${name} ${text.length > INPUT_CHARS ? `${text.slice(0, INPUT_CHARS)}…` : text}`
}

function shortened(text: string): string[] {
  const lines = text.trimEnd().split('\n')
  const more = lines.length > SHOWN_LINES ? [`… ${lines.length - SHOWN_LINES} more lines`] : []
  return [...lines.slice(0, SHOWN_LINES), ...more].filter((line) => line !== '').map((line) => `    ${line}`)
}

/** The text blocks of a model's answer. */
function spoken(result: Json | undefined): string {
  if (typeof result !== 'object' || result === null || Array.isArray(result)) return ''
  const { content } = result
  if (!Array.isArray(content)) return ''
  return content
    .map((block) => textIn(block, 'text') ?? '')
    .filter((text) => text !== '')
    .join('\n')
}

function textIn(value: Json, key: string): string | undefined {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const text = value[key]
  return typeof text === 'string' ? text : undefined
}
