import { useState, type ReactElement } from 'react'
import { ConnectionDot } from '../parts/ConnectionBar.tsx'
import { useCell, useNow, usePaired, useRunners } from '../parts/hooks.ts'
import { HomeBar } from '../parts/HomeBar.tsx'
import { Icon, Mark } from '../parts/icons.tsx'
import { Link } from '../parts/Link.tsx'
import { NewSession } from '../parts/NewSession.tsx'
import { nameOf } from '../store/account.ts'
import { questionOf, targetOf, verbOf } from '@baton/shared/view/call.ts'
import type { Part } from '@baton/shared/view/sessions.ts'
import { inboxRows, type Row } from '../store/inbox.ts'
import type { Approval } from '@baton/shared/view/items.ts'
import { ago, lastPart } from '@baton/shared/view/units.ts'

const PARTS: readonly [Part, string][] = [
  ['needs-you', 'Needs you'],
  ['running', 'Running'],
  ['parked', 'Parked'],
]
const PARTS_ALL: readonly [Part | 'dismissed', string][] = [...PARTS, ['dismissed', 'Dismissed here']]

/** The inbox. `current`: the session that stands beside it on a wide screen. */
export function Sessions({ current }: { current?: string | undefined }): ReactElement {
  const { hub, drafts } = usePaired()
  const seen = useCell(hub.seen)
  const outbox = useCell(hub.outbox.items)
  const listed = useCell(hub.listed)
  const glances = useCell(hub.glances)
  const troubled = useCell(hub.troubled)
  const moved = useCell(drafts.moved)
  const runners = useRunners()
  const now = useNow()
  const dismissed = useCell(hub.dismissed.sids)
  const [all, setAll] = useState(false)
  const parts = inboxRows(seen.sessions, hub.metaOf, outbox, dismissed)
  const gone = parts.dismissed.length
  const none = gone === 0 && PARTS.every(([part]) => parts[part].length === 0)
  const shown: typeof PARTS_ALL = all && gone > 0 ? PARTS_ALL : PARTS
  return (
    <div className="screen">
      <header className="head">
        <Mark size={28} />
        <h1>Sessions</h1>
        <ConnectionDot />
      </header>
      <HomeBar />
      <main className="scroll">
        {none && (
          <div className="empty">
            <Mark size={64} />
            <p>{listed ? 'Nothing here yet.' : 'Looking for your sessions…'}</p>
            {listed && (
              <p className="quiet">
                Say below what should be done. It runs on your machine, and goes on elsewhere when you close
                the lid.
              </p>
            )}
          </div>
        )}
        {shown.map(([part, title]) =>
          parts[part].length === 0 ? null : (
            <section key={part} aria-label={title}>
              <h2 className="part">
                {title} <span className="quiet">{parts[part].length}</span>
              </h2>
              <ul role="list" className="rows">
                {parts[part].map((row) => (
                  <li key={row.sid} className={row.ended ? 'with-action' : undefined}>
                    <SessionRow
                      row={row}
                      now={now}
                      current={row.sid === current}
                      approvals={glances.get(row.sid) ?? []}
                      troubled={troubled.has(row.sid)}
                      runner={row.holder ? nameOf(row.holder, runners) : undefined}
                      away={runners.some(({ device, online }) => device === row.holder && !online)}
                    />
                    {row.ended && (
                      <button
                        type="button"
                        className="icon-button quiet"
                        aria-label={`${part === 'dismissed' ? 'Put back' : 'Dismiss'} ${row.title}`}
                        onClick={() => hub.dismissed.set(row.sid, part !== 'dismissed')}
                      >
                        <Icon name={part === 'dismissed' ? 'up' : 'cross'} size={18} />
                      </button>
                    )}
                  </li>
                ))}
              </ul>
            </section>
          ),
        )}
        {gone > 0 && (
          <button type="button" className="button bare" onClick={() => setAll(!all)}>
            {all ? 'Hide dismissed' : `Show dismissed (${gone})`}
          </button>
        )}
      </main>
      <NewSession key={moved} />
    </div>
  )
}

function SessionRow({
  row,
  now,
  current,
  approvals,
  troubled,
  runner,
  away,
}: {
  row: Row
  now: number
  current: boolean
  approvals: readonly Approval[]
  /** Its last turn ended in an error. */
  troubled: boolean
  runner: string | undefined
  away: boolean
}): ReactElement {
  const where = [runner, row.workspace && lastPart(row.workspace)].filter(Boolean).join(' · ')
  const approval = row.status === 'waiting' ? approvals[0] : undefined
  return (
    <Link to={`/s/${row.sid}`} className="row" {...(current ? { 'aria-current': 'page' as const } : {})}>
      <span className={`row-mark ${row.part} ${row.status}`} aria-hidden />
      <span className="row-title two-lines">{row.title}</span>
      <time className="small quiet row-since" dateTime={new Date(row.since).toISOString()}>
        {ago(row.since, now)}
      </time>
      {approval && (
        <span className="small row-asks ellipsis">
          {verbOf(approval.name, 'approval', approval.input)}{' '}
          <code>{targetOf(approval.name, approval.input) || questionOf(approval.name)}</code>
        </span>
      )}
      <span
        className={row.part === 'needs-you' && !approval ? 'small row-asks ellipsis' : 'small quiet ellipsis'}
      >
        {[approval ? '' : stateWords(row, runner, away, troubled), where].filter(Boolean).join(' · ')}
      </span>
    </Link>
  )
}

/** What the session does or waits for. */
function stateWords(row: Row, runner: string | undefined, away: boolean, troubled: boolean): string {
  if (row.refused > 0) return 'A message was refused'
  if (row.unsent > 0)
    return row.unsent === 1 ? 'A message waits to be sent' : `${row.unsent} messages wait to be sent`
  switch (row.status) {
    case 'unsent':
      return 'Starting'
    case 'waiting':
      return 'Waits for your approval'
    case 'failed':
      return 'Failed'
    case 'running':
      if (!runner) return 'Waits for a runner'
      return away ? 'No answer' : 'Working'
    case 'moving':
      return 'Moving'
    case 'idle':
      if (row.pending > 0) return 'Waits for a runner'
      return troubled ? 'Error' : 'Ready'
    case 'done':
      return 'Done'
  }
}
