/**
 * Turns at the disk and the network when many sessions leave at once: few at a time, the most urgent first, so that the first
 * ones are safe even when there is not time for all.
 */
import type { Live } from './live.ts'

/** Smaller is more urgent. */
export type Urgency = 0 | 1 | 2 | 3

/** What is at work comes before what rests, and what the relay has no files of before what it has. */
export function urgencyOf(live: Live): Urgency {
  const { open, queue, checkpoint } = live.state
  const isAtWork =
    live.pause.state === 'interrupted' ||
    queue.length > 0 ||
    live.carried.length > 0 ||
    Array.from(open.values()).some(({ intent }) => intent.kind === 'llm' || intent.kind === 'tool')
  if (isAtWork) return checkpoint ? 1 : 0
  return checkpoint ? 3 : 2
}

export class SavingTurns {
  readonly #max: number
  readonly #waiting: { urgency: Urgency; start: () => void }[] = []
  #running = 0
  #isDue = false

  constructor(max: number) {
    this.#max = max
  }

  /** Does the work when it is its turn. Among those that ask at the same time, the most urgent begins. */
  async take<T>(urgency: Urgency, work: () => Promise<T>): Promise<T> {
    await new Promise<void>((start) => {
      const after = this.#waiting.findIndex((other) => other.urgency > urgency)
      this.#waiting.splice(after === -1 ? this.#waiting.length : after, 0, { urgency, start })
      this.#startSoon()
    })
    try {
      return await work()
    } finally {
      this.#running--
      this.#startSoon()
    }
  }

  /** Not at once: all that leave for the same reason ask within the same moment. */
  #startSoon(): void {
    if (this.#isDue) return
    this.#isDue = true
    setImmediate(() => {
      this.#isDue = false
      while (this.#running < this.#max) {
        const next = this.#waiting.shift()
        if (!next) return
        this.#running++
        next.start()
      }
    })
  }
}
