/** The session list as an inbox in three parts: what needs you, what runs, what is parked; then what was dismissed. Pure. */
import type { SessionMeta } from '@baton/shared/journal.ts'
import type { SessionInfo } from '@baton/shared/protocol.ts'
import { partOf, type Part } from '@baton/shared/view/sessions.ts'
import type { OutboxItem } from './outbox.ts'
import { hasEnded } from './session.ts'

export interface Row {
  sid: string
  title: string
  part: Part
  status: SessionInfo['status'] | 'unsent'
  holder?: string
  workspace?: string
  /** Milliseconds since 1970 of the last change. */
  since: number
  /** Commands that wait in the relay's inbox. */
  pending: number
  /** Items of this device that the relay does not have yet, and how many of them it refused. */
  unsent: number
  refused: number
  /** Nothing comes of it any more: it may be dismissed from the list. */
  ended: boolean
}

/**
 * Newest change first in each part, but what failed below what waits for a decision. Sessions that only this device knows yet
 * stand among the running; `dismissed`: ended ones that were put out of sight here.
 */
export function inboxRows(
  sessions: Iterable<SessionInfo>,
  metaOf: (sid: string, sealed: string) => SessionMeta | undefined,
  outbox: readonly OutboxItem[],
  dismissed: ReadonlySet<string> = new Set(),
): Record<Part | 'dismissed', Row[]> {
  const rows: Record<Part | 'dismissed', Row[]> = { 'needs-you': [], running: [], parked: [], dismissed: [] }
  const itemsOf = Map.groupBy(outbox, (item) => item.sid)
  const known = new Set<string>()
  const add = (row: Row): void => {
    if (row.ended && dismissed.has(row.sid)) rows.dismissed.push(row)
    else rows[row.refused > 0 ? 'needs-you' : row.part].push(row)
  }
  for (const session of sessions) {
    known.add(session.sid)
    const meta = metaOf(session.sid, session.meta)
    const unsent = notAtRelay(itemsOf.get(session.sid) ?? [])
    add({
      sid: session.sid,
      title: meta?.title ?? UNREADABLE,
      part: partOf(session),
      status: session.status,
      since: session.changed_at,
      pending: session.pending,
      unsent: unsent.length,
      refused: unsent.filter((item) => item.state === 'refused').length,
      ended: hasEnded(session),
      ...(session.holder ? { holder: session.holder } : {}),
      ...(meta ? { workspace: meta.workspace } : {}),
    })
  }
  for (const [sid, items] of itemsOf) {
    const created = items.find((item) => item.ask.what === 'create')
    if (known.has(sid) || created?.ask.what !== 'create') continue
    const meta = metaOf(sid, created.ask.meta)
    const unsent = notAtRelay(items)
    add({
      sid,
      title: meta?.title ?? UNREADABLE,
      part: 'running',
      status: 'unsent',
      since: created.queued_at,
      pending: 0,
      unsent: unsent.length,
      refused: unsent.filter((item) => item.state === 'refused').length,
      ended: false,
      ...(meta ? { workspace: meta.workspace } : {}),
    })
  }
  for (const part of Object.values(rows)) part.sort((a, b) => urgency(b) - urgency(a) || b.since - a.since)
  return rows
}

/** A decision holds the agent up; what failed can wait. Within the other parts all are alike. */
function urgency(row: Row): number {
  return row.part === 'needs-you' && !row.ended ? 1 : 0
}

function notAtRelay(items: readonly OutboxItem[]): OutboxItem[] {
  return items.filter((item) => item.state !== 'acknowledged')
}

const UNREADABLE = 'A session that this device can’t read'
