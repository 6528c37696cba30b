/**
 * The transcript: a reading of the journal (design.md, Journal). A pure reducer turns opened entries into items; entries are
 * dense and numbered, so one that was reduced before changes nothing (F13). What is still open stands apart from `items`:
 * running model calls with their live text, pending approvals, a move on its way.
 */
import type { Access, DocumentState, Json, Mode } from '../guest.ts'
import type { Outcome, Intent, Received, EventEntry, Rule } from '../journal.ts'
import { readDocument } from './documents.ts'
import type { Read } from './entry.ts'
import { modeName } from './modes.ts'
import { readModelText, readToolResult, readApproval, readEventText } from './results.ts'
import type { Approval, EventItem, Handoff, Item, TextItem, ToolItem } from './items.ts'
import { addedUsage, countWords, readTurnUsage, type Usage } from './usage.ts'

/** An effect with an intent and no outcome. */
interface OpenEffect {
  kind: Intent['kind']
  attempt: number
  at: number
  /** Index of its item. */
  item?: number
  retry?: Retrying
}

/** An attempt that follows a failed one, and starts at `from`: milliseconds on the relay's clock. */
export interface Retrying {
  attempt: number
  code: string
  message: string
  from: number
}

export interface Moving {
  /** Where to, in words; empty when a runner leaves without a destination. */
  label: string
  at: number
  /** A model call runs and is finished first. */
  waits: boolean
}

export interface Transcript {
  /** Seq of the last entry reduced; 0: none. */
  seq: number
  items: readonly Item[]
  open: ReadonlyMap<number, OpenEffect>
  /** Live text of running model calls, by effect. */
  live: ReadonlyMap<number, string>
  /** Highest effect number seen. */
  effects: number
  /** Item of each granted approval whose call has not begun, by the approval's effect. */
  granted: ReadonlyMap<number, number>
  /** A move that was asked for and has not happened. */
  moving?: Moving
  /** The newest lease change, and who held the session last. */
  lease?: { change: 'claimed' | 'released' | 'expired'; holder: string; at: number }
  /** Bytes of the newest snapshot on the wire. */
  snapshot_bytes?: number
  workspace?: string
  mode?: Mode
  /** How many changes of the mode counted so far; the next one is signed with this number. */
  revision: number
  /** What the agent was told to be like, e.g. `model`, `effort`. */
  settings: { readonly [key: string]: Json }
  /** What each tool touches, as the runner told the agent at the start. */
  access: ReadonlyMap<string, Access>
  /** The newest version of each document. */
  documents: ReadonlyMap<string, DocumentState>
  /** Why the agent refused a person's change of a document, by the command's id; empty when it took the change. */
  answers: ReadonlyMap<string, string>
  /** Permission rules of the config at the start, then those that people gave with decisions. */
  rules: readonly Rule[]
  /** What the last turn and all turns have used. */
  usage?: { turn: Usage; session: Usage }
}

export const EMPTY: Transcript = {
  seq: 0,
  items: [],
  open: new Map(),
  live: new Map(),
  effects: 0,
  granted: new Map(),
  revision: 0,
  settings: {},
  access: new Map(),
  documents: new Map(),
  answers: new Map(),
  rules: [],
}

/** A transcript under change: `reduce` copies once a batch, not once an entry. */
type Draft = Omit<Transcript, 'items' | 'open' | 'live' | 'granted'> & {
  items: Item[]
  open: Map<number, OpenEffect>
  live: Map<number, string>
  granted: Map<number, number>
}

/** Adds entries, in order. Entries up to `transcript.seq` are ignored. */
export function reduce(transcript: Transcript, entries: readonly Read[]): Transcript {
  const fresh = entries.filter((entry) => entry.seq > transcript.seq)
  if (fresh.length === 0) return transcript
  const draft: Draft = {
    ...transcript,
    items: [...transcript.items],
    open: new Map(transcript.open),
    live: new Map(transcript.live),
    granted: new Map(transcript.granted),
  }
  for (const entry of fresh) {
    if (entry.seq <= draft.seq) continue
    draft.seq = entry.seq
    apply(draft, entry)
  }
  return draft
}

/**
 * Sets the live text of a running model call; `text` is whole each time. A delta may overtake its intent, so one for an
 * effect not seen yet is kept; one that comes after the outcome is dropped.
 */
