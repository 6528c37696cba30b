/**
 * What a session's journal says, folded entry by entry: which effects are open, which messages still wait for the guest,
 * which approvals may be used, where the checkpoint is. Pure: the writer folds what it has just written, a
 * successor folds what it reads, and both get the same.
 */
import type { CheckpointEntry, Copied, Intent, Mode, Outcome, Received, Rule } from '@baton/shared/journal.ts'
import type { Status } from '@baton/shared/protocol.ts'
import type { Opened } from '@baton/shared/entries.ts'

export interface OpenEffect {
  seq: number
  intent: Intent
}

/** A message for the guest that stands in the journal. `effect`: whose outcome it is. */
export interface Deliverable {
  seq: number
  effect?: number
  entry: { kind: 'outcome'; body: Outcome } | { kind: 'received'; body: Received }
}

export interface SessionState {
  /** Seq of the last folded entry. */
  tail: number
  /** Seq of the `received` that carries the start message. */
  start: number
  /** How often the session was claimed. */
  claims: number
  /** The runner before did not let go: its lease ran out. */
  wasCut: boolean
  /** Intents without outcome, by effect; of several attempts the newest. */
  open: Map<number, OpenEffect>
  /** Digests of the intents that were read or written, by effect, for the check on replay. */
  digests: Map<number, string>
  /** How often the guest fell with its thread since the snapshot that this began with (F27). */
  falls: number
  /** Effects of `event` entries. */
  emitted: Set<number>
  /** What the guest has not got yet, in journal order. */
  queue: Deliverable[]
  /** Approvals given and not used yet: effect → digest of the call. */
  approvals: Map<number, string>
  checkpoint: { seq: number; entry: CheckpointEntry } | undefined
  /** `revision` counts the changes that people made. */
  mode: { value: Mode; revision: number }
  /** Rules that people gave with decisions. */
  rules: Rule[]
  /** Seq of the newest Stop. What had its intent before then is not begun again (H10). */
  stopped: number
  /** Where the copied history ends that the session began with. */
  copied: (Copied & { seq: number }) | undefined
}

export function emptyState(): SessionState {
  return {
    tail: 0,
    start: 0,
    claims: 0,
    wasCut: false,
    open: new Map(),
    digests: new Map(),
    falls: 0,
    emitted: new Set(),
    queue: [],
    approvals: new Map(),
    checkpoint: undefined,
    mode: { value: 'ask', revision: 0 },
    rules: [],
    stopped: 0,
    copied: undefined,
  }
}

/** Folds one entry into the state. Entries come in order. */
export function fold(state: SessionState, entry: Opened): void {
  state.tail = entry.seq
  switch (entry.kind) {
    case 'received':
      foldReceived(state, entry.seq, entry.body)
      return
    case 'intent':
      state.open.set(entry.body.effect, { seq: entry.seq, intent: entry.body })
      state.digests.set(entry.body.effect, entry.body.digest)
      if (entry.body.tool?.approval !== undefined) state.approvals.delete(entry.body.tool.approval)
      return
    case 'outcome':
      foldOutcome(state, entry.seq, entry.body)
      return
    case 'checkpoint':
      state.checkpoint = { seq: entry.seq, entry: entry.body }
      return
    case 'event':
      if (entry.body.effect !== undefined) state.emitted.add(entry.body.effect)
      else if (entry.body.type === 'fallen') state.falls++
      return
    case 'lease':
      if (entry.lease.change === 'claimed') state.claims++
      else state.wasCut = entry.lease.change === 'expired'
      return
    case 'snapshot':
  }
}

function foldReceived(state: SessionState, seq: number, body: Received): void {
  switch (body.kind) {
    case 'start':
      if (body.copied) {
        // What was approved in the origin was approved for once.
        state.approvals.clear()
        state.copied = { ...body.copied, seq }
        break
      }
      // A second start, sent by mistake, is consumed without a message and starts nothing.
      if (!body.start && !body.start_blob) return
      state.start = seq
      state.mode = { value: body.command.mode, revision: 0 }
      break
    case 'mode':
      if (body.late !== undefined) return
      state.mode = { value: body.command.mode, revision: state.mode.revision + 1 }
      break
    case 'decision':
      if (body.late === undefined && body.command.always) state.rules.push(body.command.always)
      return
    case 'stop':
      state.stopped = seq
      break
    case 'settings':
    case 'compact':
    case 'document':
      break
    // A prompt and a decision reach the guest as the outcome of the effect that waits for them.
    default:
      return
  }
  state.queue.push({ seq, entry: { kind: 'received', body } })
}

/** The new random numbers that a copy begins with: the guest takes them wherever it rests. */
export function reseedOf({ entry }: Deliverable): Copied | undefined {
  return entry.kind === 'received' && entry.body.kind === 'start' ? entry.body.copied : undefined
}

function foldOutcome(state: SessionState, seq: number, body: Outcome): void {
  const approve = state.open.get(body.effect)?.intent.approve
  if (approve && isApproved(body)) state.approvals.set(body.effect, approve.digest)
  state.open.delete(body.effect)
  state.queue.push({ seq, effect: body.effect, entry: { kind: 'outcome', body } })
}

/** By a person. What mode or rules allowed by themselves they decide anew when the call comes: they may have changed. */
function isApproved({ result }: Outcome): boolean {
  if (typeof result !== 'object' || result === null || Array.isArray(result)) return false
  return result['approved'] === true && typeof result['device'] === 'string'
}

/** What the relay is told: `running` while a model call or tool is open or `busy`, else what the session waits for. */
export function statusOf(state: SessionState, busy: boolean): Status {
  const open = Array.from(state.open.values(), ({ intent }) => intent)
  // A turn under way listens for a steering prompt all the time.
  const kinds = new Set(open.filter(({ prompt }) => prompt?.steer !== true).map(({ kind }) => kind))
  if (kinds.has('approve')) return 'waiting'
  if (busy || kinds.has('llm') || kinds.has('tool') || kinds.has('sleep')) return 'running'
  return kinds.has('prompt') ? 'idle' : 'running'
}

/** Is there nothing open but what only a person can answer? */
export function waitsForPerson({ open }: Pick<SessionState, 'open'>): boolean {
  return Array.from(open.values()).every(
    ({ intent }) => intent.kind === 'prompt' || intent.kind === 'approve',
  )
}
