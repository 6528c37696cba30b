/**
 * The conversations of a session as this runner has seen them. The guest hands over only what is new; a runner that lacks
 * the beginning (after a restore) gets it by a resend. Nothing here is the truth: that is in guest memory. So those that have not been
 * heard of for long (a compaction ended them, or the agent begins many) are forgotten.
 */
import { EMPTY_CONVERSATION, extendConversation } from '@baton/shared/digest.ts'
import { BatonError } from '@baton/shared/errors.ts'
import type { LlmInput, Message } from '@baton/shared/guest.ts'

/** Characters of JSON that are kept beside the conversation that was asked for last: more than that is worth a resend. */
const KEPT_CHARS = 1_000_000

interface Known {
  digest: string
  messages: Message[]
  chars: number
}

export class Conversations {
  /** The one asked for last stands last. */
  readonly #known = new Map<string, Known>()
  readonly #keptChars: number

  constructor(keptChars = KEPT_CHARS) {
    this.#keptChars = keptChars
  }

  /** Names of those that are known. */
  get names(): string[] {
    return [...this.#known.keys()]
  }

  /**
   * The whole conversation of a request, or undefined when its prefix is not known here. Throws BatonError `bad-input` when
   * what was handed over does not have the digest that it claims.
   */
  extend(input: LlmInput): Message[] | undefined {
    const asked = this.#known.get(input.conversation)
    // The same request once more.
    if (asked?.digest === input.digest) return asked.messages
    const known = input.prior === 0 ? { digest: EMPTY_CONVERSATION, messages: [], chars: 0 } : asked
    if (!known || known.digest !== input.follows || known.messages.length !== input.prior) return undefined
    const messages = [...known.messages, ...input.add]
    const digest = input.add.reduce(extendConversation, known.digest)
    if (digest !== input.digest)
      throw new BatonError('bad-input', '(the conversation does not have its digest)')
    const chars = known.chars + input.add.reduce((sum, message) => sum + JSON.stringify(message).length, 0)
    this.#known.delete(input.conversation)
    this.#known.set(input.conversation, { digest, messages, chars })
    this.#forget()
    return messages
  }

  /** Forgets what has waited longest, until the others take no more than is kept beside the newest. */
  #forget(): void {
    const others = [...this.#known].slice(0, -1)
    let chars = others.reduce((sum, [, known]) => sum + known.chars, 0)
    for (const [name, known] of others) {
      if (chars <= this.#keptChars) return
      this.#known.delete(name)
      chars -= known.chars
    }
  }
}
