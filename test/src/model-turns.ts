/**
 * What a scripted model answers. A script is a list of turns, or a function. A list is read by place in the conversation: the
 * request with k assistant messages gets turn k, so that a request which is asked again gets the same answer again, and
 * several sessions can share one server.
 */
import { createHash } from 'node:crypto'
import type {
  ContentBlock,
  Message,
  RawContentBlockDelta,
  RawMessageStreamEvent,
  StopReason,
} from '@anthropic-ai/sdk/resources/messages'
import type { Json } from '@baton/shared/guest.ts'
import type { MessagesRequest } from './model-rules.ts'
import { signatureOf } from './model-thinking.ts'

export type ErrorType =
  | 'invalid_request_error'
  | 'authentication_error'
  | 'permission_error'
  | 'not_found_error'
  | 'rate_limit_error'
  | 'api_error'
  | 'overloaded_error'

export interface TokenCounts {
  input_tokens?: number
  output_tokens?: number
  cache_read_input_tokens?: number
  cache_creation_input_tokens?: number
}

export type Part =
  /** A text block; one delta a chunk. */
  | { text: string[] }
  /** A tool_use block. */
  | { tool: string; input: { [key: string]: Json } }
  /** The same, whose input is this text, JSON or not. */
  | { tool: string; raw: string }
  /** A block of thinking, signed for this place in this conversation. */
  | { thinking: string }
  /** The same, unreadable. */
  | { redacted: true }
  /** A call of a tool that the service runs itself. */
  | { search: string }
  /** What is told of the tokens, instead of counts made from the length. */
  | { tokens: TokenCounts }
  /** Nothing more is sent until the test opens the gate of this name; first of all parts: not even the headers. */
  | { hold: string }
  /** The connection breaks here. */
  | { cut: true }
  /** An `error` event in the middle of the stream, as the API sends when it is overloaded. */
  | { fail: ErrorType }
  /** Ends the message early with this reason. */
  | { stop: 'max_tokens' | 'refusal' | 'pause_turn' | 'model_context_window_exceeded' }

export type Turn =
  | Part[]
  /** An HTTP error instead of an answer. */
  | { status: number; message?: string; headers?: Record<string, string> }
  /** The n-th time that this very conversation is sent, the n-th of these; the last one from then on. */
  | { attempts: Turn[] }

/** `n` counts all requests from 1. */
export type Script = Turn[] | ((request: MessagesRequest, n: number) => Turn)

export const say = (...text: string[]): Part => ({ text })
export const call = (tool: string, input: { [key: string]: Json }): Part => ({ tool, input })
export const rawCall = (tool: string, raw: string): Part => ({ tool, raw })
export const think = (thinking: string): Part => ({ thinking })
export const redacted: Part = { redacted: true }
export const search = (query: string): Part => ({ search: query })
export const tokens = (counts: TokenCounts): Part => ({ tokens: counts })
export const stopFor = (stop: Extract<Part, { stop: string }>['stop']): Part => ({ stop })
export const hold = (name: string): Part => ({ hold: name })
export const cut: Part = { cut: true }
export const fail = (type: ErrorType): Part => ({ fail: type })
export const refuse = (status: number, message?: string): Turn => ({
  status,
  ...(message !== undefined && { message }),
})
export const attempts = (...turns: Turn[]): Turn => ({ attempts: turns })

/**
 * Which answer of a script comes next: how often the model has spoken, also before a compaction. Calls carry the number of their
 * answer in their id; a summary carries the number of answers before it, and names those without calls, since some are kept.
 */
export function turnIndex({ messages }: MessagesRequest): number {
  let turn = 0
  let kept = new Set<string>()
  for (const { role, content } of messages) {
    const text = JSON.stringify(content)
    const [, answers, names] = (role === 'user' && SUMMARY.exec(text)) || []
    if (answers !== undefined) {
      turn = Number(answers)
      kept = new Set(names?.trim().split(' '))
    }
    if (role !== 'assistant') continue
    const called = /"toolu_(\d+)_/.exec(text)?.[1]
    if (called !== undefined) turn = Math.max(turn, Number(called) + 1)
    else if (!kept.has(nameOf(text))) turn++
  }
  return turn
}

const SUMMARY = /Summary of (\d+) answers\.((?: [0-9a-f]{8})*)/

/** Does the agent want the conversation to be summed up? */
export function wantsSummary({ messages }: MessagesRequest): boolean {
  return /"Summari[sz]e the conversation/.test(JSON.stringify(messages.at(-1)))
}

/** A summary after which a script goes on where it was. An answer without calls must not be given twice, word for word. */
export function summaryTurn(request: MessagesRequest): Turn {
  const answers = request.messages.filter(({ role }) => role === 'assistant')
  const plain = answers.map(({ content }) => JSON.stringify(withoutThinking(content)))
  const names = plain.filter((text) => !text.includes('"toolu_')).map((text) => ` ${nameOf(text)}`)
  return [say(`Summary of ${turnIndex(request)} answers.${names.join('')}`)]
}

type Content = MessagesRequest['messages'][number]['content']

function withoutThinking(content: Content): Content {
  return typeof content === 'string' ? content : content.filter(({ type }) => !type.includes('thinking'))
}

function nameOf(text: string): string {
  const plain = JSON.stringify(JSON.parse(text), (key, value: unknown) =>
    key === 'cache_control' ? undefined : value,
  )
  return createHash('sha256').update(plain).digest('hex').slice(0, 8)
}

