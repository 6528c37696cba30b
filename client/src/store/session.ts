/** What is said of one session on its screen: title, place, status. Pure. */
import type { SessionInfo } from '@baton/shared/protocol.ts'
import { hasEnded as isOver } from '@baton/shared/view/sessions.ts'
import type { Transcript } from '@baton/shared/view/transcript.ts'
import { movingWords } from '@baton/shared/view/words.ts'
import type { OutboxItem } from './outbox.ts'

/** The agent is through, or can't go on: the relay takes no more commands (`session-ended`). */
export function hasEnded(session: SessionInfo | undefined): boolean {
  return session !== undefined && isOver(session)
}

/** Where the session runs, ran last, or shall run. */
export function placeOf(
  session: SessionInfo | undefined,
  transcript: Transcript,
  outbox: readonly OutboxItem[],
): string | undefined {
  if (session) return session.holder ?? transcript.lease?.holder ?? session.place.prefer
  const created = outbox.find(({ ask }) => ask.what === 'create')
  return created?.ask.what === 'create' ? created.ask.place.prefer : undefined
}

export function titleOf(
  metaOf: (sid: string, sealed: string) => { title: string } | undefined,
  session: SessionInfo | undefined,
  outbox: readonly OutboxItem[],
  sid: string,
): string {
  const created = outbox.find(({ ask }) => ask.what === 'create')
  const meta = session?.meta ?? (created?.ask.what === 'create' ? created.ask.meta : undefined)
  return (meta === undefined ? undefined : metaOf(sid, meta)?.title) ?? 'Session'
}

/** What the session was asked first; what waits here counts, when nothing was heard. */
export function firstPrompt(transcript: Transcript, outbox: readonly OutboxItem[]): string | undefined {
  const heard = transcript.items.find((item) => item.kind === 'prompt')
  const queued = outbox.find(({ shown }) => shown.as === 'prompt')?.shown
  return heard?.text ?? (queued?.as === 'prompt' ? queued.text : undefined)
}

/** Did that fail which a person asked for with "Compact now"? Then that is tried again, not the turn before it. */
export function isFailedCompaction({ items }: Transcript): boolean {
  const before = items.findLast((item) => item.kind !== 'event' || item.asked !== undefined)
  return before?.kind === 'event' && before.asked === 'compact'
}

/** The last turn ended in an error: it rests, and a tap goes on. */
export function hasTrouble({ items }: Transcript): boolean {
  const last = items.at(-1)
  return last?.kind === 'event' && last.tone === 'error' && last.code !== undefined
}

export function statusWords(
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
      return online === false ? 'No answer' : 'Working'
    case 'waiting':
      return 'Waits for you'
    case 'moving':
      return 'Moving'
    case 'idle':
      if (session.pending > 0) return 'Waits for a runner'
      return hasTrouble(transcript) ? 'Error' : 'Ready'
  }
}

export function emptyWords(
  view: { transcript: Transcript; refused?: unknown },
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
