import type { Mode } from '@baton/shared/guest.ts'
import type { Placement, SessionInfo } from '@baton/shared/protocol.ts'
import { readTodos, todoWords } from '@baton/shared/view/documents.ts'
import { lazy, Suspense, useCallback, useEffect, useMemo, useRef, useState, type ReactElement } from 'react'
import {
  compact,
  decision,
  document,
  mode,
  move,
  prompt,
  settings,
  stop,
  type Said,
} from '../net/commands.ts'
import { Live, type LiveView } from '../net/live.ts'
import { Announcer } from '../parts/Announcer.tsx'
import { AgainContext } from '../parts/again.ts'
import { Link } from '../parts/Link.tsx'
import { ApprovalCard, whereWords, type Decided } from '../parts/ApprovalCard.tsx'
import { Composer, type Action } from '../parts/Composer.tsx'
import { Ended } from '../parts/Ended.tsx'
import { useCell, useDevices, usePaired, useRemoved, useRunners } from '../parts/hooks.ts'
import { MoveSheet } from '../parts/MoveSheet.tsx'
import { sameAgain } from '../parts/NewSession.tsx'
import { Queue } from '../parts/Queue.tsx'
import { SessionHead } from '../parts/SessionHead.tsx'
import { SidContext } from '../parts/sid.ts'
import { TranscriptList } from '../parts/TranscriptList.tsx'
import { movingWords } from '@baton/shared/view/words.ts'
import type { Row } from '../parts/TranscriptRow.tsx'
import { Unkept, type UnkeptTap } from '../parts/Unkept.tsx'
import { nameOf, type Runner } from '../store/account.ts'
import { joined } from '../store/drafts.ts'
import type { Approval } from '@baton/shared/view/items.ts'
import type { NewOutboxItem, OutboxItem } from '../store/outbox.ts'
import { photosOf, type Photo } from '../store/photos.ts'
import { alwaysOf } from '../store/rule-words.ts'
import {
  isThinking,
  liveOutputs,
  liveTexts,
  pendingApprovals,
  retryOf,
  type Transcript,
} from '@baton/shared/view/transcript.ts'

// Behind a tap each.
const ModeSheet = lazy(() => import('../parts/ModeSheet.tsx'))
const Notes = lazy(() => import('../parts/Notes.tsx'))
const SessionMenu = lazy(() => import('../parts/SessionMenu.tsx'))

