/** Which failed model calls are tried again, and when. Attempts are counted in the journal (F27, F75). */
import type { Intent } from '@baton/shared/journal.ts'
import { ATTEMPTS_MAX } from '@baton/shared/backoff.ts'
import type { Performed } from './perform.ts'

const BASE_MS = 1_000
const LONGEST_MS = 60_000
/** A service that asks for more patience than this gets its answer to the person. */
const PATIENCE_MS = 5 * 60_000

/** What the intent of the next attempt says of this one; undefined: it is not tried again. */
export function retryOf(
  performed: Performed,
  { kind, attempt }: Intent,
  now: number,
  base_ms: number = BASE_MS,
): Intent['retry'] {
  if (kind !== 'llm' || !('error' in performed) || !performed.transient || attempt >= ATTEMPTS_MAX)
    return undefined
  const { code, message } = performed.error
  const asked_ms = performed.transient.retry_after_ms ?? 0
  if (asked_ms > PATIENCE_MS) return undefined
  const backoff_ms = Math.min(LONGEST_MS, base_ms * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2)
  return { code, message, not_before: now + Math.round(Math.max(asked_ms, backoff_ms)) }
}

/**
 * How long to wait with an attempt that follows a failed one. Told by the clock that wrote it alone: that of a runner which took the
 * session over may be wrong by hours.
 */
export function backoffOf({ retry, now }: Intent): number {
  return retry === undefined ? 0 : Math.min(PATIENCE_MS, Math.max(0, retry.not_before - now))
}

/** Is its time still to come, as far as this machine's clock can be believed? */
export function isBackingOff({ retry, now: written }: Intent, now: number): boolean {
  return retry !== undefined && written <= now && now < retry.not_before
}
