/**
 * What this device wants from the relay and has not seen done yet: a durable queue, in order per session. Ids are fixed when
 * an item is queued, so that sending it again changes nothing (I6, F12). Pure functions; net/sender.ts does the work.
 *
 *   queued ──send──▸ sent ──answer──▸ acknowledged ──`received` entry──▸ gone
 *      ▴               ├──connection lost: unknown──▸ queued (same id)
 *      └──retry── refused ◂──refusal that waiting can't heal
 */
import type { ErrorCode } from '@baton/shared/errors.ts'
import type { BlobBox } from '@baton/shared/blobs.ts'
import type { ImageRef, Mode } from '@baton/shared/guest.ts'
import type { CommandKind, Placement } from '@baton/shared/protocol.ts'

export type OutboxAsk =
  | { what: 'create'; meta: string; place: Placement }
  | { what: 'command'; kind: CommandKind; body: string; place?: Placement }

/** What the person sees of it. */
export type OutboxShown =
  | { as: 'prompt'; text: string; steer?: boolean }
  | { as: 'decision'; effect: number; approved: boolean }
  | { as: 'move'; label: string }
  | { as: 'stop' }
  | { as: 'mode'; mode: Mode }
  | { as: 'settings' }
  | { as: 'compact' }
  | { as: 'document'; name: string }
  | { as: 'hidden' }

export interface OutboxItem {
  /** The command's id; for `create` the session's. */
  id: string
  /** Order of queueing on this device. */
  n: number
  sid: string
  ask: OutboxAsk
  shown: OutboxShown
  /** Pictures that it names; they are stored before it goes, and kept here until it has gone. */
  pictures?: readonly Picture[]
  state: 'queued' | 'sent' | 'acknowledged' | 'refused'
  /** It has left this device once, and no answer came: the relay may have it. */
  tried?: boolean
  /** Milliseconds since 1970 on this device; for display only. */
  queued_at: number
  error?: { code: ErrorCode; message: string }
}

export type NewOutboxItem = Pick<OutboxItem, 'id' | 'sid' | 'ask' | 'shown' | 'pictures'>

/** A picture sealed for its session. */
export type Picture = BlobBox & Pick<ImageRef, 'media_type'>

/** Refusals that pass by themselves: the same ask is sent again later. */
const PASSING: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  'offline',
  'timeout',
  'too-fast',
  'store-down',
  'internal',
  'not-signed-in',
])

export function isPassing(code: ErrorCode): boolean {
  return PASSING.has(code)
}

export function enqueued(
  items: readonly OutboxItem[],
  fresh: readonly NewOutboxItem[],
  now: number,
): OutboxItem[] {
  const last = items.at(-1)?.n ?? 0
  return [
    ...items,
    ...fresh.map((item, i): OutboxItem => ({ ...item, n: last + 1 + i, state: 'queued', queued_at: now })),
  ]
}

function isHead(kind: OutboxAsk): boolean {
  return kind.what === 'create' || kind.kind === 'start'
}

function isPrompt({ ask }: OutboxItem): boolean {
  return ask.what === 'command' && ask.kind === 'prompt'
}

/**
 * What may be sent now, oldest first: at most one item a session is on its way. A refused head holds everything of its
 * session back. A refused prompt holds later prompts, because their order is what the person meant, but not a stop, a
 * decision or a move.
 */
export function sendable(items: readonly OutboxItem[]): OutboxItem[] {
  const ready: OutboxItem[] = []
  const held = new Map<string, 'all' | 'prompts'>()
  for (const item of items) {
    if (item.state === 'acknowledged') continue
    const before = held.get(item.sid)
    if (before === 'all' || (before === 'prompts' && isPrompt(item))) continue
    const refused = item.state === 'refused'
    if (item.state === 'queued') ready.push(item)
    // A refused decision, stop or move stands for itself alone.
    if (!refused || isHead(item.ask)) held.set(item.sid, 'all')
    else if (isPrompt(item)) held.set(item.sid, 'prompts')
  }
  return ready
}

export function withState(
  items: readonly OutboxItem[],
  id: string,
  state: OutboxItem['state'],
  error?: OutboxItem['error'],
): OutboxItem[] {
  return items.map((item) => {
    if (item.id !== id) return item
    const { error: _old, ...rest } = item
    return error ? { ...rest, state, error } : { ...rest, state }
  })
}

/** After a lost connection or a reload nobody knows what became of `sent`: it goes again, with the same id. */
export function resendUnknown(items: readonly OutboxItem[]): OutboxItem[] {
  return items.map((item) => (item.state === 'sent' ? { ...item, state: 'queued' } : item))
}

/** Drops the commands that the journal shows as applied. */
export function withoutApplied(
  items: readonly OutboxItem[],
  applied: ReadonlySet<string>,
): readonly OutboxItem[] {
  const rest = items.filter((item) => item.ask.what !== 'command' || !applied.has(item.id))
  return rest.length === items.length ? items : rest
}

/** May a person take it back? Not what the relay has or may have: it would be carried out all the same (I6). */
export function isHere({ state, tried }: OutboxItem): boolean {
  return state === 'refused' || (state === 'queued' && tried !== true)
}

/** Marks an item as on its way, before it goes. */
export function withTried(items: readonly OutboxItem[], id: string): OutboxItem[] {
  return items.map((item) => (item.id === id ? { ...item, tried: true } : item))
}

/** Discarding the head of a session that never came to be discards the session's other items with it. */
export function discarded(items: readonly OutboxItem[], id: string): readonly OutboxItem[] {
  const gone = items.find((item) => item.id === id)
  if (!gone) return items
  return items.filter((item) => item.id !== id && !(isHead(gone.ask) && item.sid === gone.sid))
}
