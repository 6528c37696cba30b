/** A glance at the end of a session's journal: what it waits for, or how its last turn ended, for the session list. */
import type { Entry } from '@baton/shared/protocol.ts'
import { readEntry } from '@baton/shared/view/entry.ts'
import type { Approval } from '@baton/shared/view/items.ts'
import { EMPTY, pendingApprovals, reduce } from '@baton/shared/view/transcript.ts'
import { hasTrouble } from '../store/session.ts'
import type { Ask } from './sender.ts'

/** A pending approval is near the end as a rule: outcomes of calls that ran beside it follow, and lease entries. */
const WINDOW = 40
/** Sealed entries are small, but a list has many sessions: what is further back shows when the session is opened. */
const LOOK_BACK_MAX = 1000

/**
 * The approvals that wait, as far as the last entries tell: it reads to the tail, then further back until there is one.
 * `seq`: the session's last known entry. Throws BatonError `offline`, `timeout`, `no-session`.
 */
export async function glance(ask: Ask, key: Uint8Array, sid: string, seq: number): Promise<Approval[]> {
  let first = Math.max(1, seq - WINDOW + 1)
  let entries = await readRange(ask, sid, first)
  for (;;) {
    const pending = pendingApprovals(
      reduce(
        EMPTY,
        entries.map((entry) => readEntry(key, sid, entry)),
      ),
    )
    if (pending.length > 0 || first === 1 || entries.length >= LOOK_BACK_MAX) return pending
    // Each window as large as all before it: far back in a few questions.
    const from = Math.max(1, first - Math.min(entries.length + WINDOW, LOOK_BACK_MAX - entries.length))
    entries = [...(await readRange(ask, sid, from, first - 1)), ...entries]
    first = from
  }
}

/** Did the last turn of a session that rests end in an error? As far as its last entries tell. Throws as `glance`. */
export async function troubled(ask: Ask, key: Uint8Array, sid: string, seq: number): Promise<boolean> {
  const entries = await readRange(ask, sid, Math.max(1, seq - WINDOW + 1))
  return hasTrouble(
    reduce(
      EMPTY,
      entries.map((entry) => readEntry(key, sid, entry)),
    ),
  )
}

/** Entries `from` to `to`, without `to` up to the tail; in pages, because one answer holds what fits a frame. */
async function readRange(ask: Ask, sid: string, from: number, to?: number): Promise<Entry[]> {
  const entries: Entry[] = []
  let next = from
  for (;;) {
    const page = await ask('read', { sid, from: next, ...(to === undefined ? {} : { limit: to - next + 1 }) })
    entries.push(...page.entries)
    next = (page.entries.at(-1)?.seq ?? Infinity) + 1
    if (next > (to ?? page.tail)) return entries
  }
}
