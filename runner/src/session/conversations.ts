/**
 * The conversations of a session as this runner has seen them. The guest hands over only what is new; a runner that lacks
 * the beginning (after a restore) gets it by a resend. Nothing here is the truth: that is in guest memory.
 */
import { EMPTY_CONVERSATION, extendConversation } from '@baton/shared/digest.ts'
import { BatonError } from '@baton/shared/errors.ts'
import type { LlmInput, Message } from '@baton/shared/guest.ts'

export class Conversations {
  readonly #known = new Map<string, { digest: string; messages: Message[] }>()

  /**
   * The whole conversation of a request, or undefined when its prefix is not known here. Throws BatonError `bad-input` when
   * what was handed over does not have the digest that it claims.
   */
  extend(input: LlmInput): Message[] | undefined {
    const asked = this.#known.get(input.conversation)
    // The same request once more.
    if (asked?.digest === input.digest) return asked.messages
    const known = input.prior === 0 ? { digest: EMPTY_CONVERSATION, messages: [] } : asked
    if (!known || known.digest !== input.follows || known.messages.length !== input.prior) return undefined
    const messages = [...known.messages, ...input.add]
    const digest = input.add.reduce(extendConversation, known.digest)
    if (digest !== input.digest)
      throw new BatonError('bad-input', '(the conversation does not have its digest)')
    this.#known.set(input.conversation, { digest, messages })
    return messages
  }
}