export function withDelta(transcript: Transcript, effect: number, text: string): Transcript {
  const known = transcript.open.has(effect) || effect > transcript.effects
  if (!known || transcript.live.get(effect) === text) return transcript
  return { ...transcript, live: new Map(transcript.live).set(effect, text) }
}

/** Everything that waits for a decision, oldest first (F34, F35). */
export function pendingApprovals(transcript: Transcript): Approval[] {
  const pending: Approval[] = []
  for (const [, effect] of transcript.open) {
    if (effect.kind !== 'approve' || effect.item === undefined) continue
    const item = transcript.items[effect.item]
    if (item?.kind === 'tool' && item.approval)
      pending.push({ ...item.approval, name: item.name, input: item.input, at: item.at })
  }
  return pending
}

/** Is a model call under way? */
export function isThinking(transcript: Transcript): boolean {
  for (const effect of transcript.open.values()) if (effect.kind === 'llm') return true
  return false
}

/** Live text of running model calls, by effect. Of an effect that is not known yet nobody knows what it is. */
export function liveTexts({ live, open }: Transcript): [effect: number, text: string][] {
  return [...live].filter(([effect, text]) => text !== '' && open.get(effect)?.kind === 'llm')
}

/** The newest output of running calls, by their item's index. */
export function liveOutputs({ live, open }: Transcript): Map<number, string> {
  const outputs = new Map<number, string>()
  for (const [effect, text] of live) {
    const running = open.get(effect)
    if (running?.kind === 'tool' && running.item !== undefined && text !== '') outputs.set(running.item, text)
  }
  return outputs
}

/** The attempt of a model call that follows a failed one, until the model begins to answer. */
export function retryOf({ open, live }: Transcript): Retrying | undefined {
  for (const [effect, { kind, retry }] of open) if (kind === 'llm' && retry && !live.get(effect)) return retry
  return undefined
}

function apply(draft: Draft, entry: Read): void {
  switch (entry.kind) {
    case 'received':
      received(draft, entry.body, entry.seq, entry.at)
      return
    case 'intent':
      intent(draft, entry.body, entry.seq, entry.at)
      return
    case 'outcome':
      outcome(draft, entry.body, entry.seq, entry.at)
      return
    case 'snapshot':
      draft.snapshot_bytes = entry.body.bytes
      return
    case 'checkpoint':
      return
    case 'event':
      event(draft, entry.body, entry.seq, entry.at)
      return
    case 'lease':
      lease(draft, entry)
      return
    case 'unreadable':
      draft.items.push({ kind: 'unreadable', id: `e${entry.seq}`, at: entry.at })
  }
}

function received(draft: Draft, body: Received, seq: number, at: number): void {
  const id = `e${seq}`
  switch (body.kind) {
    case 'start':
      draft.workspace = body.command.workspace
      draft.mode = body.command.mode
      draft.settings = body.command.settings ?? {}
      draft.access = new Map(body.start?.tools.map(({ name, access }) => [name, access]))
      draft.rules = body.rules ?? []
      return
    case 'prompt':
      draft.items.push({
        kind: 'prompt',
        id,
        at,
        text: body.command.text,
        command: body.id,
        device: body.device,
        ...(body.command.images?.length ? { images: body.command.images } : {}),
      })
      return
    case 'stop':
      draft.items.push({ kind: 'stop', id, at, device: body.device })
      return
    case 'move':
      // To where it is already: it goes nowhere.
      if (draft.lease?.change === 'claimed' && draft.lease.holder === body.place.prefer) return
      draft.moving = { label: body.command.label, at, waits: false }
      return
    case 'decision':
      // What it decided shows in the approval's outcome; one that came too late changed nothing.
      if (body.late === undefined && body.command.always) draft.rules = [...draft.rules, body.command.always]
      return
    case 'mode':
      if (body.late !== undefined) {
        const text = `The mode was not changed: ${body.late}`
        draft.items.push({ kind: 'event', id, at, tone: 'quiet', text })
        return
      }
      draft.mode = body.command.mode
      draft.revision++
      draft.items.push({
        kind: 'event',
        id,
        at,
        tone: 'quiet',
        text: `Mode: ${modeName(body.command.mode)}.`,
      })
      return
    case 'settings': {
      draft.settings = { ...draft.settings, ...body.command.settings }
      const words = Object.entries(body.command.settings).map(([name, value]) => `${name} ${textOf(value)}`)
      draft.items.push({ kind: 'event', id, at, tone: 'quiet', text: `Set: ${words.join(', ')}.` })
      return
    }
    case 'compact':
      draft.items.push({ kind: 'event', id, at, tone: 'quiet', text: 'Compacting was asked for.' })
      return
    case 'document':
      // The agent answers with the event `document`, which says whether it counts.
      return
    case 'unreadable':
      draft.items.push({ kind: 'event', id, at, tone: 'quiet', text: body.why })
      return
    default:
      // A kind that is added and not shown here does not compile.
      body satisfies never
  }
}

