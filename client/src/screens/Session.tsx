import { readTodos, todoWords } from '@baton/shared/view/documents.ts'
import type { Approval } from '@baton/shared/view/items.ts'
import { isTaking } from '@baton/shared/view/runners.ts'
import { pendingApprovals } from '@baton/shared/view/transcript.ts'
import { useCallback, useEffect, useMemo, useRef, useState, type ReactElement } from 'react'
import { compact, prompt, stop } from '../net/commands.ts'
import { Live } from '../net/live.ts'
import { AgainContext } from '../parts/again.ts'
import { Announcer } from '../parts/Announcer.tsx'
import { ApprovalCard, whereWords } from '../parts/ApprovalCard.tsx'
import { Composer } from '../parts/Composer.tsx'
import { Ended } from '../parts/Ended.tsx'
import { useCell, useDevices, useOffline, usePaired, useRemoved, useRunners } from '../parts/hooks.ts'
import { Link } from '../parts/Link.tsx'
import { sameAgain } from '../parts/NewSession.tsx'
import { Queue } from '../parts/Queue.tsx'
import { useRows } from '../parts/rows.ts'
import { SessionHead } from '../parts/SessionHead.tsx'
import { SessionSheets, type SheetName } from '../parts/SessionSheets.tsx'
import { SidContext } from '../parts/sid.ts'
import { useTaps } from '../parts/taps.ts'
import { TranscriptList } from '../parts/TranscriptList.tsx'
import { Unkept } from '../parts/Unkept.tsx'
import { nameOf, type Runner } from '../store/account.ts'
import { joined } from '../store/drafts.ts'
import type { NewOutboxItem } from '../store/outbox.ts'
import { photosOf, type Photo } from '../store/photos.ts'
import { alwaysOf } from '../store/rule-words.ts'
import {
  emptyWords,
  firstPrompt,
  hasEnded,
  isFailedCompaction,
  placeOf,
  statusWords,
  titleOf,
} from '../store/session.ts'

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
  const offline = useOffline()
  const removed = useRemoved()
  const listed = useCell(hub.listed)
  const session = useCell(hub.seen).sessions.find((other) => other.sid === sid)
  const outbox = useCell(hub.outbox.items).filter((item) => item.sid === sid)
  const runners = useRunners()
  const devices = useDevices()
  const [sheet, setSheet] = useState<SheetName | undefined>()
  const [inserted, setInserted] = useState<{ text: string; photos: readonly Photo[] } | undefined>()
  const [returned, setReturned] = useState(0)
  const [sent, setSent] = useState(0)

  const { transcript } = view
  const key = hub.keyOf(sid)
  const taps = useTaps(sid, transcript, outbox)
  const { unkept, tap } = taps
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
  const silent =
    session?.holder !== undefined && holder?.online === false && !ended ? name(session.holder) : undefined
  const heirs = session?.place.pin !== true && runners.some(isTaking)
  const rows = useRows(transcript, session, name, silent, heirs)
  const busy = session?.status === 'running' || session?.status === 'waiting' || session?.status === 'moving'
  const unsent = outbox.length > 0
  const existed = useRef(false)
  if (session || unsent || rows.length > 0) existed.current = true
  // The relay knows of none, and nothing here ever said that there is one. One that is just being created stays as it is.
  const unknown = view.refused !== undefined && !existed.current
  const title = unknown ? 'No such session' : titleOf(hub.metaOf, session, outbox, sid)
  const stopping = outbox.some(({ shown, state }) => shown.as === 'stop' && state !== 'refused')

  function discard(id: string): void {
    const item = outbox.find((other) => other.id === id)
    // It may have gone in this very moment.
    if (!hub.outbox.takeBack(id) || item?.shown.as !== 'prompt') return
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
  const compacts = isFailedCompaction(transcript)
  const again = useCallback(
    () => tap(compacts ? compact(key, sid) : prompt(key, sid, { text: 'Continue.' })),
    // What `tap` reaches for never changes for one session.
    [key, sid, compacts],
  )

  const meta = session && hub.metaOf(sid, session.meta)
  const like = sameAgain(runners, {
    ...(place === undefined ? {} : { runner: place }),
    ...(meta && { workspace: meta.workspace, mode: meta.mode }),
  })
  const mode = taps.mode ?? meta?.mode
  const said = firstPrompt(transcript, outbox) ?? view.waiting[0]?.text
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
          words={
            offline
              ? 'Offline'
              : statusWords(session, transcript, holder?.online, place && name(place), move_asked)
          }
          wide={wide}
          ended={ended}
          place={place && name(place)}
          online={!offline && runners.some(isOnline(place))}
          mode={mode}
          changing={taps.isChangingMode}
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
              <TranscriptList rows={rows} nameOf={name} sent={sent} />
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
                onDecide={(decided) => taps.decide(approval, decided)}
                onRetry={(id) => hub.outbox.retry(id)}
              />
            ))}
          </div>
          {unkept && unkept.items.some((item) => isOpen(item, approvals, busy, ended)) && (
            <Unkept tap={unkept} onRetry={() => tap(...unkept.items)} onDiscard={taps.forget} />
          )}
          {busy && todo && (
            <button type="button" className="todo-line small quiet" onClick={() => setSheet('notes')}>
              <span className="only-read">To do: </span>
              <span className="ellipsis">{todo}</span>
            </button>
          )}
          {!ended &&
            [...(transcript.jobs ?? [])].map(([id, command]) => (
              <button
                key={id}
                type="button"
                className="todo-line small quiet"
                aria-label={`Job: ${command}. Ask the agent to stop it`}
                onClick={() => setInserted({ text: `Stop the background job ${id}.`, photos: [] })}
              >
                <span className="ellipsis">
                  Job: <code>{command}</code>
                </span>
                <span className="job-stop">Stop…</span>
              </button>
            ))}
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
            <Ended key={returned} draft={sid} like={like} said={said} />
          ) : (
            <Composer
              draft={sid}
              placeholder={busy ? 'What next?' : 'Message'}
              busy={busy}
              stopping={stopping}
              inserted={inserted}
              onSend={async (said) => {
                await taps.send(said)
                setSent((count) => count + 1)
              }}
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
        <SessionSheets
          sheet={sheet}
          onSheet={setSheet}
          taps={taps}
          sid={sid}
          session={session}
          transcript={transcript}
          outbox={outbox}
          runners={runners}
          place={place}
          mode={mode}
          ended={ended}
          removed={removed}
        />
      </div>
    </SidContext>
  )
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
