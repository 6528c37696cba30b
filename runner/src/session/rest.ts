/** How long a session has rested: nothing happened that it did not bring about itself. */
export class Rest {
  readonly #after_ms: number
  readonly #due: () => void
  readonly #isCrowded: () => boolean
  #since: number | undefined
  #hurried = false
  #timer: ReturnType<typeof setTimeout> | undefined

  /** `due` is called when it may be worth to look again. `isCrowded`: others wait for its place, so any rest is long enough. */
  constructor(after_ms: number, due: () => void, isCrowded: () => boolean = () => false) {
    this.#after_ms = after_ms
    this.#due = due
    this.#isCrowded = isCrowded
  }

  /** When the rest began, on the monotonic clock; undefined: it does not rest. */
  get since(): number | undefined {
    return this.#since
  }

  /** Something happened: the rest begins anew. */
  disturb(): void {
    this.#since = undefined
    this.#hurried = false
  }

  /** Has it rested long enough? If not, `due` will be called when it has. */
  isOver(): boolean {
    const now = performance.now()
    this.#since ??= now
    const left_ms = this.#since + this.#after_ms - now
    if (left_ms <= 0 || this.#hurried || this.#isCrowded()) return true
    this.wakeIn(left_ms)
    return false
  }

  /** Its place is needed: a rest that has begun is over. */
  hurry(): void {
    if (this.#since === undefined) return
    this.#hurried = true
    this.#due()
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
