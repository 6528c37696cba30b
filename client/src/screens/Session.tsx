import type { Placement, SessionInfo } from '@baton/shared/protocol.ts'
import { useCallback, useEffect, useMemo, useState, type ReactElement } from 'react'
import { decision, move, prompt, stop } from '../net/commands.ts'
import type { Live, LiveView } from '../net/live.ts'
import { Announcer } from '../parts/Announcer.tsx'
import { ApprovalCard, whereWords } from '../parts/ApprovalCard.tsx'
import { SidContext } from '../parts/BlobText.tsx'
import { Composer, type Action } from '../parts/Composer.tsx'
import { Ended } from '../parts/Ended.tsx'
import { useCell, useDevices, usePaired, useRemoved, useRunners } from '../parts/hooks.ts'
import { Icon } from '../parts/icons.tsx'
import { Link } from '../parts/Link.tsx'
import { MoveSheet } from '../parts/MoveSheet.tsx'
import { sameAgain } from '../parts/NewSession.tsx'
import { Queue } from '../parts/Queue.tsx'
import { TranscriptList } from '../parts/TranscriptList.tsx'
import { movingWords } from '@baton/shared/view/words.ts'
import type { Row } from '../parts/TranscriptRow.tsx'
import { Unkept, type UnkeptTap } from '../parts/Unkept.tsx'
import { nameOf, type Runner } from '../store/account.ts'
import { joined } from '../store/drafts.ts'
import type { Approval } from '@baton/shared/view/items.ts'
import type { NewOutboxItem, OutboxItem } from '../store/outbox.ts'
import { isThinking, pendingApprovals, type Transcript } from '@baton/shared/view/transcript.ts'

/** A session that is on screen; `wide`: the list stands beside it. */
export function Session({ sid, wide }: { sid: string; wide: boolean }): ReactElement {
  const { hub } = usePaired()
  const [live, setLive] = useState<Live | undefined>()
  useEffect(() => {
    const watched = hub.watch(sid)
    setLive(watched.live)
    return watched.release
  }, [hub, sid])
  if (live?.sid !== sid) return <div className="screen" />
  return <LiveSession key={sid} live={live} wide={wide} />
}

const NONE: readonly Approval[] = []

