/** Append-only conversations; a request hands over only what the runner has not seen. */
import type { LlmInput, LlmResult, Message } from '@baton/shared/guest.ts'
import { ask, askAgainBy, blockFor, outcomeOf } from './effects.ts'
import { host } from './host.ts'

/** `tools`: names of tools from the start message; `own_tools`: those that the agent performs itself. */
export type LlmOptions = Pick<LlmInput, 'system' | 'own_tools' | 'model' | 'effort' | 'max_tokens'> &
  Partial<Pick<LlmInput, 'tools'>>

/**
 * A conversation with the model, kept in guest memory. Messages can be added, never changed. They are kept as JSON: a text takes a
 * fraction of the memory that its objects would, and snapshots carry all of it.
 */
export class Conversation {
  readonly name: string
  readonly #texts: string[] = []
  #digest = host().sha256('')
  #handedOver = { length: 0, digest: this.#digest }

  constructor(name: string) {
    this.name = name
  }

  /** How many messages it has. */
  get length(): number {
    return this.#texts.length
  }

  /** All messages, read anew: a copy. */
  get messages(): readonly Message[] {
    return this.since(0)
  }

  get digest(): string {
    return this.#digest
  }

  /** The messages after the first so many. Below zero: that many at the end. */
  since(length: number): Message[] {
    return this.#texts.slice(length).map((text) => JSON.parse(text) as Message)
  }

  append(message: Message): void {
    const text = JSON.stringify(message)
    this.#digest = host().sha256(`${this.#digest}\n${text}`)
    this.#texts.push(text)
  }

  /** Asks for the model's answer; returns the effect's number. */
  request(options: LlmOptions): number {
    const { length, digest } = this
    const input = (prior: number, follows: string): LlmInput => ({
      conversation: this.name,
      prior,
      follows,
      add: this.#texts.slice(prior, length).map((text) => JSON.parse(text) as Message),
      digest,
      ...{ ...options, tools: options.tools ?? [] },
    })
    const id = ask('llm', input(this.#handedOver.length, this.#handedOver.digest))
    this.#handedOver = { length, digest }
    askAgainBy(id, () => ({ id, kind: 'llm', input: input(0, host().sha256('')) }))
    return id
  }
}

let unnamed = 0

/** A new conversation. The name tells several of one agent apart. */
export function conversation(name?: string): Conversation {
  return new Conversation(name ?? `conversation-${++unnamed}`)
}

/** Asks the model to continue a conversation. Does not append the answer. */
export function llm(to: Conversation, options: LlmOptions): Promise<LlmResult> {
  return outcomeOf(to.request(options))
}
llm.sync = (to: Conversation, options: LlmOptions): LlmResult => blockFor(to.request(options))

export function resetConversations(): void {
  unnamed = 0
}
