import type { Message } from '@baton/shared/guest.ts'

/** What a message, or an answer of the model, says: its text blocks, joined. */
export function textOf({ content }: { content: Message['content'] }): string {
  return content.map(({ text }) => (typeof text === 'string' ? text : '')).join('')
}
