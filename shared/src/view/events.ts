/** What agent and runner tell, and who holds the session, read into a transcript. */
import type { Json } from '../guest.ts'
import type { EventEntry } from '../journal.ts'
import { readDocument } from './documents.ts'
import type { Read } from './entry.ts'
import type { EventItem, Handoff } from './items.ts'
import type { Draft, Moving } from './model.ts'
import { readEventText } from './results.ts'
import { countWords, withTurn } from './usage.ts'

/** They show elsewhere: in the head, as the handoff that follows, as prompt and answer, among the documents. */
const SHOWN_ELSEWHERE = new Set(['title', 'moving', 'turn', 'document'])

function document(draft: Draft, data: Json): void {
  const state = readDocument(data)
  if (!state) return
  draft.documents = new Map(draft.documents).set(state.name, state)
  if (state.command !== undefined) {
    draft.answers = new Map(draft.answers).set(state.command, state.refused ?? '')
  }
}

function usage(draft: Draft, data: Json): void {
  const used = withTurn(draft.usage, data)
  if (used) draft.usage = used
}

export function event(draft: Draft, body: EventEntry, seq: number, at: number): void {
  if (body.effect !== undefined) draft.effects = Math.max(draft.effects, body.effect)
  if (body.type === 'moving') draft.moving = movingOf(body.data, draft.moving, at)
  if (body.type === 'arrived' && body.effect === undefined) {
    delete draft.moving
    return
  }
  if (body.type === 'document' && body.effect !== undefined) document(draft, body.data)
  if (body.type === 'turn' && body.effect !== undefined) usage(draft, body.data)
  if (SHOWN_ELSEWHERE.has(body.type)) return
  const teller = body.type === 'notice' && body.effect === undefined ? draft.lease?.holder : undefined
  const item: EventItem = {
    ...{ kind: 'event', id: `e${seq}`, at, ...eventWords(body) },
    ...(teller === undefined ? {} : { device: teller }),
  }
  const last = draft.items.at(-1)
  // The agent tells of the failure that its outcome has told of: once is enough.
  const again = last?.kind === 'event' && last.tone === 'error' && last.code === item.code
  if (again && item.tone === 'error' && item.code !== undefined)
    draft.items[draft.items.length - 1] = { ...last, ...item, id: last.id }
  else draft.items.push(item)
}

function eventWords({ type, data, effect }: EventEntry): Omit<EventItem, 'kind' | 'id' | 'at'> {
  const known = fieldsOf(data)
  switch (type) {
    case 'done':
      return { tone: 'quiet', text: 'The agent has ended.' }
    case 'error':
    case 'failed':
      return {
        tone: 'error',
        text: readEventText(data) || type,
        ...(typeof known['code'] === 'string' ? { code: known['code'] } : {}),
        ...(typeof known['todo'] === 'string' ? { todo: known['todo'] } : {}),
      }
    case 'compacted':
      if (effect === undefined) break
      return { tone: 'quiet', text: compactedWords(known), divides: true }
  }
  return { tone: 'quiet', text: readEventText(data) || type }
}

/** `compacted · 152k → 9.1k tokens`; a short conversation can grow by it, and then only what it takes now is said. */
function compactedWords({ before, after }: { [key: string]: Json }): string {
  if (typeof before !== 'number' || typeof after !== 'number') return 'compacted'
  if (after >= before) return `compacted · now ${countWords(after)} tokens`
  return `compacted · ${countWords(before)} → ${countWords(after)} tokens`
}

function fieldsOf(data: Json): { [key: string]: Json } {
  return data !== null && typeof data === 'object' && !Array.isArray(data) ? data : {}
}

function movingOf(data: Json, asked: Moving | undefined, at: number): Moving {
  const { to, waits } = fieldsOf(data)
  return {
    label: typeof to === 'string' && to !== '' ? to : (asked?.label ?? ''),
    at: asked?.at ?? at,
    waits: Array.isArray(waits) && waits.includes('llm'),
  }
}

export function lease(draft: Draft, entry: Extract<Read, { kind: 'lease' }>): void {
  const before = draft.lease
  const { change: now, holder } = entry.lease
  draft.lease = { change: now, holder, at: entry.at }
  // They stay behind when the session leaves its machine, or rests.
  if (now !== 'claimed') delete draft.jobs
  if (now !== 'claimed') return
  delete draft.moving
  if (!before) return
  const same = before.holder === holder
  // Parked and woken on one runner: nothing went anywhere.
  if (same && before.change === 'released') return
  const how: Handoff['how'] = before.change === 'released' ? 'moved' : same ? 'back' : 'took-over'
  draft.items.push({
    kind: 'handoff',
    id: `e${entry.seq}`,
    at: entry.at,
    how,
    from: before.holder,
    to: holder,
    gap_ms: Math.max(0, entry.at - before.at),
    ...(how === 'moved' && draft.snapshot_bytes !== undefined ? { bytes: draft.snapshot_bytes } : {}),
  })
}
