/** Writes a live session's journal: appends and folds in one step, composes snapshot entries, reads messages for the guest. */
import type { BlobStore } from '@baton/shared/blobs.ts'
import { fromUtf8, utf8 } from '@baton/shared/bytes.ts'
import type { GuestMessage, Json } from '@baton/shared/guest.ts'
import { BatonError } from '@baton/shared/errors.ts'
import { blobsOfSnapshot, type Outcome, type Received, type SnapshotEntry } from '@baton/shared/journal.ts'
import { LIMITS, type Status } from '@baton/shared/protocol.ts'
import type { Opened } from '@baton/shared/entries.ts'
import type { Draft, Journal } from './journal.ts'
import type { Live } from './live.ts'
import type { Snapshots } from './snapshots.ts'
import { readStart } from './start-message.ts'
import { fold, statusOf, type Deliverable, type SessionState } from './state.ts'

export class Book {
  readonly journal: Journal
  readonly blobs: BlobStore
  readonly #snapshots: Snapshots

  constructor(journal: Journal, blobs: BlobStore, snapshots: Snapshots) {
    this.journal = journal
    this.blobs = blobs
    this.#snapshots = snapshots
  }

  /**
   * Writes drafts in order and folds them, all or none of what fits into one frame. The last one tells the relay what the
   * session then waits for.
   */
  async append(live: Live, drafts: Draft[]): Promise<void> {
    for (const batch of batchesOf(drafts)) await this.#append(live, batch)
  }

  async #append(live: Live, drafts: Draft[]): Promise<void> {
    const last = drafts.at(-1)
    if (!last) return
    const status = last.hint?.status ?? statusAfter(live.state, drafts)
    const first = await this.journal.append([
      ...drafts.slice(0, -1),
      { ...last, hint: { ...last.hint, status } },
    ])
    drafts.forEach((draft, i) => {
      const seq = first + i
      fold(live.state, { kind: draft.kind, seq, at: 0, body: draft.body } as Opened)
      if (draft.kind === 'snapshot') {
        live.previous = live.snapshot
        live.snapshot = seq
        if (draft.body.agent) live.agent_at = seq
        if (draft.body.state === 'baseline') live.baseline_at = seq
        live.isLean = draft.body.lean === true
      }
      if (draft.kind === 'outcome') void live.here?.attempts?.ended(draft.body.effect)
      // Nobody waits for it: closing the workspace does.
      if (draft.kind === 'checkpoint') {
        const { body } = draft
        live.workspace.then((workspace) => workspace.confirm?.(body)).catch(() => undefined)
      }
    })
  }

  /**
   * Saves the paused guest and composes the entry. It covers the journal as it stands: intents written in the same append
   * come after it and are read again on restore. Only a runner that leaves knows what it will not come to any more: another one
   * may begin it right after this, and its successor has to tell that it is begun again (I8). What rests is saved lean, and alone:
   * the relay keeps nothing of earlier ones, and should it prove bad all is replayed from the baseline (F28).
   */
  async snapshotDraft(live: Live, why: 'goes-on' | 'leaves' | 'rests' = 'goes-on'): Promise<Draft> {
    const lean = why === 'rests'
    const { snapshot, chain, bytes } = await this.#snapshots.save(live.harness, lean)
    const isAlone = lean && live.baseline_at > 0
    live.dirty = false
    const { state, on } = snapshot.header
    const asks = live.carried.length > 0 ? await this.#store(live.carried) : undefined
    const unstarted = why === 'goes-on' ? [] : unstartedOf(live)
    const body: SnapshotEntry = {
      ...{ chain, bytes, state, covers: this.journal.tail, asked: live.asked },
      ...(live.agent_at > 0 ? { agent_at: live.agent_at } : { agent: live.agent }),
      ...(on === undefined ? {} : { on }),
      ...(asks === undefined ? {} : { asks }),
      undelivered: live.state.queue.map((deliverable) => deliverable.seq),
      start: live.state.start,
      open: Array.from(live.state.open.values(), (open) => open.seq),
      previous: isAlone ? live.baseline_at : live.snapshot,
      approvals: Array.from(live.state.approvals, ([effect, digest]) => ({ effect, digest })),
      mode: live.state.mode,
      rules: live.state.rules,
      ...(live.state.stopped > 0 ? { stopped: live.state.stopped } : {}),
      ...(live.state.copied ? { copied: live.state.copied.seq } : {}),
      ...(unstarted.length > 0 ? { unstarted } : {}),
      ...(lean ? { lean } : {}),
    }
    const own = blobsOfSnapshot(body, live.agent)
    // The one before is what is left when this one proves bad: its blobs must live as long as this one's (F28).
    const keeps = isAlone ? [live.agent.bundle_blob] : live.savedBlobs
    live.savedBlobs = own
    return { kind: 'snapshot', body, blobs: own.filter((blob) => !keeps.includes(blob)), keeps }
  }

  /** The first snapshot of a session: the guest at its baseline, no pages. `start`: seq that the start entry will have. */
  baselineDraft({ agent, start: { mode } }: Live, start: number): Draft {
    return {
      kind: 'snapshot',
      body: {
        ...{ chain: [], bytes: 0, state: 'baseline', covers: start - 1, undelivered: [], asked: 0 },
        ...{ start, open: [], previous: 0, approvals: [], agent },
        ...{ mode: { value: mode, revision: 0 }, rules: [] },
      },
      blobs: [agent.bundle_blob],
    }
  }

  /** What the guest gets to hear of an entry. */
  async messageOf({ entry }: Deliverable): Promise<GuestMessage> {
    if (entry.kind === 'outcome') return this.#outcomeMessage(entry.body)
    const { body } = entry
    if (body.kind === 'start' && body.start_blob) {
      return readStart({ blobs: this.blobs, sid: this.journal.sid, key: this.journal.key }, body)
    }
    return messageOfReceived(body)
  }

  async #outcomeMessage(outcome: Outcome): Promise<GuestMessage> {
    const { effect, now, error, blob } = outcome
    if (error) return { type: 'outcome', effect, now, error }
    const { sid, key } = this.journal
    const result = blob
      ? (JSON.parse(fromUtf8(await this.blobs.get(sid, key, blob.hash))) as Json)
      : outcome.result
    return { type: 'outcome', effect, now, result: result ?? null }
  }

  #store(value: unknown): Promise<string> {
    return this.blobs.put(this.journal.sid, this.journal.key, utf8(JSON.stringify(value)))
  }
}