const ERROR_TYPES: Record<number, ErrorType> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
  529: 'overloaded_error',
}

/** The API's error body for a status. */
export function errorBody(status: number, message: string, request_id: string): Json {
  return { type: 'error', error: { type: ERROR_TYPES[status] ?? 'api_error', message }, request_id }
}

/** What is sent as one server-sent event, named by its type. */
export type Sent =
  RawMessageStreamEvent | { type: 'ping' } | { type: 'error'; error: { type: ErrorType; message: string } }

/** A thing to send, or to do between two. */
export type Step = { send: Sent } | { hold: string } | { cut: true }

const JSON_PIECE = 24

/**
 * The stream of one message, as the API sends it. Ids and token counts depend on the conversation alone, so that a moved and
 * an unmoved run can be compared byte by byte.
 */
export function* messageSteps(parts: Part[], request: MessagesRequest): Generator<Step> {
  const turn = turnIndex(request)
  const counts: TokenCounts = Object.assign({}, ...parts.map((part) => ('tokens' in part ? part.tokens : {})))
  let index = 0
  let output = 0
  let started = false
  let reason: StopReason = parts.some((part) => 'tool' in part) ? 'tool_use' : 'end_turn'

  for (const part of parts) {
    if ('tokens' in part) continue
    if ('hold' in part) {
      yield part
      continue
    }
    if (!started) {
      started = true
      yield { send: { type: 'message_start', message: emptyMessage(request, turn, counts) } }
      yield { send: { type: 'ping' } }
    }
    if ('cut' in part) {
      yield part
      return
    }
    if ('fail' in part) {
      yield { send: { type: 'error', error: { type: part.fail, message: 'Scripted failure' } } }
      return
    }
    if ('stop' in part) {
      reason = part.stop
      break
    }
    const { block, deltas } = piecesOf(part, request, `${turn}_${index}`)
    yield { send: { type: 'content_block_start', index, content_block: block } }
    for (const delta of deltas) {
      output++
      yield { send: { type: 'content_block_delta', index, delta } }
    }
    yield { send: { type: 'content_block_stop', index } }
    index++
  }
  if (!started) yield { send: { type: 'message_start', message: emptyMessage(request, turn, counts) } }
  yield {
    send: {
      type: 'message_delta',
      delta: { stop_reason: reason, stop_sequence: null, stop_details: null, container: null },
      usage: {
        input_tokens: null,
        output_tokens: counts.output_tokens ?? Math.max(1, output),
        cache_creation_input_tokens: null,
        cache_read_input_tokens: null,
        output_tokens_details: null,
        server_tool_use: null,
      },
    },
  }
  yield { send: { type: 'message_stop' } }
}

interface Pieces {
  block: ContentBlock
  deltas: RawContentBlockDelta[]
}

type Said = Exclude<
  Part,
  { hold: string } | { cut: true } | { fail: ErrorType } | { stop: string } | { tokens: TokenCounts }
>

/** `place`: tells the block from every other one of the conversation. */
function piecesOf(part: Said, request: MessagesRequest, place: string): Pieces {
  if ('text' in part) {
    return {
      block: { type: 'text', text: '', citations: null },
      deltas: part.text.map((text) => ({ type: 'text_delta', text })),
    }
  }
  if ('thinking' in part) {
    return {
      block: { type: 'thinking', thinking: '', signature: '' },
      deltas: [
        { type: 'thinking_delta', thinking: part.thinking },
        { type: 'signature_delta', signature: signatureOf(request, request.messages.length, part.thinking) },
      ],
    }
  }
  if ('redacted' in part) {
    return {
      block: { type: 'redacted_thinking', data: signatureOf(request, request.messages.length, '') },
      deltas: [],
    }
  }
  const caller = { type: 'direct' } as const
  if ('search' in part) {
    const id = `srvtoolu_${place}`
    const block = { type: 'server_tool_use', id, name: 'web_search', input: {}, caller } as const
    return { block, deltas: inputDeltas(JSON.stringify({ query: part.search })) }
  }
  const block = { type: 'tool_use', id: `toolu_${place}`, name: part.tool, input: {}, caller } as const
  return { block, deltas: inputDeltas('raw' in part ? part.raw : JSON.stringify(part.input)) }
}

function inputDeltas(json: string): RawContentBlockDelta[] {
  // By code points: half a surrogate pair must not travel alone.
  const characters = Array.from(json)
  const deltas: RawContentBlockDelta[] = [{ type: 'input_json_delta', partial_json: '' }]
  for (let at = 0; at < characters.length; at += JSON_PIECE) {
    deltas.push({ type: 'input_json_delta', partial_json: characters.slice(at, at + JSON_PIECE).join('') })
  }
  return deltas
}

function emptyMessage(request: MessagesRequest, turn: number, counts: TokenCounts): Message {
  return {
    id: `msg_${turn}`,
    type: 'message',
    role: 'assistant',
    model: request.model,
    content: [],
    container: null,
    diagnostics: null,
    stop_reason: null,
    stop_sequence: null,
    stop_details: null,
    usage: {
      input_tokens: counts.input_tokens ?? Math.ceil(JSON.stringify(request.messages).length / 4),
      output_tokens: 1,
      output_tokens_details: null,
      cache_creation: null,
      cache_creation_input_tokens: counts.cache_creation_input_tokens ?? 0,
      cache_read_input_tokens: counts.cache_read_input_tokens ?? 0,
      inference_geo: null,
      server_tool_use: null,
      service_tier: 'standard',
      speed: null,
    },
  }
}