function intent(draft: Draft, body: Intent, seq: number, at: number): void {
  draft.effects = Math.max(draft.effects, body.effect)
  const again = draft.open.get(body.effect)
  const open: OpenEffect = {
    kind: body.kind,
    attempt: body.attempt,
    at,
    ...(again?.item === undefined ? {} : { item: again.item }),
    ...(body.retry ? { retry: retryingOf(body, body.retry, at) } : {}),
  }
  draft.open.set(body.effect, open)
  if (again) {
    // Asked again by the next runner: what the first one streamed is void.
    draft.live.delete(body.effect)
    if (open.item !== undefined) change(draft, open.item, { attempt: body.attempt })
    return
  }
  if (body.kind === 'approve' && body.approve) {
    const { name, input, digest } = body.approve
    const item: ToolItem = {
      kind: 'tool',
      id: `e${seq}`,
      at,
      name,
      input,
      state: 'approval',
      attempt: 1,
      approval: { effect: body.effect, digest },
    }
    open.item = draft.items.push(item) - 1
  } else if (body.kind === 'tool' && body.tool) {
    const { name, input, approval } = body.tool
    // One line for a call and its approval.
    const waiting = approval === undefined ? undefined : draft.granted.get(approval)
    if (approval !== undefined && waiting !== undefined) {
      draft.granted.delete(approval)
      open.item = afterHandoff(draft, waiting)
      change(draft, open.item, {
        state: 'running',
        effect: body.effect,
        started_at: at,
        attempt: body.attempt,
      })
    } else {
      const item: ToolItem = {
        kind: 'tool',
        id: `e${seq}`,
        at,
        name,
        input,
        state: 'running',
        effect: body.effect,
        started_at: at,
        attempt: body.attempt,
      }
      open.item = draft.items.push(item) - 1
    }
  }
}

function retryingOf({ attempt, now }: Intent, retry: NonNullable<Intent['retry']>, at: number): Retrying {
  const { code, message, not_before } = retry
  return { attempt, code, message, from: at + Math.max(0, not_before - now) }
}

/** A call that was asked for before a handoff and runs after it stands where it runs. Returns its index then. */
function afterHandoff(draft: Draft, index: number): number {
  const item = draft.items[index]
  const handoff = draft.items.findLastIndex(({ kind }) => kind === 'handoff')
  if (!item || handoff < index) return index
  draft.items.splice(index, 1)
  renumber(draft, index + 1, -1)
  return draft.items.push(item) - 1
}

/** Items from index `first` on now stand `by` places further. */
function renumber(draft: Draft, first: number, by: 1 | -1): void {
  for (const [effect, open] of draft.open) {
    if (open.item !== undefined && open.item >= first)
      draft.open.set(effect, { ...open, item: open.item + by })
  }
  for (const [effect, item] of draft.granted) {
    if (item >= first) draft.granted.set(effect, item + by)
  }
}

function change(draft: Draft, index: number, values: Partial<ToolItem>): void {
  const item = draft.items[index]
  if (item?.kind === 'tool') draft.items[index] = { ...item, ...values }
}

function outcome(draft: Draft, body: Outcome, seq: number, at: number): void {
  draft.effects = Math.max(draft.effects, body.effect)
  draft.live.delete(body.effect)
  const open = draft.open.get(body.effect)
  // At most one outcome an effect (I4); a second one, or one without intent, has nothing to settle.
  if (!open) return
  draft.open.delete(body.effect)
  if (open.kind === 'llm') modelOutcome(draft, open, body, seq, at)
  else if (open.kind === 'tool' && open.item !== undefined) toolOutcome(draft, open.item, body, at)
  else if (open.kind === 'approve' && open.item !== undefined) approvalOutcome(draft, open.item, body, at)
}

