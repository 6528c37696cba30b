/** Requests in the shape of the Messages API. */
import type Anthropic from '@anthropic-ai/sdk'
import type { Message, OwnTool } from '@baton/shared/guest.ts'
import type { ModelRequest } from './model.ts'
import { factsOf } from './prices.ts'

const MAX_TOKENS = 32_000

/**
 * Cache breakpoints: after the tools, after the system prompt, after the last message and after the message before the newest answer,
 * which is what the request before had written. What was sent once is sent again byte for byte.
 */
export function paramsOf(request: ModelRequest, fallback: string): Anthropic.MessageCreateParamsStreaming {
  const model = request.model ?? fallback
  const facts = factsOf(model)
  const tools = request.tools.map((spec, index) => toolOf(spec, index === request.tools.length - 1))
  const effort = facts?.effort === false ? undefined : request.effort
  return {
    model,
    stream: true,
    max_tokens: request.max_tokens ?? MAX_TOKENS,
    // Some models say what they do between two calls only in their thinking, which they leave out unless asked.
    ...(facts?.adaptive ? { thinking: { type: 'adaptive', display: 'summarized' } } : {}),
    ...(effort ? { output_config: { effort } } : {}),
    ...(request.system === '' ? {} : { system: [{ type: 'text', text: request.system, cache_control }] }),
    ...(tools.length === 0 ? {} : { tools }),
    // The guest keeps messages in the API's own shape; whether they are valid the service says.
    messages: wellFormed(markedMessages(request.messages)) as unknown as Anthropic.MessageParam[],
  }
}

const cache_control = { type: 'ephemeral' } as const

function toolOf({ name, description, schema }: OwnTool, isLast: boolean): Anthropic.Tool {
  return {
    ...{ name, description, input_schema: { ...schema, type: 'object' } },
    ...(isLast && { cache_control }),
  }
}

function markedMessages(messages: Message[]): Message[] {
  const before = messages.findLastIndex(({ role }) => role === 'assistant') - 1
  const marks = new Set([messages.length - 1, before])
  return messages.map(({ role, content }, index) => {
    // A block of thinking can't be marked.
    const marked = marks.has(index) ? content.findLastIndex(({ type }) => !type.includes('thinking')) : -1
    return {
      role,
      content: content.map((block, at) => (at === marked ? { ...block, cache_control } : block)),
    }
  })
}

/**
 * The service refuses half a surrogate pair, and would do so with every later request of the conversation (F50): it sees
 * U+FFFD in its place. What the guest holds stays as it is.
 */
function wellFormed<T>(value: T): T {
  const text = JSON.stringify(value)
  // JSON.stringify escapes just those halves.
  if (!/\\ud[89a-f]/.test(text)) return value
  const mend = (_: string, item: unknown): unknown => (typeof item === 'string' ? item.toWellFormed() : item)
  return JSON.parse(text, mend) as T
}
