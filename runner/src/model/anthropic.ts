/** The Messages API through the official SDK: streaming, prompt caching, bounded retries before the first byte. */
import Anthropic, { APIConnectionError, APIError, APIUserAbortError } from '@anthropic-ai/sdk'
import { BatonError } from '@baton/shared/errors.ts'
import type { Json, LlmResult, Message, ToolSpec } from '@baton/shared/guest.ts'
import type { Model, ModelCallOptions, ModelRequest } from './model.ts'

const MODEL = 'claude-sonnet-5-5'
const MAX_TOKENS = 32_000
const RETRIES = 2
/** A live stream is never silent for long: the service sends pings. */
const SILENCE_MS = 120_000

type Block = LlmResult['content'][number]
type Stream = ReturnType<Anthropic['messages']['stream']>

export interface AnthropicSettings {
  apiKey: string
  baseUrl?: string
  /** Used when a request names none. */
  model?: string
  /** Milliseconds without an event after which a stream is given up. */
  silence_ms?: number
}

export function anthropicModel(settings: AnthropicSettings): Model {
  const silence_ms = settings.silence_ms ?? SILENCE_MS
  const client = new Anthropic({
    apiKey: settings.apiKey,
    baseURL: settings.baseUrl ?? 'https://api.anthropic.com',
    maxRetries: RETRIES,
    timeout: SILENCE_MS,
    // Neither keys nor conversations belong into a log or a trace.
    logLevel: 'off',
    openTelemetry: false,
  })
  return {
    name: 'anthropic',
    async call(request, options) {
      if (options.signal.aborted) throw new BatonError('stopped')
      try {
        return await answer(client, paramsOf(request, settings.model ?? MODEL), options, silence_ms)
      } catch (error) {
        throw translated(error, options.signal)
      }
    },
  }
}

async function answer(
  client: Anthropic,
  params: Anthropic.MessageStreamParams,
  { signal, onText }: ModelCallOptions,
  silence_ms: number,
): Promise<LlmResult> {
  const stream = client.messages.stream(params, { signal })
  const inputs = new Map<number, string>()
  const silence = new Silence(stream, silence_ms)
  stream.on('streamEvent', (event, snapshot) => {
    silence.broken()
    if (event.type !== 'content_block_delta') return
    if (event.delta.type === 'input_json_delta') {
      inputs.set(event.index, (inputs.get(event.index) ?? '') + event.delta.partial_json)
    } else if (event.delta.type === 'text_delta') onText(textOf(snapshot.content))
  })
  try {
    const message = await stream.finalMessage()
    const { usage } = message
    return {
      content: contentOf(message.content, inputs),
      stop_reason: message.stop_reason ?? 'end_turn',
      model: message.model,
      usage: {
        input_tokens: usage.input_tokens,
        output_tokens: usage.output_tokens,
        cache_read_tokens: usage.cache_read_input_tokens ?? 0,
        cache_write_tokens: usage.cache_creation_input_tokens ?? 0,
      },
    }
  } catch (error) {
    throw silence.ended ? new BatonError('model-error', `The stream was silent for ${silence_ms} ms.`) : error
  } finally {
    silence.close()
  }
}

/** Ends a stream that says nothing for too long (F6). Before it begins, the client's own time-out and retries hold. */
class Silence {
  ended = false
  #timer: NodeJS.Timeout | undefined

  constructor(stream: Stream, after_ms: number) {
    stream.on('connect', () => {
      this.#timer = setTimeout(() => {
        this.ended = true
        stream.abort()
      }, after_ms)
    })
  }

  broken(): void {
    this.#timer?.refresh()
  }

  close(): void {
    clearTimeout(this.#timer)
  }
}

/** Cache breakpoints: after the tools, after the system prompt, after the last message; the next call reads up to there. */
function paramsOf(request: ModelRequest, model: string): Anthropic.MessageStreamParams {
  const cache_control = { type: 'ephemeral' } as const
  const tools = request.tools.map((spec, index): Anthropic.Tool => ({
    ...toolOf(spec),
    ...(index === request.tools.length - 1 ? { cache_control } : {}),
  }))
  const last = request.messages.length - 1
  const messages = request.messages.map((message, index) => {
    const blocks = message.content
    // A block of thinking can't be marked.
    const marked = index === last ? blocks.findLastIndex((block) => !block.type.includes('thinking')) : -1
    return {
      role: message.role,
      content: blocks.map((block, at) => (at === marked ? { ...block, cache_control } : block)),
    }
  })
  return {
    model: request.model ?? model,
    max_tokens: request.max_tokens ?? MAX_TOKENS,
    ...(request.system === '' ? {} : { system: [{ type: 'text', text: request.system, cache_control }] }),
    ...(tools.length === 0 ? {} : { tools }),
    // The guest keeps messages in the API's own shape; whether they are valid the service says.
    messages: wellFormed(messages) as unknown as Anthropic.MessageParam[],
  }
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

function toolOf({ name, description, schema }: ToolSpec): Anthropic.Tool {
  return { name, description, input_schema: { ...schema, type: 'object' } }
}

/**
 * Blocks as plain JSON, in the shape in which the API takes them back. The SDK completes half-sent tool input; a call whose
 * input was cut off by the token limit must not run, so it is left out.
 */
function contentOf(blocks: Anthropic.ContentBlock[], inputs: Map<number, string>): Message['content'] {
  const content: Block[] = []
  for (const [index, block] of blocks.entries()) {
    if (block.type === 'text') {
      if (block.text !== '') content.push({ type: 'text', text: block.text })
    } else if (block.type === 'tool_use') {
      const input = parsed(inputs.get(index) ?? '')
      if (input) content.push({ type: 'tool_use', id: block.id, name: block.name, input })
    } else {
      content.push(JSON.parse(JSON.stringify(block)) as Block)
    }
  }
  // The API refuses an empty message when it is sent back.
  if (content.length === 0) content.push({ type: 'text', text: '(no answer)' })
  return content
}

function parsed(text: string): { [key: string]: Json } | undefined {
  if (text.trim() === '') return {}
  try {
    const value = JSON.parse(text) as Json
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}

function textOf(blocks: Anthropic.ContentBlock[]): string {
  return blocks
    .filter((block) => block.type === 'text')
    .map((block) => block.text)
    .join('\n\n')
}

function translated(error: unknown, signal: AbortSignal): BatonError {
  if (error instanceof BatonError) return error
  if (signal.aborted || error instanceof APIUserAbortError) return new BatonError('stopped')
  if (error instanceof APIConnectionError) {
    const cause = error.cause instanceof Error ? ` (${error.cause.message})` : ''
    return new BatonError('model-error', `The service can not be reached: ${error.message}${cause}`)
  }
  if (error instanceof APIError) {
    const words = error.apiMessage ?? (error.status ? 'no further words' : error.message)
    return new BatonError(
      'model-error',
      `${error.status ? `Status ${error.status}` : (error.type ?? 'Error')}: ${words}`,
    )
  }
  const words = error instanceof Error ? error.message : String(error)
  return new BatonError('model-error', `The answer did not arrive whole: ${words}`)
}
