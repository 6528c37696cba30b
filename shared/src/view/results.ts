/** Reads what effects gave. Results are the agent's and the runner's; anything else than expected reads as text, never throws. */
import type { Json } from '../guest.ts'
import * as v from 'valibot'
import { Image } from '../journal.ts'
import type { ToolResultView } from './items.ts'

const json = v.custom<Json>((value) => value !== undefined)

const Content = v.object({
  content: v.array(
    v.looseObject({ type: v.string(), text: v.optional(v.string()), thinking: v.optional(v.string()) }),
  ),
})

/** What a model said, in its order. Some models say what they do between two calls only in their thinking. */
export interface Said {
  as: 'text' | 'thought'
  text: string
}

/**
 * Texts and readable thoughts of a model's answer, neighbours of one kind as one Markdown text. Calls have items of their own;
 * signatures and redacted thinking are nobody's to read.
 */
export function readModelSaid(result: Json | undefined): Said[] {
  const parsed = v.safeParse(Content, result)
  if (!parsed.success)
    return [{ as: 'text' as const, text: asText(result) }].filter(({ text }) => text !== '')
  const said: Said[] = []
  for (const { type, text, thinking } of parsed.output.content) {
    const as = type === 'thinking' ? 'thought' : 'text'
    const words = (type === 'text' ? text : type === 'thinking' ? thinking : undefined)?.trim() ?? ''
    const last = said.at(-1)
    if (words === '') continue
    if (last?.as === as) last.text += `\n\n${words}`
    else said.push({ as, text: words })
  }
  return said
}

/** The text blocks of a model's answer, as one Markdown text: the answer itself, without thoughts. */
export function readModelText(result: Json | undefined): string {
  return textsOf(readModelSaid(result), 'text')
}

/** All that was said in one way, as one text. */
export function textsOf(said: readonly Said[], as: Said['as']): string {
  return said.flatMap((one) => (one.as === as ? [one.text] : [])).join('\n\n')
}

const ToolResult = v.object({
  text: v.string(),
  is_error: v.boolean(),
  detail: v.optional(v.record(v.string(), json)),
  images: v.fallback(v.optional(v.array(Image)), undefined),
})

export function readToolResult(result: Json | undefined): ToolResultView {
  const parsed = v.safeParse(ToolResult, result)
  if (!parsed.success) return { text: asText(result), is_error: false }
  const { text, is_error, detail, images } = parsed.output
  return { text, is_error, ...(detail && { detail }), ...(images?.length && { images }) }
}

const ApproveResult = v.object({
  approved: v.boolean(),
  note: v.optional(v.string()),
  device: v.fallback(v.string(), ''),
})

export function readApproval(result: Json | undefined): { approved: boolean; note?: string; device: string } {
  const parsed = v.safeParse(ApproveResult, result)
  if (!parsed.success) return { approved: false, device: '' }
  const { approved, note, device } = parsed.output
  return note === undefined ? { approved, device } : { approved, note, device }
}

/** The words of an event: a text, or the first of `message`, `text`, `label`, `title` that is one. */
export function readEventText(data: Json): string {
  if (typeof data === 'string') return data
  if (data !== null && typeof data === 'object' && !Array.isArray(data)) {
    for (const field of ['message', 'text', 'label', 'title']) {
      const value = data[field]
      if (typeof value === 'string') return value
    }
    return Object.keys(data).length === 0 ? '' : JSON.stringify(data)
  }
  return data === null ? '' : JSON.stringify(data)
}

function asText(value: Json | undefined): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'string' ? value : JSON.stringify(value, null, 2)
}
