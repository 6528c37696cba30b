/** An agent in this runtime, against a host of a few lines that keeps the conversation as a runner does. */
import { createHash } from 'node:crypto'
import { EMPTY_CONVERSATION, extendConversation } from '@baton/shared/digest.ts'
import type {
  EffectRequest,
  GuestMessage,
  Json,
  LlmInput,
  LlmResult,
  Message,
  Mode,
  StartMessage,
  ToolSpec,
} from '@baton/shared/guest.ts'
import { readRequest } from '@baton/test/model-rules.ts'
import { signatureOf } from '@baton/test/model-thinking.ts'
import { expect } from 'vitest'
import { runWith, type Main } from '../src/sdk/runtime.ts'

type Kind = EffectRequest['kind']
type Asked<K extends Kind> = Extract<EffectRequest, { kind: K }>
type Content = Message['content']

const spec = (name: string, access: ToolSpec['access']): ToolSpec => ({
  ...{ name, description: name, schema: { type: 'object' }, access },
  replay: access === 'read' ? 'safe' : 'never',
})
export const TOOLS: ToolSpec[] = [
  spec('read', 'read'),
  spec('grep', 'read'),
  spec('edit', 'edit'),
  spec('bash', 'run'),
]

export const say = (text: string): Content[number] => ({ type: 'text', text })
export const use = (id: string, name: string, input: { [key: string]: Json } = { id }): Content[number] => ({
  ...{ type: 'tool_use', id, name, input },
})

const PNG = 'iVBORw0KGgo='

export class Session {
  readonly asked: EffectRequest[] = []
  /** What the model was sent with the newest request, whole, and under which name. */
  conversation: Message[] = []
  name = ''
  /** Names of all conversations, in order. */
  readonly names: string[] = []
  ended: string | undefined
  readonly #deliver: (message: string) => void
  readonly #digests = new Map<string, string>()
  readonly #known = new Map<string, Message[]>()
  readonly #waiting: EffectRequest[] = []
  /** The newest request to the model. */
  #request: LlmInput | undefined
  #seen = 0
  #steer = 0

