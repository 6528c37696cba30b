/** What a screen reader is told of a session: what arrives while it is open, not what was there when it opened. Pure. */
import type { Approval, Item } from '@baton/shared/view/items.ts'
import type { Transcript } from '@baton/shared/view/transcript.ts'

/** What has been told, or needs no telling. */
export interface Heard {
  /** The transcript has once reached the end that the relay named; it is unset when the journal is read anew. */
  caught_up: boolean
  seq: number
  items: number
  /** Effects of the approvals. */
  asked: ReadonlySet<number>
}

export const NOTHING_HEARD: Heard = { caught_up: false, seq: 0, items: 0, asked: new Set() }

/** `tail`: seq of the session's last entry as the relay lists it; undefined: not known yet. */
export function hear(
  before: Heard,
  transcript: Transcript,
  approvals: readonly Approval[],
  tail: number | undefined,
): { heard: Heard; items: readonly Item[]; approvals: readonly Approval[] } {
  const followed = before.caught_up && transcript.seq >= before.seq
  const heard: Heard = {
    caught_up: followed || (tail !== undefined && transcript.seq >= tail),
    seq: transcript.seq,
    items: transcript.items.length,
    asked: new Set([...(followed ? before.asked : []), ...approvals.map(({ effect }) => effect)]),
  }
  if (!followed) return { heard, items: [], approvals: [] }
  return {
    heard,
    items: transcript.items.slice(before.items),
    approvals: approvals.filter(({ effect }) => !before.asked.has(effect)),
  }
}
