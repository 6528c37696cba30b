/** Turns what a person types as an answer into the result of an effect. */
import { BatonError } from '@baton/shared/errors.ts'
import type { EffectRequest, Json } from '@baton/shared/guest.ts'
import * as v from 'valibot'

type Kind = EffectRequest['kind']

const usage = { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 }

/** What an answer that is written as JSON has at least; the rest of what a guest may look at is added. */
const ANSWERS: { readonly [K in Kind]?: v.GenericSchema<unknown, unknown> } = {
  prompt: v.looseObject({ text: v.string() }),
  llm: v.looseObject({ content: v.array(v.looseObject({ type: v.string() })) }),
  tool: v.looseObject({ text: v.string() }),
  approve: v.looseObject({ approved: v.boolean() }),
}

/**
 * Short forms: a text for `prompt`, `llm` and `tool`, yes or no for `approve`. A JSON object is the answer itself. Throws BatonError
 * `usage` for one that is damaged, or is no answer to that.
 */
export function resultOf({ id, kind }: Pick<EffectRequest, 'id' | 'kind'>, value: string): Json {
  const json = parsed(value)
  if (typeof json === 'object' && json !== null && !Array.isArray(json)) {
    const schema = ANSWERS[kind]
    const read = schema && v.safeParse(schema, json)
    if (read?.success === false)
      throw new BatonError(
        'usage',
        `VALUE is no answer to effect ${id}, ${kind}: ${v.summarize(read.issues)}.`,
      )
    return { ...usual(kind, id, ''), ...json }
  }
  const text = typeof json === 'string' ? json : value
  if (kind !== 'approve') return kind === 'sleep' || kind === 'emit' ? null : usual(kind, id, text)
  if (!YES.test(text) && !NO.test(text))
    throw new BatonError('usage', `VALUE is yes or no for effect ${id}, not ${JSON.stringify(text)}.`)
  return { ...usual(kind, id, ''), approved: YES.test(text) }
}

const YES = /^(yes|y|true|1)$/i
const NO = /^(no|n|false|0)$/i

/** The answer to an effect that a person gives, with a text where it has one. */
function usual(kind: Kind, id: number, text: string): { [key: string]: Json } {
  switch (kind) {
    case 'prompt':
      return { text, command: `reply-${id}` }
    case 'llm':
      return { content: [{ type: 'text', text }], stop_reason: 'end_turn', model: 'by-hand', usage }
    case 'tool':
      return { text, is_error: false }
    case 'approve':
      return { approved: false, device: 'by-hand' }
    case 'sleep':
    case 'emit':
      return {}
  }
}

/** Undefined: it is no JSON, and does not look like an object. Throws BatonError `usage`. */
function parsed(value: string): Json | undefined {
  try {
    return JSON.parse(value) as Json
  } catch (cause) {
    if (!/^\s*\{/.test(value)) return undefined
    const why = cause instanceof Error ? cause.message : String(cause)
    const words = `VALUE begins like JSON and is none: ${why}. A text like that is written as a JSON string.`
    throw new BatonError('usage', words, { cause })
  }
}
