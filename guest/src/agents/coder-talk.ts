/**
 * The conversation with the model. It only grows: system prompt, tools and what was said stay as they are, because prompt caches and
 * thinking are bound to them. Where something has to change (plan mode begins or ends, compaction) it goes on as a new
 * conversation, without thinking.
 */
import {
  conversation,
  llm,
  start,
  type Conversation,
  type Effort,
  type LlmOptions,
  type LlmResult,
  type Message,
} from 'baton'
import { tokensOf, unanswered, withoutThinking, type Block } from './coder-blocks.ts'
import { systemPrompt } from './coder-prompt.ts'
import type { OwnTools } from './coder-tools.ts'

const WINDOW = 200_000
/** Part of the window that may be used before the conversation is compacted; the rest is for answers. */
const FULL = 0.8
/** By how much a compacted conversation grows at least before it is compacted again. */
const GROWTH = 1.25
const EFFORTS: readonly unknown[] = ['low', 'medium', 'high', 'xhigh', 'max'] satisfies Effort[]

type Frame = Pick<LlmOptions, 'system' | 'tools' | 'own_tools'>

export class Talk {
  readonly #own: OwnTools
  readonly #told: (result: LlmResult) => void
  #talk: Conversation = conversation('main')
  #count = 1
  #frame: { isPlan: boolean; frame: Frame } | undefined
  #window = WINDOW
  #compacted = 0
  /** What the service counted, and of how many messages. */
  #measured = { tokens: 0, messages: 0 }

  /** `told` is called with every answer. */
  constructor(own: OwnTools, told: (result: LlmResult) => void) {
    this.#own = own
    this.#told = told
  }

  get name(): string {
    return this.#talk.name
  }

  get messages(): readonly Message[] {
    return this.#talk.messages
  }

  /** How many messages there are. */
  get length(): number {
    return this.#talk.length
  }

  get window(): number {
    return this.#window
  }

  /** About how many tokens the next request has. */
  get tokens(): number {
    const { tokens, messages } = this.#measured
    const known = tokens > 0 ? tokens : Math.ceil(JSON.stringify(this.#currentFrame()).length / 4)
    return known + tokensOf(this.#talk.since(messages))
  }

  /** How many tokens it may have before it is compacted. */
  get limit(): number {
    const wanted = start().settings['compact_at']
    const usual = this.#window * FULL
    return typeof wanted === 'number' && wanted > 0 ? Math.min(wanted, usual) : usual
  }

  /** Should it be compacted? What a compaction could not make smaller is no reason for another one. */
  get isFull(): boolean {
    return this.tokens > Math.max(this.limit, this.#compacted * GROWTH)
  }

  /** It was compacted, to so many tokens. */
  compacted(tokens: number): void {
    this.#compacted = tokens
  }

  /** Adds what is said to the model. Two user messages in a row are allowed; calls without an answer are not. */
  addUser(content: Block[]): void {
    this.#talk.append({ role: 'user', content: [...unanswered(this.#talk.since(-1), content), ...content] })
  }

  addAnswer({ content, usage }: Pick<LlmResult, 'content' | 'usage'>): void {
    this.#talk.append({ role: 'assistant', content })
    const { input_tokens, cache_read_tokens, cache_write_tokens, output_tokens } = usage
    const tokens = input_tokens + cache_read_tokens + cache_write_tokens + output_tokens
    this.#measured = { tokens, messages: this.length }
  }

  /** Asks for the next answer; does not add it. Rejects with EffectFailed. */
  ask(): Promise<LlmResult> {
    const frame = this.#currentFrame()
    return this.#ask(this.#talk, frame)
  }

  /** Asks in a conversation of its own, which ends with the answer; this one stays as it is. Rejects with EffectFailed. */
  askApart(messages: readonly Message[]): Promise<LlmResult> {
    const frame = this.#currentFrame()
    return this.#ask(this.#begun('apart', messages), frame)
  }

  async #ask(talk: Conversation, frame: Frame): Promise<LlmResult> {
    const { model, effort, max_tokens } = start().settings
    const result = await llm(talk, {
      ...frame,
      ...(typeof model === 'string' && model !== '' && { model }),
      ...(EFFORTS.includes(effort) && { effort: effort as Effort }),
      ...(typeof max_tokens === 'number' && { max_tokens }),
    })
    this.#window = result.window ?? WINDOW
    this.#told(result)
    return result
  }

  /** Goes on as a new conversation with these messages. */
  renew(messages: readonly Message[]): void {
    this.#talk = this.#begun('main', messages)
    this.#measured = { tokens: 0, messages: 0 }
  }

  #begun(kind: 'main' | 'apart', messages: readonly Message[]): Conversation {
    const begun = conversation(`${kind}-${++this.#count}`)
    for (const message of withoutThinking(messages)) begun.append(message)
    return begun
  }

  #currentFrame(): Frame {
    const { about, mode, tools } = start()
    const isPlan = mode === 'plan'
    if (this.#frame?.isPlan === isPlan) return this.#frame.frame
    if (this.#frame !== undefined) this.renew(this.messages)
    const offered = isPlan ? tools.filter(({ access }) => access === 'read') : tools
    const frame = {
      system: systemPrompt(about, isPlan),
      tools: offered.map(({ name }) => name),
      own_tools: this.#own.specs(mode),
    }
    this.#frame = { isPlan, frame }
    return frame
  }
}
