/**
 * The few threads of a process that all its guests share. A guest goes to the thread that holds least and stays there. A
 * thread that dies takes its guests with it; the next guest gets a new one.
 */
import { availableParallelism } from 'node:os'
import { Thread } from './thread.ts'

/** With one alone, a guest that was just told to stop would hold up those that have nothing to do with it. */
const threadsMin = 2
/** A process that ends sooner than this needs no second thread. */
const warmUpAfterMs = 200

export class Threads {
  readonly #max: number
  /** Living threads that guests may go to, and how many are there. */
  readonly #held = new Map<Thread, number>()
  #slicesBefore = 0
  #warming: ReturnType<typeof setTimeout> | undefined

  /** `max`: as many as there are cores, by default. */
  constructor(max = Math.max(threadsMin, availableParallelism())) {
    this.#max = max
  }

  get count(): number {
    return this.#living().length
  }

  /** Slices given so far, by threads that have ended too. */
  get slices(): number {
    return this.#living().reduce((sum, [thread]) => sum + thread.slices, this.#slicesBefore)
  }

  get guests(): number {
    return this.#living().reduce((sum, [, held]) => sum + held, 0)
  }

  /** The thread for one more guest; give it back with `leave`. */
  enter(): Thread {
    const thread = this.#free() ?? this.#least() ?? new Thread()
    this.#held.set(thread, (this.#held.get(thread) ?? 0) + 1)
    // The next thread is started ahead, so that it is warm when it is needed.
    if (this.#warming === undefined && this.#free() === undefined && this.count < this.#max)
      this.#warming = setTimeout(() => {
        this.#warming = undefined
        this.warmUp()
      }, warmUpAfterMs).unref()
    return thread
  }

  leave(thread: Thread): void {
    const held = this.#held.get(thread)
    if (held !== undefined) this.#held.set(thread, held - 1)
  }

  /** Starts a thread for a guest that will come soon, unless there is one to spare. */
  warmUp(): void {
    if (this.#free() !== undefined || this.count >= this.#max) return
    try {
      this.#held.set(new Thread(), 0)
    } catch {
      // Whoever needs one hears what is wrong.
    }
  }

  /**
   * Gives `work` a thread without guests, for what may never end. It is used for guests afterwards when there is room for
   * one more thread, else ended.
   */
  async alone<T>(work: (thread: Thread) => Promise<T>): Promise<T> {
    const thread = this.#free() ?? new Thread()
    this.#held.delete(thread)
    try {
      return await work(thread)
    } finally {
      if (thread.alive && this.count < this.#max) this.#held.set(thread, 0)
      else await thread.terminate()
    }
  }

  /** Ends all of them, e.g. those of a test. */
  async end(): Promise<void> {
    clearTimeout(this.#warming)
    await Promise.all(Array.from(this.#held.keys(), (thread) => thread.terminate()))
  }

  #living(): [Thread, number][] {
    for (const thread of this.#held.keys()) {
      if (thread.alive) continue
      this.#held.delete(thread)
      this.#slicesBefore += thread.slices
    }
    return [...this.#held]
  }

  #free(): Thread | undefined {
    return this.#living().find(([, held]) => held === 0)?.[0]
  }

  /** The one that holds least; undefined while another thread may be started. */
  #least(): Thread | undefined {
    const living = this.#living()
    if (living.length < this.#max) return undefined
    return living.toSorted(([, a], [, b]) => a - b)[0]?.[0]
  }
}

/** Those of this process. */
export const threads = new Threads()
