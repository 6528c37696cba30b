/** One session's entries as they come, opened, from a cursor on, whatever becomes of the connection. */
import { BatonError } from '@baton/shared/errors.ts'
import { Feed } from '@baton/shared/feed.ts'
import { Delta } from '@baton/shared/journal.ts'
import { openJson, place } from '@baton/shared/seal.ts'
import { readEntry, type Read } from '@baton/shared/view/entry.ts'
import * as v from 'valibot'
import type { AccountView } from './account.ts'

export interface FollowHandlers {
  onEntry?: (entry: Read) => void
  /** In batches, as they come; `tail`: the last seq that is known to exist. */
  onEntries?: (entries: Read[], tail: number) => void
  onDelta?: (effect: number, delta: Delta) => void
  /** Everything known of the session is to be dropped. */
  onGap?: (reason: 'trimmed' | 'rolled-back') => void
  onRefused?: (error: BatonError) => void
}

export class Follow implements Disposable {
  readonly #feed: Feed
  readonly #ends: (() => void)[]

  /** `cursor`: seq of the last entry that is known already. */
  constructor(view: AccountView, sid: string, cursor: number, on: FollowHandlers) {
    const key = view.keyOf(sid)
    this.#feed = new Feed(view.link.connection, sid, cursor, {
      entries: (sealed, tail) => {
        const entries = sealed.map((entry) => readEntry(key, sid, entry))
        for (const entry of entries) on.onEntry?.(entry)
        on.onEntries?.(entries, tail)
      },
      gap: (reason) => on.onGap?.(reason),
      delta: (effect, body) => {
        const delta = deltaIn(() => openJson(key, body, place.delta(sid, effect)))
        // A preview that can't be read: the outcome follows.
        if (delta) on.onDelta?.(effect, delta)
      },
      refused: (error) => on.onRefused?.(error),
    })
    this.#ends = [
      view.onNotice((notice) => this.#feed.notice(notice)),
      view.onState((state) => {
        if (state.at === 'open') this.#feed.resume()
        // No entry will ever come.
        else if (state.at === 'refused') on.onRefused?.(new BatonError(state.code, state.message))
      }),
    ]
  }

  [Symbol.dispose](): void {
    for (const end of this.#ends) end()
    this.#feed.close()
  }
}

function deltaIn(open: () => unknown): Delta | undefined {
  try {
    return v.parse(Delta, open())
  } catch {
    return undefined
  }
}