function modelOutcome(draft: Draft, open: OpenEffect, body: Outcome, seq: number, at: number): void {
  const id = `e${seq}`
  const repeated = body.repeated ?? 0
  if (body.error) {
    const partial = body.partial?.trim() ?? ''
    if (partial !== '')
      saidBeforeStop(draft, open, { kind: 'text', id: `${id}p`, at, text: partial, repeated })
    const { code, message } = body.error
    if (code !== 'stopped') draft.items.push({ kind: 'event', id, at, tone: 'error', text: message, code })
    return
  }
  if (body.blob) {
    draft.items.push({ kind: 'text', id, at, text: '', blob: body.blob, repeated })
    return
  }
  const text = readModelText(body.result)
  if (text !== '') draft.items.push({ kind: 'text', id, at, text, repeated })
}

/** The stop is received before the outcome is written, but what it cut off was said, and shown, before it. */
function saidBeforeStop(draft: Draft, open: OpenEffect, said: TextItem): void {
  const stop = draft.items.findLastIndex(({ kind, at }) => kind === 'stop' && at >= open.at)
  if (stop < 0) {
    draft.items.push(said)
    return
  }
  draft.items.splice(stop, 0, said)
  renumber(draft, stop, 1)
}

function toolOutcome(draft: Draft, index: number, body: Outcome, at: number): void {
  const done = { ended_at: at, ...(body.duration_ms === undefined ? {} : { duration_ms: body.duration_ms }) }
  if (body.error) {
    const { code } = body.error
    const state = code === 'interrupted' || code === 'stopped' ? code : 'error'
    change(draft, index, { ...done, state, error: body.error })
  } else if (body.blob) {
    change(draft, index, { ...done, state: 'ok', blob: body.blob })
  } else {
    const result = readToolResult(body.result)
    change(draft, index, { ...done, state: result.is_error ? 'error' : 'ok', result })
  }
}

function approvalOutcome(draft: Draft, index: number, body: Outcome, at: number): void {
  if (body.error) {
    const state = body.error.code === 'stopped' ? 'stopped' : 'error'
    change(draft, index, { state, error: body.error, ended_at: at })
    return
  }
  const decided = readApproval(body.result)
  const item = draft.items[index]
  if (item?.kind !== 'tool' || !item.approval) return
  const approval = { ...item.approval, decided: { ...decided, at } }
  // A call of the agent's own, a plan say, is done with the decision; no tool runs after it.
  const own = draft.access.size > 0 && !draft.access.has(item.name)
  if (decided.approved && own) {
    change(draft, index, { state: 'ok', approval, ended_at: at })
  } else if (decided.approved) {
    change(draft, index, { state: 'approved', approval })
    draft.granted.set(item.approval.effect, index)
  } else {
    change(draft, index, { state: 'denied', approval, ended_at: at })
  }
}

/** They show elsewhere: in the head, as the handoff that follows, as prompt and answer, among the documents. */
const SHOWN_ELSEWHERE = new Set(['title', 'moving', 'turn', 'document'])

const textOf = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value))

function document(draft: Draft, data: Json): void {
  const state = readDocument(data)
  if (!state) return
  draft.documents = new Map(draft.documents).set(state.name, state)
  if (state.command !== undefined) {
    draft.answers = new Map(draft.answers).set(state.command, state.refused ?? '')
  }
}

function usage(draft: Draft, data: Json): void {
  const turn = readTurnUsage(data)
  if (turn) draft.usage = { turn, session: draft.usage ? addedUsage(draft.usage.session, turn) : turn }
}

function event(draft: Draft, body: EventEntry, seq: number, at: number): void {
  if (body.effect !== undefined) draft.effects = Math.max(draft.effects, body.effect)
  if (body.type === 'moving') draft.moving = movingOf(body.data, draft.moving, at)
  if (body.type === 'arrived' && body.effect === undefined) {
    delete draft.moving
    return
  }
  if (body.type === 'document' && body.effect !== undefined) document(draft, body.data)
  if (body.type === 'turn' && body.effect !== undefined) usage(draft, body.data)
  if (SHOWN_ELSEWHERE.has(body.type)) return
  const item: EventItem = { kind: 'event', id: `e${seq}`, at, ...eventWords(body) }
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

/** `compacted · 152k → 9.1k tokens` */
function compactedWords({ before, after }: { [key: string]: Json }): string {
  if (typeof before !== 'number' || typeof after !== 'number') return 'compacted'
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

function lease(draft: Draft, entry: Extract<Read, { kind: 'lease' }>): void {
  const before = draft.lease
  const { change: now, holder } = entry.lease
  draft.lease = { change: now, holder, at: entry.at }
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
