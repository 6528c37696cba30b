/** The answer of the model server without streaming. */
import type { Message } from '@anthropic-ai/sdk/resources/messages'
import type { Sent } from './model-turns.ts'

/** Puts the events of a stream together, for a caller that asked for the whole message at once. */
export class WholeMessage {
  /** HTTP status of the answer. */
  status = 200
  body: Message | Sent | undefined
  readonly #texts: string[] = []

  add(sent: Sent): void {
    if (sent.type === 'error') {
      this.status = 529
      this.body = sent
    } else if (sent.type === 'message_start') {
      this.body = sent.message
    } else if (this.body?.type === 'message') {
      this.#extend(this.body, sent)
    }
  }

  #extend(message: Message, sent: Sent): void {
    if (sent.type === 'message_delta') {
      message.stop_reason = sent.delta.stop_reason
      message.usage.output_tokens = sent.usage.output_tokens
    } else if (sent.type === 'content_block_start') {
      message.content.push(sent.content_block)
      this.#texts.push('')
    } else if (sent.type === 'content_block_delta') {
      const { delta, index } = sent
      if (delta.type === 'text_delta') this.#texts[index] += delta.text
      if (delta.type === 'input_json_delta') this.#texts[index] += delta.partial_json
      if (delta.type === 'thinking_delta') this.#texts[index] += delta.thinking
      const block = message.content[index]
      if (delta.type === 'signature_delta' && block?.type === 'thinking') block.signature = delta.signature
    } else if (sent.type === 'content_block_stop') {
      const block = message.content[sent.index]
      const text = this.#texts[sent.index] ?? ''
      if (block?.type === 'text') block.text = text
      if (block?.type === 'thinking') block.thinking = text
      if (block?.type === 'tool_use' || block?.type === 'server_tool_use') block.input = JSON.parse(text)
    }
  }
}
