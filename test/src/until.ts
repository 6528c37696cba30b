/** Waiting for a condition, the only kind of waiting that a test may do. */
import { setTimeout as sleep } from 'node:timers/promises'

export interface UntilOptions {
  /** When to give up. Generous: it ends what hangs, it measures nothing. */
  deadline_ms?: number
  /** Between two probes. When absent it is short at first and then longer: asking takes time from what is waited for. */
  every_ms?: number
}

const FIRST_MS = 5
const LAST_MS = 50

type Falsy = false | null | undefined | 0 | ''

/**
 * Polls until `probe` gives something truthy, and returns that. A probe that throws counts as "not yet".
 *
 * @param awaited completes the sentence "gave up waiting until …"
 * @throws Error naming what was awaited, and what the last probe gave or threw
 */
export async function until<T>(
  awaited: string,
  probe: () => T | Promise<T>,
  { deadline_ms = 120_000, every_ms }: UntilOptions = {},
): Promise<Exclude<T, Falsy>> {
  const start = performance.now()
  let last = 'nothing was probed'
  let pause_ms = every_ms ?? FIRST_MS
  for (;;) {
    try {
      const value = await probe()
      if (value) return value as Exclude<T, Falsy>
      last = `the last probe gave ${JSON.stringify(value)}`
    } catch (error) {
      last = `the last probe threw: ${error instanceof Error ? error.message : String(error)}`
    }
    const waited_ms = performance.now() - start
    if (waited_ms >= deadline_ms) {
      throw new Error(`gave up waiting until ${awaited}, after ${(waited_ms / 1000).toFixed(1)} s; ${last}`)
    }
    await sleep(pause_ms)
    if (every_ms === undefined) pause_ms = Math.min(pause_ms * 1.2, LAST_MS)
  }
}
