/** How long a session has rested: nothing happened that it did not bring about itself. */
/** What still runs in the background keeps a session from resting no longer than this. */
const HELD_MS = 1_800_000
const LOOK_AGAIN_MS = 2_000

export class Rest {
  readonly #after_ms: number
  readonly #due: () => void
  readonly #isCrowded: () => boolean
  #since: number | undefined
  /** Since when nothing happened while something runs in the background. */
  #heldSince: number | undefined
  readonly #held_ms: number
  #hurried = false
  #timer: ReturnType<typeof setTimeout> | undefined

  /** `due` is called when it may be worth to look again. `isCrowded`: others wait for its place, so any rest is long enough. */
  constructor(
    after_ms: number,
    due: () => void,
    isCrowded: () => boolean = () => false,
    held_ms: number = HELD_MS,
  ) {
    this.#after_ms = after_ms
    this.#due = due
    this.#isCrowded = isCrowded
    this.#held_ms = held_ms
  }

  /** When the rest began, on the monotonic clock; undefined: it does not rest. */
  get since(): number | undefined {
    return this.#since
  }

  /** It would be over, but for what runs in the background. */
  get isHeld(): boolean {
    return this.#heldSince !== undefined && performance.now() - this.#heldSince >= this.#after_ms
  }

  /** Something happened: the rest begins anew. */
  disturb(): void {
    this.#since = undefined
    this.#heldSince = undefined
    this.#hurried = false
  }

  /** Has it rested long enough? If not, `due` will be called when it has. `runs`: something in the background does. */
  isOver(runs = false): boolean {
    const now = performance.now()
    if (!runs) this.#heldSince = undefined
    else {
      this.#heldSince ??= now
      const held_ms = this.#heldSince + this.#held_ms - now
      if (held_ms > 0) {
        this.#since = undefined
        // Nobody says when it has ended.
        this.wakeIn(Math.min(held_ms, LOOK_AGAIN_MS))
        return false
      }
    }
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
