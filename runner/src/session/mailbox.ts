/** An unbounded queue with one taker. What arrives is bounded by its senders: effects, commands and pauses of one session. */
export class Mailbox<T> {
  readonly #items: T[] = []
  #wake: (() => void) | undefined

  post(item: T): void {
    this.#items.push(item)
    this.#wake?.()
  }

  /** Takes out, in order, what has come and is wanted; the rest stays. */
  drain<W extends T>(isWanted: (item: T) => item is W): W[] {
    const wanted = this.#items.filter(isWanted)
    const rest = this.#items.filter((item) => !isWanted(item))
    this.#items.splice(0, this.#items.length, ...rest)
    return wanted
  }

  async take(): Promise<T> {
    for (;;) {
      if (this.#items.length > 0) return this.#items.shift() as T
      await new Promise<void>((resolve) => (this.#wake = resolve))
      this.#wake = undefined
    }
  }
}