/** A session that is on screen; `wide`: the list stands beside it. */
export function Session({ sid, wide }: { sid: string; wide: boolean }): ReactElement {
  const { hub } = usePaired()
  const [live, setLive] = useState<Live | undefined>()
  useEffect(() => {
    const watched = hub.watch(sid, Live)
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
  const [sheet, setSheet] = useState<'move' | 'mode' | 'menu' | 'notes' | undefined>()
  const [inserted, setInserted] = useState<{ text: string; photos: readonly Photo[] } | undefined>()
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
  const modes_asked = outbox.filter(({ shown, state }) => shown.as === 'mode' && state !== 'refused')
  const mode_asked = modes_asked.at(-1)?.shown
  const shown_mode = mode_asked?.as === 'mode' ? mode_asked.mode : transcript.mode
  const busy = session?.status === 'running' || session?.status === 'waiting' || session?.status === 'moving'
  const unsent = outbox.length > 0
  const existed = useRef(false)
  if (session || unsent || rows.length > 0) existed.current = true
  // The relay knows of none, and nothing here ever said that there is one. One that is just being created stays as it is.
  const unknown = view.refused !== undefined && !existed.current
  const title = unknown ? 'No such session' : titleOf(hub.metaOf, session, outbox, sid)
  const stopping = outbox.some(({ shown, state }) => shown.as === 'stop' && state !== 'refused')

  function action(empty: boolean): Action {
    if (busy && empty) return { do: 'stop', stopping }
    return busy ? { do: 'deliver' } : { do: 'send', label: 'Send' }
  }
  async function send(said: Said): Promise<void> {
    await hub.outbox.enqueue([prompt(key, sid, said)], sid)
  }
  function moveTo(to: Placement, label: string): void {
    setSheet(undefined)
    tap(move(key, sid, to, label))
  }
  function modeTo(to: Mode): void {
    setSheet(undefined)
    tap(modeChange(to))
  }
  function modeChange(to: Mode): NewOutboxItem {
    // Those on the way count before this one does.
    return mode(key, hub.device, sid, to, transcript.revision + modes_asked.length)
  }
  function decide(approval: Approval, { approved, always, mode: to }: Decided): void {
    const decided = decision(key, hub.device, sid, approval, approved, always)
    // The mode goes first: the agent goes on in it.
    tap(...(to === undefined || to === shown_mode ? [decided] : [modeChange(to), decided]))
  }
  function tap(...items: NewOutboxItem[]): void {
    setUnkept(undefined)
    hub.outbox.enqueue(items).catch((error: unknown) => setUnkept({ items, error }))
  }
  async function saveNote(change: Parameters<typeof document>[2]): Promise<string> {
    const item = document(key, sid, change)
    await hub.outbox.enqueue([item])
    return item.id
  }
  function discard(id: string): void {
    const item = outbox.find((other) => other.id === id)
    hub.outbox.discard(id)
    if (item?.shown.as !== 'prompt') return
    const { text } = item.shown
    const photos = photosOf(item.pictures ?? [], key, sid)
    // Nothing typed is lost: it goes back to where it was typed.
    if (!ended) return setInserted({ text, photos })
    void Promise.all([drafts.load(sid), drafts.photos(sid)]).then(async ([saved, others]) => {
      drafts.save(sid, joined(text, saved))
      await drafts.savePhotos(sid, [...photos, ...others]).catch(() => undefined)
      setReturned((count) => count + 1)
    })
  }
  const again = useCallback(
    () => tap(prompt(key, sid, { text: 'Continue.' })),
    // What `tap` reaches for never changes for one session.
    [key, sid],
  )

  const meta = session && hub.metaOf(sid, session.meta)
  const like = sameAgain(runners, {
    ...(place === undefined ? {} : { runner: place }),
    ...(meta && { workspace: meta.workspace, mode: meta.mode }),
  })
  const closeSheet = (): void => setSheet(undefined)
  const todos = readTodos(transcript.documents.get('todo')?.value ?? null)
  const todo = todos && todoWords(todos)
  const unsent_prompt = outbox.some(({ shown }) => shown.as === 'prompt')
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
        <SessionHead
          title={title}
          unknown={unknown}
          words={statusWords(session, transcript, holder?.online, place && name(place), move_asked)}
          wide={wide}
          ended={ended}
          place={place && name(place)}
          held={holds}
          mode={shown_mode ?? meta?.mode}
          changing={mode_asked !== undefined}
          onMode={() => setSheet('mode')}
          onMove={() => setSheet('move')}
          onMenu={() => setSheet('menu')}
        />
        {view.rolled_back && (
          <div className="bar" role="status">
            <p>
              The relay’s store was rolled back: this session was loaded again, and its end may be missing.
            </p>
          </div>
        )}
        <main className="session-main">
          {rows.length > 0 ? (
            <AgainContext value={removed === undefined && !unsent_prompt ? again : undefined}>
              <TranscriptList rows={rows} nameOf={name} />
            </AgainContext>
          ) : (
            <div className="empty">
              <p className="quiet">{emptyWords(view, session, connected, unsent)}</p>
              {unknown && (
                <Link to="/" className="button">
                  All sessions
                </Link>
              )}
            </div>
          )}
        </main>
        <div className="session-foot">
          <div className="approvals">
            {approvals.map((approval) => (
              <ApprovalCard
                key={approval.effect}
                approval={approval}
                always={alwaysOf(approval, transcript.access.get(approval.name), transcript.rules)}
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
                onDecide={(decided) => decide(approval, decided)}
                onRetry={(id) => hub.outbox.retry(id)}
              />
            ))}
          </div>
          {unkept && unkept.items.some((item) => isOpen(item, approvals, busy, ended)) && (
            <Unkept
              tap={unkept}
              onRetry={() => tap(...unkept.items)}
              onDiscard={() => setUnkept(undefined)}
            />
          )}
          {busy && todo && (
            <button type="button" className="todo-line small quiet" onClick={() => setSheet('notes')}>
              <span className="only-read">To do: </span>
              <span className="ellipsis">{todo}</span>
            </button>
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
          {unknown ? null : ended ? (
            <Ended key={returned} draft={sid} like={like} />
          ) : (
            <Composer
              draft={sid}
              placeholder={busy ? 'What next?' : 'Message'}
              action={action}
              offer={busy}
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
        {sheet === 'move' && !ended && (
          <MoveSheet runners={runners} holder={session?.holder} onMove={moveTo} onClose={closeSheet} />
        )}
        <Suspense fallback={null}>
          {sheet === 'mode' && !ended && (
            <ModeSheet
              mode={shown_mode ?? meta?.mode ?? 'ask'}
              removed={removed}
              onChoose={modeTo}
              onClose={closeSheet}
            />
          )}
          {sheet === 'menu' && (
            <SessionMenu
              transcript={transcript}
              models={runners.find(({ device }) => device === place)?.about?.models ?? []}
              ended={ended}
              compacting={outbox.some(({ shown, state }) => shown.as === 'compact' && state !== 'refused')}
              removed={removed}
              onSettings={(changed) => tap(settings(key, sid, changed))}
              onCompact={() => {
                setSheet(undefined)
                tap(compact(key, sid))
              }}
              onNotes={() => setSheet('notes')}
              onClose={closeSheet}
            />
          )}
          {sheet === 'notes' && (
            <Notes
              sid={sid}
              transcript={transcript}
              disabled={ended || removed !== undefined}
              onSave={saveNote}
              onClose={closeSheet}
            />
          )}
        </Suspense>
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
    const { lease, moving } = transcript
    const expired = lease?.change === 'expired'
    const texts = liveTexts(transcript)
    for (const [index, output] of liveOutputs(transcript)) {
      const item = rows[index]
      if (item?.kind === 'tool') rows[index] = { ...item, output }
    }
    for (const [effect, text] of texts) rows.push({ kind: 'live', id: `live${effect}`, text })
    if (hasEnded(session)) return rows
    const retry = retryOf(transcript)
    if (retry && !expired) rows.push({ kind: 'retrying', id: 'retrying', retry })
    else if (isThinking(transcript) && texts.length === 0 && !expired)
      rows.push({ kind: 'thinking', id: 'thinking' })
    const last = transcript.items.at(-1)
    if (session?.status === 'idle' && last?.kind === 'event' && last.tone === 'error' && last.code)
      rows.push({ kind: 'again', id: 'again' })
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
