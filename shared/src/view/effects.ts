/** Effects, from intent to outcome, read into a transcript: a call and its approval are one item. */
import type { Json } from '../guest.ts'
import type { Intent, Outcome } from '../journal.ts'
import { targetOf } from './call.ts'
import type { TextItem, ThoughtItem, ToolItem } from './items.ts'
import type { Draft, OpenEffect, Retrying } from './model.ts'
import { repeatedWords } from './words.ts'
import { readApproval, readModelSaid, readToolResult, type Said } from './results.ts'

export function intent(draft: Draft, body: Intent, seq: number, at: number): void {
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
    draft.thoughts.delete(body.effect)
    if (open.item !== undefined) change(draft, open.item, { attempt: body.attempt })
    return
  }
  if (body.kind === 'llm') tellSteering(draft)
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
    const allowed = body.allowed === undefined ? {} : { allowed: body.allowed }
    // One line for a call and its approval.
    const waiting = approval === undefined ? undefined : draft.granted.get(approval)
    if (approval !== undefined && waiting !== undefined) {
      draft.granted.delete(approval)
      open.item = afterHandoff(draft, waiting)
      change(draft, open.item, {
        ...allowed,
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
        ...allowed,
        state: 'running',
        effect: body.effect,
        started_at: at,
        attempt: body.attempt,
      }
      open.item = draft.items.push(item) - 1
    }
  }
}

/** The model is asked: it is told what people said meanwhile. */
function tellSteering(draft: Draft): void {
  for (let i = draft.items.length - 1; i >= 0 && draft.steering; i--) {
    const item = draft.items[i]
    if (item?.kind !== 'prompt' || item.waits !== true) continue
    const { waits: _told, ...told } = item
    draft.items[i] = told
    draft.steering--
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

export function outcome(draft: Draft, body: Outcome, seq: number, at: number): void {
  draft.effects = Math.max(draft.effects, body.effect)
  draft.live.delete(body.effect)
  draft.thoughts.delete(body.effect)
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
    if (partial === '') askedAgain(draft, id, at, repeated)
    if (code !== 'stopped') draft.items.push({ kind: 'event', id, at, tone: 'error', text: message, code })
    return
  }
  if (body.blob) {
    const { thoughts, ...blob } = body.blob
    if (thoughts !== undefined) draft.items.push({ kind: 'thought', id: `${id}t`, at, text: thoughts })
    // Without an end the beginning is all of it: what made the answer long is a call, and that has an item of its own.
    if (blob.tail !== '') draft.items.push({ kind: 'text', id, at, text: '', blob, repeated })
    else if (blob.head !== '') draft.items.push({ kind: 'text', id, at, text: blob.head, repeated })
    else askedAgain(draft, id, at, repeated)
    return
  }
  const said = readModelSaid(body.result)
  draft.items.push(...saidItems(said, id, at, repeated))
  if (!said.some(({ as }) => as === 'text')) askedAgain(draft, id, at, repeated)
}

/** An answer without words of its own, say only a call: what it cost more is told all the same. */
function askedAgain(draft: Draft, id: string, at: number, repeated: number): void {
  if (repeated === 0) return
  draft.items.push({ kind: 'event', id: `${id}r`, at, tone: 'quiet', text: repeatedWords(repeated) })
}

/** The requests that were asked again are told once, with the first text. */
function saidItems(
  said: readonly Said[],
  id: string,
  at: number,
  repeated: number,
): (TextItem | ThoughtItem)[] {
  let texts = 0
  return said.map(({ as, text }, i) => {
    if (as === 'thought') return { kind: 'thought', id: `${id}t${i}`, at, text }
    return texts++ === 0
      ? { kind: 'text', id, at, text, repeated }
      : { kind: 'text', id: `${id}x${i}`, at, text, repeated: 0 }
  })
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
    jobTold(draft, index, result.detail ?? {})
  }
}

/** A job begins with a command's result; that it is over the agent learns when it looks. */
function jobTold(draft: Draft, index: number, { job, running }: { [key: string]: Json }): void {
  const item = draft.items[index]
  if (item?.kind !== 'tool' || typeof job !== 'string') return
  const jobs = new Map(draft.jobs)
  if (item.name === 'bash') jobs.set(job, targetOf('bash', item.input))
  else if (running === false) jobs.delete(job)
  draft.jobs = jobs
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
