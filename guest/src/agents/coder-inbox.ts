/** What people want of the agent: prompts that begin a turn, prompts that steer the one under way, a compaction. */
import { onCompact, onStop, prompt, takeCompact, type PromptResult } from 'baton'

export class Prompts {
  readonly #steering: PromptResult[] = []
  readonly #stopped: PromptResult[] = []
  readonly #waiting: PromptResult[] = []
  #isListening = false
  #isAsking = false
  #wake: (() => void) | undefined

  constructor() {
    onCompact(() => this.#wake?.())
    onStop(() => this.#stopped.push(...this.#steering.splice(0)))
  }

  /** From now on steering prompts are heard, until the session ends. */
  listen(): void {
    if (this.#isListening) return
    this.#isListening = true
    void prompt({ steer: true }).then((given) => {
      this.#isListening = false
      this.#heard(given, true)
      this.listen()
    })
  }

  /** What was said meanwhile for the turn under way. */
  takeSteering(): PromptResult[] {
    return this.#steering.splice(0)
  }

  /** Takes up a prompt. One that steers may also answer the wait for the next turn, which stays open when a turn begins otherwise. */
  #heard(given: PromptResult, isSteering: boolean): void {
    if (isSteering) this.#steering.push(given)
    else this.#waiting.push(given)
    this.#wake?.()
  }

  /** What was said for a turn before it was stopped. */
  takeStopped(): PromptResult[] {
    return this.#stopped.splice(0)
  }

  /** Waits for what begins a turn: also a steering prompt that came when the last one had just ended. */
  async next(): Promise<PromptResult | 'compact'> {
    for (;;) {
      const given = this.#steering.shift() ?? this.#waiting.shift()
      if (given) return given
      if (takeCompact()) return 'compact'
      this.#ask()
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  #ask(): void {
    if (this.#isAsking) return
    this.#isAsking = true
    void prompt().then((given) => {
      this.#isAsking = false
      this.#heard(given, given.steer === true)
    })
  }
}