function LiveSession({ live, wide }: { live: Live; wide: boolean }): ReactElement {
  const { hub, drafts } = usePaired()
  const { sid } = live
  const view = useCell(live.view)
  const connected = useCell(hub.connection).at === 'open'
  const removed = useRemoved()
  const listed = useCell(hub.listed)
  const session = useCell(hub.seen).sessions.find((other) => other.sid === sid)
  const outbox = useCell(hub.outbox.items).filter((item) => item.sid === sid)
  const runners = useRunners()
  const devices = useDevices()
  const [moving, setMoving] = useState(false)
  const [inserted, setInserted] = useState<{ text: string } | undefined>()
  const [returned, setReturned] = useState(0)
  const [unkept, setUnkept] = useState<UnkeptTap | undefined>()

  const { transcript } = view
  const key = hub.keyOf(sid)
  const name = useCallback(
    (device: string): string => (device === hub.device.id ? 'this device' : nameOf(device, runners, devices)),
    // The names themselves, not the lists that come anew with every notice: each row of the transcript hangs on this.
    [hub, JSON.stringify([...runners, ...devices].map(({ device, about }) => [device, about?.name]))],
  )
  const ended = hasEnded(session)
  // Nobody is there any more to take a decision.
  const approvals = useMemo(() => (ended ? NONE : pendingApprovals(transcript)), [ended, transcript])
  const place = placeOf(session, transcript, outbox)
  const holder = runners.find(({ device }) => device === session?.holder)
  const holds = session?.holder !== undefined && holder?.online !== false
  const rows = useRows(transcript, session, name)
  const title = titleOf(hub.metaOf, session, outbox, sid)
  const busy = session?.status === 'running' || session?.status === 'waiting' || session?.status === 'moving'
  const stopping = outbox.some(({ shown, state }) => shown.as === 'stop' && state !== 'refused')

  function action(empty: boolean): Action {
    if (busy && empty) return { do: 'stop', stopping }
    return { do: 'send', label: busy ? 'Queue' : 'Send' }
  }
  async function send(text: string): Promise<void> {
    await hub.outbox.enqueue([prompt(key, sid, text)], sid)
  }
  function moveTo(to: Placement, label: string): void {
    setMoving(false)
    tap(move(key, sid, to, label))
  }
  function tap(item: NewOutboxItem): void {
    setUnkept(undefined)
    hub.outbox.enqueue([item]).catch((error: unknown) => setUnkept({ item, error }))
  }
  function discard(id: string, text: string): void {
    const item = outbox.find((other) => other.id === id)
    hub.outbox.discard(id)
    if (item?.shown.as !== 'prompt') return
    // Nothing typed is lost: the text goes back to where it was typed.
    if (!ended) return setInserted({ text })
    void drafts.load(sid).then((saved) => {
      drafts.save(sid, joined(text, saved))
      setReturned((count) => count + 1)
    })
  }

  const meta = session && hub.metaOf(sid, session.meta)
  const like = sameAgain(runners, {
    ...(place === undefined ? {} : { runner: place }),
    ...(meta && { workspace: meta.workspace, mode: meta.mode }),
  })
  const move_asked = outbox.find(({ shown }) => shown.as === 'move')
  const shown_in_queue = outbox.filter(
    ({ shown, state }) =>
      shown.as === 'prompt' ||
      // A refused decision shows in its card while there is one.
      (state === 'refused' &&
        !(shown.as === 'decision' && approvals.some(({ effect }) => effect === shown.effect))),
  )

  return (
    <SidContext value={sid}>
      <div className="screen">
        <header className="head session-head">
          {!wide && (
            <Link to="/" className="icon-button" aria-label="Sessions">
              <Icon name="back" />
            </Link>
          )}
          <div className="titles">
            <h1 className="two-lines">{title}</h1>
            <p className="small quiet ellipsis">
              {statusWords(session, transcript, holder?.online, place && name(place), move_asked)}
            </p>
          </div>
          {place && ended && (
            <span className="chip">
              <span className="chip-dot" />
              <span className="ellipsis">{name(place)}</span>
            </span>
          )}
          {place && !ended && (
            <button
              type="button"
              className="chip"
              aria-label={`Runner: ${name(place)}`}
              aria-haspopup="dialog"
              onClick={() => setMoving(true)}
            >
              <span className={holds ? 'chip-dot on' : 'chip-dot'} />
              <span className="ellipsis">{name(place)}</span>
              <Icon name="down" size={16} />
            </button>
          )}
        </header>
        {view.rolled_back && (
          <div className="bar" role="status">
            <p>
              The relay’s store was rolled back: this session was loaded again, and its end may be missing.
            </p>
          </div>
        )}
        <main className="session-main">
          {rows.length > 0 ? (
            <TranscriptList rows={rows} nameOf={name} />
          ) : (
            <p className="empty quiet">{emptyWords(view, session, connected, outbox.length > 0)}</p>
          )}
        </main>
        <div className="session-foot">
          <div className="approvals">
            {approvals.map((approval) => (
              <ApprovalCard
                key={approval.effect}
                approval={approval}
                given={outbox.findLast(
                  ({ shown }) => shown.as === 'decision' && shown.effect === approval.effect,
                )}
                connected={connected}
                runner={holds && place ? name(place) : undefined}
                where={whereWords(
                  place && name(place),
                  holds ? 'holds' : runners.some(isOnline(place)) ? 'let-go' : 'away',
                  transcript.workspace,
                )}
                removed={removed}
                onDecide={(approved) => tap(decision(key, hub.device, sid, approval, approved))}
                onRetry={(id) => hub.outbox.retry(id)}
              />
            ))}
          </div>
          {unkept && isOpen(unkept.item, approvals, busy, ended) && (
            <Unkept tap={unkept} onRetry={() => tap(unkept.item)} onDiscard={() => setUnkept(undefined)} />
          )}
          <Queue
            items={shown_in_queue}
            waiting={view.waiting}
            connected={connected}
            busy={busy && session?.holder !== undefined}
            ended={ended}
            removed={removed}
            onRetry={(id) => hub.outbox.retry(id)}
            onDiscard={discard}
          />
          {ended ? (
            <Ended key={returned} draft={sid} like={like} />
          ) : (
            <Composer
              draft={sid}
              placeholder={busy ? 'What should it do next?' : 'Message'}
              action={action}
              inserted={inserted}
              onSend={send}
              onStop={() => tap(stop(key, sid))}
            />
          )}
        </div>
        <Announcer
          transcript={transcript}
          tail={listed ? session?.seq : undefined}
          approvals={approvals}
          nameOf={name}
        />
        {moving && !ended && (
          <MoveSheet
            runners={runners}
            holder={session?.holder}
            onMove={moveTo}
            onClose={() => setMoving(false)}
          />
        )}
      </div>
    </SidContext>
  )
}

