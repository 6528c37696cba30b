/** Append-only conversations; a request hands over only what the runner has not seen. */
import type { LlmInput, LlmResult, Message } from '@baton/shared/guest.ts'
import { ask, askAgainBy, blockFor, outcomeOf } from './effects.ts'
import { host } from './host.ts'

/** `tools`: names of tools from the start message; `own_tools`: those that the agent performs itself. */
export type LlmOptions = Pick<LlmInput, 'system' | 'own_tools' | 'model' | 'effort' | 'max_tokens'> &
  Partial<Pick<LlmInput, 'tools'>>

/** A conversation with the model, kept in guest memory. Messages can be added, never changed. */
export class Conversation {
  readonly name: string
  readonly #messages: Message[] = []
  /** The digest of the first n messages, for every n. */
  readonly #digests: string[] = []
  #handedOver = 0

  constructor(name: string) {
    this.name = name
    this.#digests.push(host().sha256(''))
  }

  get messages(): readonly Message[] {
    return this.#messages
  }

  get digest(): string {
    return this.#digests[this.#messages.length] ?? ''
  }

  append(message: Message): void {
    this.#digests.push(host().sha256(`${this.digest}\n${JSON.stringify(message)}`))
    this.#messages.push(message)
  }

  /** Asks for the model's answer; returns the effect's number. */
  request(options: LlmOptions): number {
    const input = (prior: number): LlmInput => ({
      conversation: this.name,
      prior,
      follows: this.#digests[prior] ?? '',
      add: this.#messages.slice(prior, length),
      digest,
      ...{ ...options, tools: options.tools ?? [] },
    })
    const { length } = this.#messages
    const { digest } = this
    const id = ask('llm', input(this.#handedOver))
    this.#handedOver = length
    askAgainBy(id, () => ({ id, kind: 'llm', input: input(0) }))
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
