/**
 * Finds out that this process stood still: the machine slept, or the process was stopped. While a machine sleeps, the monotonic
 * clock stands still and the wall clock goes on; while a process is stopped, both go on and the timer is late. A wall clock
 * that was set forward looks the same, and does no harm: what follows is only a look at connection and leases.
 */
import { moment, since } from './moment.ts'

const EVERY_MS = 1_000
/** More than a busy machine makes a timer late. */
const LATE_MS = 4_000

/** Calls `jumped` with the milliseconds that were slept through. Gives what ends it. */
export function watchClock(jumped: (away_ms: number) => void): () => void {
  let last = moment()
  const timer = setInterval(() => {
    const away_ms = since(last) - EVERY_MS
    last = moment()
    if (away_ms >= LATE_MS) jumped(away_ms)
  }, EVERY_MS)
  timer.unref()
  return () => clearInterval(timer)
}