/** Effects that have their intent and were not come to: whoever restores this begins with them. */
export function unstartedOf({ toStart, state }: Live): number[] {
  return Array.from(toStart).flatMap(([effect, attempt]) =>
    attempt === 'first' && state.open.has(effect) ? [effect] : [],
  )
}

function messageOfReceived(body: Received): GuestMessage {
  const { now, id } = body
  switch (body.kind) {
    case 'start':
      if (body.copied) return { type: 'reseed', seed: body.copied.seed }
      if (body.start) return body.start
      break
    case 'stop':
      return { type: 'stop', now }
    case 'mode':
      return { type: 'mode', now, mode: body.command.mode }
    case 'settings':
      return { type: 'settings', now, settings: body.command.settings }
    case 'compact':
      return { type: 'compact', now }
    case 'document':
      return { type: 'document', now, command: id, ...body.command }
  }
  throw new BatonError('journal-gap', `(a ${body.kind} is no message for the guest)`)
}

/** The status when the drafts are written: an outcome or a start message gives the guest something to do. */
function statusAfter(state: SessionState, drafts: Draft[]): Status {
  const open = new Map(state.open)
  let busy = state.queue.length > 0
  for (const draft of drafts) {
    if (draft.kind === 'intent') open.set(draft.body.effect, { seq: 0, intent: draft.body })
    if (draft.kind === 'outcome') open.delete(draft.body.effect)
    if (draft.kind === 'outcome' || draft.kind === 'received') busy = true
  }
  return statusOf({ ...state, open }, busy)
}

/** Under the relay's limits for one append. */
const BATCH_CHARS_MAX = LIMITS.frame_bytes / 2

/** Cuts drafts into what one append may hold. */
export function batchesOf(drafts: Draft[]): Draft[][] {
  const batches: Draft[][] = []
  let chars = Infinity
  for (const draft of drafts) {
    // Sealing and base64 add a third.
    const size = JSON.stringify(draft.body).length * 1.4
    const batch = batches.at(-1)
    if (!batch || batch.length >= LIMITS.append_entries || chars + size > BATCH_CHARS_MAX) {
      batches.push([draft])
      chars = size
    } else {
      batch.push(draft)
      chars += size
    }
  }
  return batches
}
