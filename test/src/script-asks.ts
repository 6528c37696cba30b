/** Effect requests for programs of the script harness, and what comes back. */
import { callDigest, EMPTY_CONVERSATION, extendConversation } from '@baton/shared/digest.ts'
import type { EffectRequest, GuestMessage, Json, LlmResult, Message } from '@baton/shared/guest.ts'
import type { Program } from './script-harness.ts'

export const prompt = (id: number, steer = false): EffectRequest => ({
  ...{ id, kind: 'prompt', input: steer ? { steer } : {} },
})

export const tool = (
  id: number,
  name: string,
  input: Record<string, Json> = {},
  approval?: number,
): EffectRequest => ({
  id,
  kind: 'tool',
  input: { name, input, ...(approval === undefined ? {} : { approval }) },
})

export const approve = (id: number, name: string, input: Record<string, Json> = {}): EffectRequest => ({
  id,
  kind: 'approve',
  input: { name, input, digest: callDigest(name, input) },
})

export const emit = (id: number, data: Json): EffectRequest => ({
  id,
  kind: 'emit',
  input: { type: 'note', data },
})

/** A model request with a conversation of its own. */
export const llm = (id: number, ...add: Message[]): EffectRequest => ({
  id,
  kind: 'llm',
  input: {
    ...{ conversation: `talk-${id}`, prior: 0, follows: EMPTY_CONVERSATION, add, system: '', tools: [] },
    digest: add.reduce(extendConversation, EMPTY_CONVERSATION),
  },
})

export const said = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] })

/** The result of an outcome, `{error: code}` of a failed one, the type of any other message. */
export function resultOf(message: GuestMessage): Json {
  if (message.type !== 'outcome') return message.type
  return message.error ? { error: message.error.code } : (message.result ?? null)
}

/** The effect that has ended; 0: the message is about something else. */
export const effectOf = (message: GuestMessage): number => (message.type === 'outcome' ? message.effect : 0)

/** Collects `count` messages after some asks and tells what came, in order. */
export const collecting = (asks: EffectRequest[], count: number): Program =>
  function* () {
    let message = yield {}
    message = yield { ask: asks }
    const came: Json[] = []
    for (let i = 0; i < count; i++) {
      came.push([effectOf(message), resultOf(message)])
      if (i < count - 1) message = yield {}
    }
    yield { ask: [emit(100, came), prompt(101)] }
    return null
  }

/** What a model answers. */
export const answer = (text: string): LlmResult => ({
  content: [{ type: 'text', text }],
  stop_reason: 'end_turn',
  model: 'm',
  usage: { input_tokens: 1, output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0 },
})
