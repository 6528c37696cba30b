/** Sessions that could not be continued here: when they are tried again, and what was told of them (F20, F75). */
import { Backoff } from '@baton/shared/backoff.ts'

const TRIES = { base_ms: 1_000, cap_ms: 120_000 }

export class Later {
  readonly #sessions = new Map<string, { backoff: Backoff; not_before: number; told: string }>()

  /** Until then others have the chance. */
  isTooEarly(sid: string): boolean {
    return performance.now() < (this.#sessions.get(sid)?.not_before ?? 0)
  }

  /** What stands in the way may pass: the relay offers the session again, and once its time has come it is taken. */
  putOff(sid: string): void {
    const later = this.#sessions.get(sid)
    if (later) later.not_before = performance.now() + later.backoff.next()
  }

  /** It went on. */
  forget(sid: string): void {
    this.#sessions.delete(sid)
  }

  /** Told once, however often it is tried. */
  isNews(sid: string, words: string): boolean {
    const later = this.#sessions.get(sid) ?? { backoff: new Backoff(TRIES), not_before: 0, told: '' }
    this.#sessions.set(sid, later)
    const isNews = later.told !== words
    later.told = words
    return isNews
  }
}
