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

/** Those that have not asked by then have something else to wait for, e.g. a tool. */
const GATHER_MS = 100

export class SavingTurns {
  readonly #max: number
  readonly #waiting: { urgency: Urgency; start: () => void }[] = []
  /** How many have yet to ask before the first may begin. */
  #expected: number
  #gathering: ReturnType<typeof setTimeout> | undefined
  #running = 0

  /** At most `max` at a time. The first begin when all of the `expected` have asked, or a moment after one did. */
  constructor(max: number, expected: number) {
    this.#max = max
    this.#expected = expected
  }

  /** Does the work when it is its turn. */
  async take<T>(urgency: Urgency, work: () => Promise<T>): Promise<T> {
    await new Promise<void>((start) => {
      const after = this.#waiting.findIndex((other) => other.urgency > urgency)
      this.#waiting.splice(after === -1 ? this.#waiting.length : after, 0, { urgency, start })
      this.#expected--
      this.#gathering ??= setTimeout(() => {
        this.#expected = 0
        this.#begin()
      }, GATHER_MS)
      this.#begin()
    })
    try {
      return await work()
    } finally {
      this.#running--
      this.#begin()
    }
  }

  #begin(): void {
    if (this.#expected > 0) return
    clearTimeout(this.#gathering)
    while (this.#running < this.#max) {
      const next = this.#waiting.shift()
      if (!next) return
      this.#running++
      next.start()
    }
  }
}
