/** Turns what a person types as an answer into the result of an effect. */
import type { EffectRequest, Json } from '@baton/shared/guest.ts'

/** Short forms: a text for `prompt`, `llm` and `tool`, yes or no for `approve`. A JSON object is taken as it is. */
export function resultOf(request: EffectRequest, value: string): Json {
  const json = parse(value)
  if (typeof json === 'object' && json !== null && !Array.isArray(json)) return json
  const text = typeof json === 'string' ? json : value
  switch (request.kind) {
    case 'prompt':
      return { text, command: `reply-${request.id}` }
    case 'llm':
      return {
        content: [{ type: 'text', text }],
        stop_reason: 'end_turn',
        model: 'by-hand',
        usage: { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 },
      }
    case 'tool':
      return { text, is_error: false }
    case 'approve':
      return { approved: /^(yes|y|true|1)$/i.test(text), device: 'by-hand' }
    case 'sleep':
    case 'emit':
      return null
  }
}

function parse(value: string): Json | undefined {
  try {
    return JSON.parse(value) as Json
  } catch {
    return undefined
  }
}
