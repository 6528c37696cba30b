/**
 * An answer of the Messages API as it streams in. The SDK could put it together, too, but gives up when the input of a call is not
 * JSON; here that is part of the answer.
 */
import type Anthropic from '@anthropic-ai/sdk'
import type { Json, LlmResult, Message } from '@baton/shared/guest.ts'
import { ModelFailure } from './model.ts'
import { costOf, factsOf } from './prices.ts'

/** How much of an unreadable input is told. */
const INVALID_CHARS = 500
/** What a screen shows of a thought under way. */
const THOUGHT_CHARS = 400

type Block = Message['content'][number]

export class Answer {
  #message: Anthropic.Message | undefined
  #isWhole = false
  readonly #blocks: Anthropic.ContentBlock[] = []
  /** The text of each block's input, by index. */
  readonly #inputs: string[] = []

  add(event: Anthropic.RawMessageStreamEvent): void {
    switch (event.type) {
      case 'message_start':
        this.#message = event.message
        return
      case 'content_block_start':
        this.#blocks[event.index] = { ...event.content_block }
        return
      case 'content_block_delta':
        this.#extend(event)
        return
      case 'message_delta':
        if (!this.#message) return
        this.#message.stop_reason = event.delta.stop_reason
        this.#message.usage.output_tokens = event.usage.output_tokens
        return
      case 'message_stop':
        this.#isWhole = true
        return
      case 'content_block_stop':
    }
  }

  #extend({ index, delta }: Anthropic.RawContentBlockDeltaEvent): void {
    const block = this.#blocks[index]
    if (delta.type === 'input_json_delta')
      this.#inputs[index] = (this.#inputs[index] ?? '') + delta.partial_json
    else if (delta.type === 'text_delta' && block?.type === 'text') block.text += delta.text
    else if (delta.type === 'thinking_delta' && block?.type === 'thinking') block.thinking += delta.thinking
    else if (delta.type === 'signature_delta' && block?.type === 'thinking') block.signature = delta.signature
  }

  /** What was said so far. */
  get text(): string {
    return this.#blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n\n')
  }

  /** The end of what it thinks, while it thinks; empty as soon as it says or does something. */
  get thought(): string {
    const block = this.#blocks.at(-1)
    return block?.type === 'thinking' ? block.thinking.slice(-THOUGHT_CHARS).toWellFormed() : ''
  }

  /** Throws ModelFailure `model-unreachable` when the stream ended before the answer did. */
  result(): LlmResult {
    const message = this.#message
    if (!message || !this.#isWhole) {
      throw new ModelFailure('model-unreachable', 'The stream ended before the answer did.')
    }
    const usage = {
      input_tokens: message.usage.input_tokens,
      output_tokens: message.usage.output_tokens,
      cache_read_tokens: message.usage.cache_read_input_tokens ?? 0,
      cache_write_tokens: message.usage.cache_creation_input_tokens ?? 0,
    }
    const cost_usd = costOf(message.model, usage)
    const window = factsOf(message.model)?.window
    return {
      ...this.#content(),
      stop_reason: message.stop_reason ?? 'end_turn',
      model: message.model,
      usage,
      ...(cost_usd === undefined ? {} : { cost_usd }),
      ...(window === undefined ? {} : { window }),
    }
  }

  /**
   * Blocks as plain JSON, in the shape in which the API takes them back; thinking with its signature, in its place. A call whose
   * input is no JSON object, or was cut off, has the input `{}` and stands in `invalid_input`: half a call must not run.
   */
  #content(): Pick<LlmResult, 'content' | 'invalid_input'> {
    const content: Block[] = []
    const invalid: Record<string, string> = {}
    const lastThought = this.#blocks.findLastIndex(({ type }) => type.includes('thinking'))
    for (const [index, block] of this.#blocks.entries()) {
      const text = this.#inputs[index] ?? ''
      if (block.type === 'text') {
        // The API refuses a blank text when it is sent back. Before a thought nothing may be left out: it would no longer fit.
        const isKept = block.text.trim() !== '' || (block.text !== '' && index < lastThought)
        if (isKept) content.push({ type: 'text', text: block.text })
      } else if (block.type === 'tool_use') {
        const input = parsed(text)
        if (!input) invalid[block.id] = text.slice(0, INVALID_CHARS)
        content.push({ type: 'tool_use', id: block.id, name: block.name, input: input ?? {} })
      } else {
        const plain = JSON.parse(JSON.stringify(block)) as Block
        content.push(text === '' ? plain : { ...plain, input: parsed(text) ?? {} })
      }
    }
    // The API refuses an empty message when it is sent back.
    if (content.length === 0) content.push({ type: 'text', text: '(no answer)' })
    return Object.keys(invalid).length === 0 ? { content } : { content, invalid_input: invalid }
  }
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
