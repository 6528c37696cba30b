/** Errors as the agent tells them: to the model as a result, to people as an event with what to do. */
import { EffectFailed, emit, type Message } from 'baton'
import { stringOf, type Block } from './coder-blocks.ts'

/** What to do, by code; the words of shared/src/errors.ts, from which a guest takes only types. */
export const TODO: { readonly [code: string]: string } = {
  'model-busy': 'Wait a moment, then try again; or choose another model.',
  'model-unreachable': 'Check the connection of this runner, then try again.',
  'model-key': 'Set a valid ANTHROPIC_API_KEY where the runner starts, then try again.',
  'model-unknown': 'Choose another one (baton set SESSION --model MODEL, or in the app), then prompt again.',
  'context-full': 'Compact the conversation, or begin a new session.',
  'model-error': 'See the message; prompt again to retry.',
  'model-refused': 'Say it differently, or go on with something else.',
  'answer-cut': 'Ask for a smaller step, or raise max_tokens in the settings.',
  'agent-stuck': 'Help with the cause, or say how to go on.',
  'attempts-exhausted': 'Look at the cause, then prompt again.',
}

/** Tells people that the turn can't go on. The conversation is whole: the next prompt goes on from here. */
export function tellError(code: string, message: string): void {
  emit('error', { code, message, todo: TODO[code] ?? 'Prompt again to go on.' })
}

/** A failed call, in words for the model. */
export function explain({ code, message, printed }: EffectFailed): string {
  const words = WORDS[code] ?? `${code}: ${message}`
  return printed === undefined ? words : `${words}\nUntil then it had printed:\n${printed}`
}

const WORDS: { readonly [code: string]: string } = {
  stopped: 'Stopped by the user; it may have run in part.',
  interrupted: 'interrupted, may have run',
}

const SAME_MAX = 8

/** Notices when calls of a turn fail in the same way again and again (F75). */
export class Circles {
  readonly #failures = new Map<string, Map<string, number>>()

  /** Takes the calls of an answer with their results. Returns the error that was met too often. */
  met(calls: readonly Block[], results: Message['content']): string | undefined {
    for (const [index, call] of calls.entries()) {
      const name = stringOf(call['name'])
      const result = results[index]
      if (result?.['is_error'] !== true) {
        // It works now; what it failed with before is past.
        this.#failures.delete(name)
        continue
      }
      const words = JSON.stringify(result['content'])
      const counts = this.#failures.get(name) ?? new Map<string, number>()
      const count = (counts.get(words) ?? 0) + 1
      this.#failures.set(name, counts.set(words, count))
      if (count >= SAME_MAX) return `${name}: ${stringOf(result['content']).slice(0, 300)}`
    }
    return undefined
  }
}
