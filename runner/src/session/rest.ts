/** How long a session has rested: nothing happened that it did not bring about itself. */
export class Rest {
  readonly #after_ms: number
  readonly #due: () => void
  #until: number | undefined
  #timer: ReturnType<typeof setTimeout> | undefined

  /** `due` is called when it may be worth to look again. */
  constructor(after_ms: number, due: () => void) {
    this.#after_ms = after_ms
    this.#due = due
  }

  /** Something happened: the rest begins anew. */
  disturb(): void {
    this.#until = undefined
  }

  /** Has it rested long enough? If not, `due` will be called when it has. */
  isOver(): boolean {
    const now = performance.now()
    this.#until ??= now + this.#after_ms
    if (now >= this.#until) return true
    this.wakeIn(this.#until - now)
    return false
  }

  wakeIn(ms: number): void {
    this.pause()
    this.#timer = setTimeout(this.#due, ms)
  }

  /** Calls nothing until it is asked again. */
  pause(): void {
    clearTimeout(this.#timer)
  }
}
