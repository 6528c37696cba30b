/**
 * Thinking as newer models keep it: a block is signed for what stood before it, system prompt and tools included. Sent back behind
 * anything else it is refused, so that an agent that changes what was said is found out.
 */
import { createHash } from 'node:crypto'
import type { MessagesRequest } from './model-rules.ts'

/** The signature of a block of thinking in the message at `index`. */
export function signatureOf(
  { system, tools, messages }: MessagesRequest,
  index: number,
  thinking: string,
): string {
  const before = [system ?? '', tools ?? [], messages.slice(0, index), thinking]
  const plain = JSON.stringify(before, (key, value: unknown) => (key === 'cache_control' ? undefined : value))
  return createHash('sha256').update(plain).digest('base64')
}

/** Which block of thinking does not fit what stands before it, in the API's words. */
export function brokenThinking(request: MessagesRequest): string | undefined {
  for (const [index, { content }] of request.messages.entries()) {
    if (typeof content === 'string') continue
    for (const [at, block] of content.entries()) {
      const place = `messages.${index}.content.${at}`
      if (block.type === 'thinking' && block.signature !== signatureOf(request, index, block.thinking)) {
        return `${place}: Invalid \`signature\` in \`thinking\` block. The block is bound to a different conversation.`
      }
      if (block.type === 'redacted_thinking' && block.data !== signatureOf(request, index, '')) {
        return `${place}: Invalid \`data\` in \`redacted_thinking\` block. The block is bound to a different conversation.`
      }
    }
  }
  return undefined
}