/** The agent is through, or can't go on: the relay takes no more commands (`session-ended`). */
function hasEnded(session: SessionInfo | undefined): boolean {
  return session?.status === 'done' || session?.status === 'failed'
}

const isOnline =
  (place: string | undefined) =>
  ({ device, online }: Runner): boolean =>
    device === place && online

/** Would the tap still change anything? */
function isOpen(
  { shown }: NewOutboxItem,
  approvals: readonly Approval[],
  busy: boolean,
  ended: boolean,
): boolean {
  if (shown.as === 'decision') return approvals.some(({ effect }) => effect === shown.effect)
  return shown.as === 'stop' ? busy : !ended
}

/** The items, then what goes on right now. */
function useRows(
  transcript: Transcript,
  session: SessionInfo | undefined,
  name: (device: string) => string,
): readonly Row[] {
  return useMemo(() => {
    const rows: Row[] = [...transcript.items]
    const { lease, live, moving } = transcript
    const expired = lease?.change === 'expired'
    for (const [effect, text] of live) if (text !== '') rows.push({ kind: 'live', id: `live${effect}`, text })
    if (hasEnded(session)) return rows
    if (isThinking(transcript) && live.size === 0 && !expired) rows.push({ kind: 'thinking', id: 'thinking' })
    if (expired && session?.status !== 'idle') {
      rows.push({ kind: 'away', id: 'away', runner: name(lease.holder) })
    }
    if (moving) rows.push({ kind: 'moving', id: 'moving', moving })
    return rows
  }, [transcript, session?.status, name])
}

/** Where the session runs, ran last, or shall run. */
function placeOf(
  session: SessionInfo | undefined,
  transcript: Transcript,
  outbox: readonly OutboxItem[],
): string | undefined {
  if (session) return session.holder ?? transcript.lease?.holder ?? session.place.prefer
  const created = outbox.find(({ ask }) => ask.what === 'create')
  return created?.ask.what === 'create' ? created.ask.place.prefer : undefined
}

function titleOf(
  metaOf: (sid: string, sealed: string) => { title: string } | undefined,
  session: SessionInfo | undefined,
  outbox: readonly OutboxItem[],
  sid: string,
): string {
  const created = outbox.find(({ ask }) => ask.what === 'create')
  const meta = session?.meta ?? (created?.ask.what === 'create' ? created.ask.meta : undefined)
  return (meta === undefined ? undefined : metaOf(sid, meta)?.title) ?? 'Session'
}

function statusWords(
  session: SessionInfo | undefined,
  transcript: Transcript,
  online: boolean | undefined,
  place: string | undefined,
  move_asked: OutboxItem | undefined,
): string {
  if (session?.status === 'done') return 'Done'
  if (session?.status === 'failed') return 'Failed'
  if (move_asked?.shown.as === 'move' && move_asked.state !== 'refused')
    return `Moving to ${move_asked.shown.label}`
  if (transcript.moving) return movingWords(transcript.moving)
  if (!session) return 'Waits to be sent'
  switch (session.status) {
    case 'running':
      if (!session.holder) return 'Waits for a runner'
      return online === false ? `${place} does not answer` : 'Working'
    case 'waiting':
      return 'Waits for you'
    case 'moving':
      return 'Moving'
    case 'idle':
      return session.pending > 0 ? 'Waits for a runner' : 'Ready'
  }
}

function emptyWords(
  view: LiveView,
  session: SessionInfo | undefined,
  connected: boolean,
  unsent: boolean,
): string {
  if (view.refused && !unsent) return 'This session is not in your account. It may have been removed.'
  if (!connected && session && session.seq > 0)
    return 'Not seen on this device yet. It loads when the connection is back.'
  if (session && session.seq > view.transcript.seq) return 'Loading…'
  return 'Nothing has happened yet.'
}
