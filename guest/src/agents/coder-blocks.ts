/** Blocks of a conversation: how they are made, measured, shortened. */
import type { ImageRef, Json, Message, PromptResult } from 'baton'

export type Block = Message['content'][number]

export const text = (words: string): Block => ({ type: 'text', text: words })

export const stringOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '')

export const callsOf = (content: Message['content']): Block[] =>
  content.filter(({ type }) => type === 'tool_use')

/** The text of an answer. */
export const wordsOf = (content: Message['content']): string =>
  content
    .flatMap((block) => (block.type === 'text' ? [stringOf(block['text'])] : []))
    .join('\n\n')
    .trim()

const picture = ({ blob, media_type }: ImageRef): Block => ({
  type: 'image',
  source: { type: 'blob', blob, media_type },
})

/** What a person said, pictures first. */
export function blocksOf({ text: words, images = [] }: PromptResult): Block[] {
  // The API refuses a blank text.
  const said = words.trim() === '' ? [] : [text(words)]
  const blocks = [...images.map(picture), ...said]
  return blocks.length === 0 ? [text('(an empty message)')] : blocks
}

/** The answer to a call of the model. */
export function resultOf(call: Block, words: string, isError: boolean, images: ImageRef[] = []): Block {
  const said = words.trim() === '' ? '(no output)' : words
  return {
    type: 'tool_result',
    tool_use_id: stringOf(call['id']),
    content: images.length === 0 ? said : [text(said), ...images.map(picture)],
    ...(isError && { is_error: true }),
  }
}

/** Answers for calls at the end of a conversation that get none in what follows. */
export function unanswered(messages: readonly Message[], next: Message['content']): Block[] {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return []
  const answered = new Set(next.map((block) => block['tool_use_id']))
  const open = callsOf(last.content).filter((call) => !answered.has(stringOf(call['id'])))
  return open.map((call) => resultOf(call, 'Not run: the turn ended before.', true))
}

const CHARS_PER_TOKEN = 3.5
const IMAGE_TOKENS = 1600

/** About how many tokens these are. */
export function tokensOf(messages: readonly Message[]): number {
  if (messages.length === 0) return 0
  let pictures = 0
  const chars = JSON.stringify(messages, (_, value: unknown) => {
    if (!isPicture(value)) return value
    pictures++
    return null
  }).length
  return Math.ceil(chars / CHARS_PER_TOKEN) + pictures * IMAGE_TOKENS
}

function isPicture(value: unknown): boolean {
  return typeof value === 'object' && value !== null && 'type' in value && value.type === 'image'
}

/** Thinking is bound to all that stood before it; where that changes it must go. */
export function withoutThinking(messages: readonly Message[]): Message[] {
  return messages.flatMap(({ role, content }) => {
    const kept = content.filter(({ type }) => type !== 'thinking' && type !== 'redacted_thinking')
    return kept.length === 0 ? [] : [{ role, content: kept }]
  })
}

/** The same messages with texts and results of at most so many characters, and without pictures. */
export function shortened(messages: readonly Message[], chars: number): Message[] {
  return messages.map(({ role, content }) => ({
    role,
    content: content.map((block) => shortBlock(block, chars)),
  }))
}

function shortBlock(block: Block, chars: number): Block {
  if (block.type === 'image') return text('[a picture was left out]')
  if (block.type === 'text') return { ...block, text: cut(stringOf(block['text']), chars) }
  if (block.type !== 'tool_result') return block
  const { content } = block
  const words = Array.isArray(content) ? wordsOf(content as Block[]) : stringOf(content)
  return { ...block, content: cut(words === '' ? '(no output)' : words, chars) }
}

/** Beginning and end of a text. */
export function cut(words: string, chars: number): string {
  if (words.length <= chars) return words
  const half = Math.floor(chars / 2)
  return `${words.slice(0, half)}\n[… left out …]\n${words.slice(-half)}`
}