  constructor(main: Main, mode: Mode = 'full', change: Partial<StartMessage> = {}) {
    this.#deliver = runWith(
      {
        ask: (request) => void this.asked.push(JSON.parse(request) as EffectRequest),
        block: () => {
          throw new Error('no blocking here')
        },
        sha256: (value) => createHash('sha256').update(value).digest('hex'),
        end: (outcome) => (this.ended = outcome),
      },
      main,
    )
    this.send({
      ...{ type: 'start', seed: '0'.repeat(64), now: 0, mode, tools: TOOLS },
      ...{ about: { workspace: 'shop', branch: 'main' }, settings: { model: 'm' } },
      ...change,
    })
  }

  send(message: GuestMessage): void {
    this.#deliver(JSON.stringify(message))
  }

  /** Lets everything run that can, and reads what was asked for; checks the numbering. */
  async settle(): Promise<void> {
    for (let tries = 0; tries < 100; tries++) await Promise.resolve()
    while (this.#seen < this.asked.length) {
      const request = this.asked[this.#seen++]!
      expect(request.id).toBe(this.#seen)
      if (request.kind === 'emit') continue
      if (request.kind === 'llm') this.#extend(request.input)
      if (request.kind === 'prompt' && request.input.steer) this.#steer = request.id
      else this.#waiting.push(request)
    }
  }

  /** The oldest effect that waits, which must be of this kind; steering prompts aside. It no longer waits then. */
  async next<K extends Kind>(kind: K): Promise<Asked<K>> {
    await this.settle()
    const request = this.#waiting.shift()
    if (request === undefined) throw new Error(`no ${kind} was asked for; the agent ended with ${this.ended}`)
    expect(request.kind).toBe(kind)
    return request as Asked<K>
  }

  /** Any effect that waits, chosen by a number. It no longer waits then. */
  async any(number: number): Promise<EffectRequest | undefined> {
    await this.settle()
    return this.#waiting.splice(number % Math.max(1, this.#waiting.length), 1)[0]
  }

  /** Kinds (and names of tools) of all that waits. */
  async waiting(): Promise<string[]> {
    await this.settle()
    return this.#waiting.map(({ kind, input }) => ('name' in input ? `${kind} ${input.name}` : kind))
  }

  result(effect: number, result: Json): void {
    this.send({ type: 'outcome', effect, now: 1, result })
  }

  error(effect: number, code: string): void {
    this.send({ type: 'outcome', effect, now: 1, error: { code, message: `words of ${code}` } })
  }

  async answer<K extends Kind>(kind: K, result: Json): Promise<Asked<K>> {
    const request = await this.next(kind)
    this.result(request.id, result)
    return request
  }

  async fail(kind: Kind, code: string): Promise<void> {
    this.error((await this.next(kind)).id, code)
  }

  async prompt(text: string, more: { [key: string]: Json } = {}): Promise<void> {
    await this.answer('prompt', { text, command: 'c', ...more })
  }

  async steer(text: string): Promise<void> {
    await this.settle()
    expect(this.#steer).toBeGreaterThan(0)
    const effect = this.#steer
    this.#steer = 0
    this.result(effect, { text, command: 's' })
  }

  /** The same, if the agent listens. */
  async maySteer(text: string): Promise<boolean> {
    await this.settle()
    if (this.#steer === 0) return false
    await this.steer(text)
    return true
  }

  async stop(): Promise<void> {
    await this.settle()
    this.send({ type: 'stop', now: 2 })
    const open = this.#waiting.splice(0)
    for (const { id, kind } of open) if (kind !== 'prompt') this.error(id, 'stopped')
    this.#waiting.push(...open.filter(({ kind }) => kind === 'prompt'))
  }

  mode(mode: Mode): void {
    this.send({ type: 'mode', now: 3, mode })
  }

  /** The model's answer; it calls tools when there are calls in it. */
  model(content: Content, change: Partial<LlmResult> = {}): Promise<Asked<'llm'>> {
    const usage = { input_tokens: 1, output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0 }
    const stop_reason = content.some(({ type }) => type === 'tool_use') ? 'tool_use' : 'end_turn'
    const result: LlmResult = { content, stop_reason, model: 'm', usage, ...change }
    return this.answer('llm', result as unknown as Json)
  }

  /** A block of thinking, signed for the request that waits. */
  async thinking(words: string): Promise<Content[number]> {
    await this.settle()
    if (this.#request === undefined) throw new Error('the model was not asked')
    const parts = requestOf(this.#request, this.conversation)
    const signature = signatureOf(parts, this.conversation.length, words)
    return { type: 'thinking', thinking: words, signature }
  }

  emitted(type: string): { [key: string]: Json }[] {
    return this.asked.flatMap((request) =>
      request.kind === 'emit' && request.input.type === type
        ? [request.input.data as { [key: string]: Json }]
        : [],
    )
  }

  /** What the model was sent of a conversation so far. */
  of(name: string): Message[] {
    return this.#known.get(name) ?? []
  }

  /** The newest words to the model. */
  get last(): Content {
    return this.conversation.at(-1)?.content ?? []
  }

  #extend(input: LlmInput): void {
    this.#request = input
    this.name = input.conversation
    if (!this.names.includes(this.name)) this.names.push(this.name)
    this.conversation = this.of(this.name)
    expect(input.prior).toBe(this.conversation.length)
    const known = this.#digests.get(this.name) ?? EMPTY_CONVERSATION
    expect(input.follows).toBe(known)
    expect(input.add.reduce(extendConversation, known)).toBe(input.digest)
    this.#digests.set(this.name, input.digest)
    this.conversation = [...this.conversation, ...input.add]
    this.#known.set(this.name, this.conversation)
    // F51 and all else that the API demands.
    const body = Buffer.from(JSON.stringify(requestOf(input, this.conversation)))
    expect(readRequest(body)).not.toHaveProperty('broken')
  }
}

/** As a runner sends it. */
function requestOf(input: LlmInput, messages: Message[]) {
  const offered = TOOLS.filter(({ name }) => input.tools.includes(name))
  const tools = [...offered, ...(input.own_tools ?? [])].map(({ name, description, schema }) => ({
    ...{ name, description, input_schema: { ...schema, type: 'object' as const } },
  }))
  const withBytes = JSON.parse(
    JSON.stringify(messages, (_, value: unknown) =>
      typeof value === 'object' && value !== null && 'blob' in value && 'media_type' in value
        ? { type: 'base64', media_type: value.media_type, data: PNG }
        : value,
    ),
  ) as never
  return { model: 'm', max_tokens: 100, system: input.system, tools, messages: withBytes }
}
