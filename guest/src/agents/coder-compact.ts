/**
 * Compaction: before the context is full the model sums up, and a new conversation begins with the summary, the to-do list and the
 * newest messages. The old one stays in the journal. Until the new one begins nothing is given up, so a stop or a failure
 * on the way loses nothing.
 */
import { EffectFailed, emit, type LlmResult, type Message } from 'baton'
import { shortened, stringOf, text, tokensOf, withoutThinking, wordsOf, type Block } from './coder-blocks.ts'
import type { Talk } from './coder-talk.ts'

const REQUEST = `Summarise the conversation so far for yourself: it goes on from your summary, without the older messages. Do not call
tools and do not answer anything now. Write down, in this order: what the user wants, in their words where they matter; what was
done and found out, with the paths, names, commands and numbers that are needed to go on; decisions and why; what is being done
right now; what is left.`

/** Said when the summary came to nothing: what was asked for before must not be obeyed with the next prompt. */
const WITHDRAWN = '[No summary is needed any more. Go on as before, and answer what follows.]'

const HEAD = 'The conversation became long and was compacted. Your summary of what was said before:'
/** Tokens of messages that are kept word for word. */
const KEPT_MAX = 30_000
const SHORT_CHARS = 1500

/**
 * Rejects with EffectFailed: `stopped`, or what the model failed with; then the conversation goes on as before. `todo`: the list as
 * text. `isFull`: the service refused the conversation for its length.
 */
export async function compact(talk: Talk, todo: string, { isFull = false } = {}): Promise<void> {
  const before = talk.tokens
  const kept = newest(plain(talk.messages), Math.min(talk.limit / 4, KEPT_MAX))
  const summary = await summaryOf(talk, isFull)
  const parts = [HEAD, summary, ...(todo === '' ? [] : [`Your to-do list:\n${todo}`])]
  talk.renew([{ role: 'user', content: [text(parts.join('\n\n'))] }, ...kept])
  const after = talk.tokens
  talk.compacted(after)
  const message = `The conversation was compacted: from about ${thousands(before)} to ${thousands(after)} tokens.`
  emit('compacted', { before, after, conversation: talk.name, message })
}

async function summaryOf(talk: Talk, isFull: boolean): Promise<string> {
  if (isFull) squeeze(talk)
  talk.addUser([text(REQUEST)])
  let answer: LlmResult
  try {
    answer = await talk.ask()
  } catch (error) {
    if (!isFull && error instanceof EffectFailed && error.code === 'context-full')
      return summaryOf(talk, true)
    talk.addUser([text(WITHDRAWN)])
    throw error
  }
  const words = answer.stop_reason === 'refusal' ? '' : wordsOf(answer.content)
  if (words !== '') return words
  talk.addUser([text(WITHDRAWN)])
  throw new EffectFailed({ code: 'model-error', message: 'The model gave no summary of the conversation.' })
}

/** Half of what there is: what can't be sent whole is summed up from its outlines and its newest part. */
function squeeze(talk: Talk): void {
  const room = Math.min(talk.tokens, talk.window) / 2
  const outlines = newest(shortened(plain(talk.messages), SHORT_CHARS), room)
  // A conversation begins with the user.
  talk.renew([{ role: 'user', content: [text('[Earlier messages were left out.]')] }, ...outlines])
}

/** Without thinking, and without requests for a summary that came to nothing. */
function plain(messages: readonly Message[]): Message[] {
  const isRequest = ({ type, ...block }: Block): boolean =>
    type === 'text' && (block['text'] === REQUEST || block['text'] === WITHDRAWN)
  return withoutThinking(messages).flatMap(({ role, content }) => {
    const said = content.filter((block) => !isRequest(block))
    return said.length === 0 ? [] : [{ role, content: said }]
  })
}

/**
 * The newest messages of at most so many tokens. A result never comes without its call (F51); the newest messages that belong
 * together are there in any case, shortened if they must be.
 */
export function newest(messages: readonly Message[], tokens: number): Message[] {
  const starts = [...messages.keys()].filter((index) => !messages[index]?.content.some(isResult))
  const first = starts.find((index) => tokensOf(messages.slice(index)) <= tokens)
  if (first !== undefined) return messages.slice(first)
  const last = messages.slice(starts.at(-1) ?? messages.length)
  const blocks = last.reduce((sum, { content }) => sum + content.length, 0)
  return shortened(last, Math.max(200, Math.floor((tokens * 3) / Math.max(1, blocks))))
}

const isResult = (block: Block): boolean =>
  block.type === 'tool_result' && stringOf(block['tool_use_id']) !== ''

const thousands = (tokens: number): string =>
  tokens < 1000 ? String(tokens) : `${Math.round(tokens / 1000)}k`
