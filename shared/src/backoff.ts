/**
 * Waiting times between attempts: exponential with full jitter, capped, so that a laptop that is shut but awake knocks twice a
 * minute and not all night long (F9). A connection that opens and dies at once does not reset it; call `settle` when it held.
 */
export class Backoff {
  #attempt = 0
  readonly #base_ms: number
  readonly #cap_ms: number
  readonly #random: () => number

  constructor({ base_ms = 300, cap_ms = 30_000, random = Math.random } = {}) {
    this.#base_ms = base_ms
    this.#cap_ms = cap_ms
    this.#random = random
  }

  get attempt(): number {
    return this.#attempt
  }

  /** Milliseconds until the next attempt: between half and all of the present step. */
  next(): number {
    const step = Math.min(this.#cap_ms, this.#base_ms * 2 ** Math.min(this.#attempt, 16))
    this.#attempt++
    return Math.round(step * (0.5 + this.#random() / 2))
  }

  settle(): void {
    this.#attempt = 0
  }
}

/** How often an effect may be started before a person is asked (F27). */
export const ATTEMPTS_MAX = 5
