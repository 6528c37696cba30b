/**
 * Turns of the guests of one thread. Whoever has something to run gets a slice, round robin; one that runs alone is not
 * sliced. A slice that ends is an interruption that only this thread sees: the guest's pause is handed over when it rests, is
 * stopped from outside, or has used up what it may.
 */
import type { EffectRequest, GuestMessage, Pause } from '@baton/shared/guest.ts'
import type { Guest } from './guest.ts'
import type { Limits } from './messages.ts'

/** Long enough that unwinding and rewinding cost nothing, short enough that a dozen guests all seem to run. */
export const SLICE_MS = 20

/** A run that has asked for this much is handed over, so that a chatty guest fills the journal and not the memory of its neighbours. */
const askedCharsMax = 1 << 20

/** What goes on around the running guest. */
export interface Surroundings {
  /** Something came that must not wait: the slice ends now. */
  isUrgent: () => boolean
  /** Something came that may be another guest's. */
  isWanted: () => boolean
  /** Milliseconds. */
  now: () => number
}

export interface Run {
  guest: Guest
  /** Not zero: stop at the next loop check. */
  stop: Int32Array
  /** Absent: goes on after an interruption. */
  message?: GuestMessage
  limits: Limits
  settle: (pause: Pause) => void
  fail: (error: unknown) => void
}

interface Turn extends Run {
  begun: boolean
  /** What the guest asked for in the slices before. */
  asked: EffectRequest[]
  /** `askedChars` of the guest at which it is handed over. */
  askedUntil: number
  /** What is left of its limits. */
  ms: number
  fuel: number
}

export class Turns {
  readonly #around: Surroundings
  /** Who runs next comes first. */
  readonly #queue: Turn[] = []
  /** Slices given. */
  slices = 0

  constructor(around: Surroundings) {
    this.#around = around
  }

  get size(): number {
    return this.#queue.length
  }

  add(run: Run): void {
    const { ms = Infinity, fuel = Infinity } = run.limits
    this.#queue.push({
      ...run,
      begun: false,
      asked: [],
      askedUntil: run.guest.askedChars + askedCharsMax,
      ms,
      fuel,
    })
  }

  /** Takes out the run of a guest that is to end. Gives undefined when it has none. */
  remove(guest: Guest): Run | undefined {
    const at = this.#queue.findIndex((turn) => turn.guest === guest)
    return at < 0 ? undefined : this.#queue.splice(at, 1)[0]
  }

  /** Gives the next one its slice. */
  step(): void {
    const turn = this.#next()
    if (!turn) return
    try {
      if (turn.begun && isStopped(turn)) turn.settle({ state: 'interrupted', asked: turn.asked })
      else this.#slice(turn)
    } catch (error) {
      turn.fail(error)
    }
  }

  /** Those that are told to stop first: it takes them no time. */
  #next(): Turn | undefined {
    const stopped = this.#queue.findIndex(isStopped)
    return stopped > 0 ? this.#queue.splice(stopped, 1)[0] : this.#queue.shift()
  }

  #slice(turn: Turn): void {
    const { guest, message, fuel } = turn
    const { isUrgent, isWanted, now } = this.#around
    const started = now()
    const ends = started + SLICE_MS
    const spent = started + turn.ms
    const shouldStop = (): boolean => {
      if (isStopped(turn) || isUrgent() || guest.askedChars > turn.askedUntil) return true
      const at = now()
      return at >= spent || (at >= ends && (this.#queue.length > 0 || isWanted()))
    }
    const slice = { shouldStop, ...(fuel === Infinity ? {} : { fuel }) }
    const pause = turn.begun || !message ? guest.run(slice) : guest.deliver(message, slice)
    this.slices++
    turn.begun = true
    turn.asked.push(...pause.asked)
    turn.ms -= now() - started
    turn.fuel = guest.fuelLeft
    const isSpent = turn.ms <= 0 || turn.fuel <= 0 || guest.askedChars > turn.askedUntil
    // A reseed changes no state: whoever sent it says when the guest goes on.
    const isRun = message?.type !== 'reseed'
    const goesOn = pause.state === 'interrupted' && isRun && !isStopped(turn) && !isSpent
    if (goesOn) this.#queue.push(turn)
    else turn.settle({ ...pause, asked: turn.asked })
  }
}

function isStopped({ stop }: Turn): boolean {
  return Atomics.load(stop, 0) !== 0
}
