/**
 * Compaction: before the context is full the model sums up, and a new conversation begins with the summary, the to-do list and the
 * newest messages. The old one stays in the journal. Until the new one begins nothing is given up, so a stop or a failure
 * on the way loses nothing.
 */
import { EffectFailed, emit, type LlmResult, type Message } from 'baton'
import {
  callsOf,
  cut,
  shortened,
  stringOf,
  text,
  tokensOf,
  withoutThinking,
  wordsOf,
  type Block,
} from './coder-blocks.ts'
import type { Talk } from './coder-talk.ts'

const REQUEST = `Summarise the conversation so far for yourself: it goes on from your summary, without the older messages. Do not call
tools and do not answer anything now. Write down, in this order: what the user wants, in their words where they matter; what was
done and found out, with the paths, names, commands and numbers that are needed to go on; decisions and why; what is being done
right now; what is left.`

/** Said when the answer was no summary. */
const AGAIN = `That was no summary: a tool was called, or the answer was cut off. Nothing was run. Write the summary now, as plain text of
at most 600 words.`

/** Said when the summary came to nothing: what was asked for before must not be obeyed with the next prompt. */
const WITHDRAWN = '[No summary is needed any more. Go on as before, and answer what follows.]'

const SAID: ReadonlySet<unknown> = new Set([REQUEST, AGAIN, WITHDRAWN])

const HEAD = 'The conversation became long and was compacted. Your summary of what was said before:'
/** Tokens of messages that are kept word for word. */
const KEPT_MAX = 30_000
const SHORT_CHARS = 1500
/** How often a summary is asked for before the conversation stays as it is. */
const TRIES_MAX = 2
/** How often what is too long to be summed up is halved. */
const HALVES_MAX = 4

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

/** In the conversation itself, whose beginning the service has cached; where that is too long to be sent, apart. */
async function summaryOf(talk: Talk, isFull: boolean): Promise<string> {
  if (isFull) return summaryApart(talk)
  let request = REQUEST
  try {
    for (let tries = 1; ; tries++) {
      talk.addUser([text(request)])
      const answer = await talk.ask()
      const summary = wordsIn(answer)
      if (summary !== undefined) return summary
      if (tries === TRIES_MAX) throw noSummary()
      talk.addAnswer(answer)
      request = AGAIN
    }
  } catch (error) {
    talk.addUser([text(WITHDRAWN)])
    if (isTooLong(error)) return summaryApart(talk)
    throw error
  }
}

/**
 * Of what can't be sent whole: of its outlines and its newest part. Half of it, and less where that is too much as well. It is asked for
 * in a conversation of its own, so that whatever comes of it the one with the person is as it was.
 */
async function summaryApart(talk: Talk): Promise<string> {
  let room = Math.min(talk.tokens, talk.window) / 2
  let halves = 1
  let request = REQUEST
  for (let tries = 1; ;) {
    const asked: Message = { role: 'user', content: [text(request)] }
    try {
      const summary = wordsIn(await talk.askApart([...outlineOf(plain(talk.messages), room), asked]))
      if (summary !== undefined) return summary
      if (tries++ === TRIES_MAX) throw noSummary()
      request = `${REQUEST}\n\n${AGAIN}`
    } catch (error) {
      if (!isTooLong(error) || halves++ === HALVES_MAX) throw error
      room /= 2
    }
  }
}

/** The newest messages, shortened; of the others what the user said in them: the task stands at the beginning. */
function outlineOf(messages: readonly Message[], tokens: number): Message[] {
  const outlines = newest(shortened(messages, SHORT_CHARS), (tokens * 3) / 4)
  const left = messages.slice(0, messages.length - outlines.length)
  const said = left.flatMap(({ role, content }) => (role === 'user' ? [wordsOf(content)] : []))
  const words = said.filter((part) => part !== '').join('\n\n')
  // A conversation begins with the user.
  const head = `[Earlier messages were left out.${words === '' ? ']' : ` The user said in them:]\n${cut(words, tokens / 2)}`}`
  return [{ role: 'user', content: [text(head)] }, ...outlines]
}

const isTooLong = (error: unknown): boolean => error instanceof EffectFailed && error.code === 'context-full'

/** A whole summary; what comes with a tool call, or was cut off, would leave out most of what it stands for. Throws EffectFailed. */
function wordsIn({ stop_reason, content }: LlmResult): string | undefined {
  const words = wordsOf(content)
  if (stop_reason === 'refusal' || words === '') throw noSummary()
  const isWhole = stop_reason === 'end_turn' || stop_reason === 'stop_sequence'
  return isWhole && callsOf(content).length === 0 ? words : undefined
}

const noSummary = (): EffectFailed =>
  new EffectFailed({ code: 'model-error', message: 'The model gave no summary of the conversation.' })

/** Without thinking, and without requests for a summary that came to nothing. */
function plain(messages: readonly Message[]): Message[] {
  const isRequest = ({ type, ...block }: Block): boolean => type === 'text' && SAID.has(block['text'])
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
