/** A glance at the end of a session's journal: what it waits for, for the session list. */
import type { Connection } from '@baton/shared/connection.ts'
import { readEntry } from '../store/entry.ts'
import type { Approval } from '../store/items.ts'
import { EMPTY, pendingApprovals, reduce } from '../store/transcript.ts'

/** A pending approval is near the end: only outcomes of calls that ran beside it can follow. */
const LOOK_BACK = 40

/** The approvals that wait in the last entries. Throws BatonError `offline`, `timeout`, `no-session`. */
export async function glance(
  connection: Connection,
  key: Uint8Array,
  sid: string,
  seq: number,
): Promise<Approval[]> {
  const from = Math.max(1, seq - LOOK_BACK)
  const { entries } = await connection.ask('read', { sid, from, limit: LOOK_BACK + 1 })
  return pendingApprovals(
    reduce(
      EMPTY,
      entries.map((entry) => readEntry(key, sid, entry)),
    ),
  )
}
