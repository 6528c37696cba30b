/** What becomes of the effects that the guest asks for, and of those that an earlier runner left open. */
import { ATTEMPTS_MAX } from '@baton/shared/backoff.ts'
import { BatonError } from '@baton/shared/errors.ts'
import { utf8 } from '@baton/shared/bytes.ts'
import { callDigest } from '@baton/shared/digest.ts'
import type { ApproveResult, EffectError, EffectRequest, Json, Replay } from '@baton/shared/guest.ts'
import type { Intent } from '@baton/shared/journal.ts'
import { LIMITS } from '@baton/shared/protocol.ts'
import type { Cut } from './effects.ts'
import type { Draft } from './journal.ts'
import { isStop, type Live } from './live.ts'
import { failureOf, withPrinted } from './perform.ts'
import { allowanceOf, objectionToCall, ruledDecision, type Policy } from './permissions.ts'
import { digestOf, intentOf, type AwaitedRequest } from './requests.ts'
import { isBackingOff } from './retry.ts'

/** The program asked for something else than the journal says: snapshot and tail disagree (F29). */
export class Diverged extends Error {
  override name = 'Diverged'
}

/**
 * Sorts what the guest asked for. Events are written unless they are; a known effect is checked against its intent (I7);
 * a new one gets its intent, or its refusal at once. `objections`: to calls that a person need not be asked for, by effect. Returns what to
 * write and which effects then may start.
 */
export function sortAsks(
  live: Live,
  now: number,
  objections: ReadonlyMap<number, EffectError> = new Map(),
): { drafts: Draft[]; fresh: AwaitedRequest[] } {
  const drafts: Draft[] = []
  const fresh: AwaitedRequest[] = []
  for (const ask of newOnes(live)) {
    live.asked = ask.id
    if (ask.kind === 'emit') {
      const { type, data } = ask.input
      const told = isTooLarge(data) ? { message: 'What the agent told here is too large to be kept.' } : data
      drafts.push({ kind: 'event', body: { effect: ask.id, type, data: told } })
      continue
    }
    live.requests.set(ask.id, ask)
    fresh.push(ask)
  }
  const isStopping = live.state.queue.some(isStop)
  const allowed: AwaitedRequest[] = []
  for (const request of fresh) {
    const allowance =
      request.kind === 'tool' ? allowanceOf(policyOf(live), request.input, live.state.approvals) : undefined
    const refusal = refusalOf(live, request, isStopping)
    const body = boundedIntent(request, replayOf(live, request), now)
    drafts.push({ kind: 'intent', body: allowance && !refusal ? { ...body, allowed: allowance } : body })
    const error = refusal ? failureOf(refusal) : objections.get(request.id)
    if (error) drafts.push({ kind: 'outcome', body: { effect: request.id, now, error } })
    else {
      const ruled = request.kind === 'approve' ? ruledDecision(policyOf(live), request.input) : undefined
      if (ruled) drafts.push(outcomeOf(request.id, now, ruled))
      else allowed.push(request)
    }
  }
  return { drafts, fresh: allowed }
}

/** The session is leaving: what is new waits for the next runner, without an intent, and what the journal knows is checked. */
export function carryAsks(live: Live): void {
  live.carried.push(...newOnes(live))
}

/**
 * Takes what the guest asked for and gives what the journal does not know. The rest is a replay, or a model request handed over
 * again whole: it is checked against its intent (I7). Throws Diverged.
 */
function newOnes(live: Live): EffectRequest[] {
  const { state, pause } = live
  const fresh: EffectRequest[] = []
  for (const ask of pause.asked.splice(0)) {
    const isKnown = ask.kind === 'emit' ? state.emitted.has(ask.id) : state.digests.has(ask.id)
    if (!isKnown) {
      if (ask.id <= live.asked) throw new Diverged(`effect ${ask.id} (${ask.kind}) has ended before`)
      fresh.push(ask)
      continue
    }
    live.asked = Math.max(live.asked, ask.id)
    if (ask.kind === 'emit') continue
    if (state.digests.get(ask.id) !== digestOf(ask)) {
      throw new Diverged(`effect ${ask.id} (${ask.kind}) differs from its intent`)
    }
    live.requests.set(ask.id, ask)
  }
  return fresh
}

/** A sealed body has to fit into an entry; sealing and base64 add a third. */
const REQUEST_CHARS_MAX = LIMITS.body_bytes / 2

function isTooLarge(value: unknown): boolean {
  return utf8(JSON.stringify(value)).length > REQUEST_CHARS_MAX
}

/** What is too large to be written is refused; its intent still names it by its digest. */
function boundedIntent(request: AwaitedRequest, replay: Replay, now: number): Intent {
  const intent = intentOf(request, replay, 1, now)
  if (!isTooLarge(intent)) return intent
  const { tool, approve, ...named } = intent
  return {
    ...named,
    ...(tool ? { tool: { ...tool, input: {} } } : {}),
    ...(approve ? { approve: { ...approve, input: {} } } : {}),
  }
}

function refusalOf(live: Live, request: AwaitedRequest, isStopping: boolean): BatonError | undefined {
  // Stop was pressed before the guest asked, and the guest has not heard of it yet (H10).
  if (isStopping && request.kind !== 'prompt') return new BatonError('stopped')
  if (request.kind === 'approve') {
    const { name, input, digest } = request.input
    // People are shown the call and sign the digest: they must be of one another (I10).
    if (digest !== callDigest(name, input))
      return new BatonError('bad-input', '(the digest is of another call)')
  }
  if (request.kind !== 'llm' && isTooLarge(request.input))
    return new BatonError('too-large', `(${request.kind})`)
  if (request.kind !== 'tool') return undefined
  const refusal = objectionToCall(policyOf(live), request.input, live.state.approvals)
  // Used up at once: the same slice may ask again (H7).
  if (!refusal && request.input.approval !== undefined) live.state.approvals.delete(request.input.approval)
  return refusal
}

export function policyOf({ state, rules, tools }: Live): Policy {
  return { mode: state.mode.value, rules: [...rules, ...state.rules], tools }
}

/** Waiting can always be taken up again, and a model may be asked again; a tool says for itself. */
function replayOf(live: Live, request: AwaitedRequest): Replay {
  if (request.kind !== 'tool') return 'safe'
  return live.tools.get(request.input.name)?.spec.replay ?? 'never'
}

/**
 * Effects with an intent and no outcome, left by a runner that is gone: `never` ones end as interrupted (I5), `safe` ones are
 * marked to start again, unless they failed too often or a person stopped them. `unstarted`: the runner that let go had not come
 * to them. Returns what to write.
 */
export function adoptOrphans(live: Live, now: number, unstarted: readonly number[] = []): Draft[] {
  const drafts: Draft[] = []
  for (const { seq, intent } of live.state.open.values()) {
    const { effect, kind, replay, attempt } = intent
    if (kind === 'prompt' || kind === 'approve') continue
    if (seq < live.state.stopped && replay === 'safe') {
      drafts.push(outcomeError(effect, now, new BatonError('stopped')))
      continue
    }
    // Time alone had to pass: nothing has started yet.
    const waited = kind === 'sleep' || isBackingOff(intent, now)
    const isUnstarted = replay === 'safe' && unstarted.includes(effect)
    if (waited || isUnstarted) live.toStart.set(effect, 'first')
    else if (replay === 'never' || isOfOrigin(live, seq, intent))
      drafts.push(outcomeError(effect, now, new BatonError('interrupted')))
    else if (attempt >= ATTEMPTS_MAX) {
      drafts.push(outcomeError(effect, now, new BatonError('attempts-exhausted', `(${attempt} times)`)))
    } else live.toStart.set(effect, 'again')
  }
  return drafts
}

function outcomeOf(effect: number, now: number, result: ApproveResult): Draft {
  return { kind: 'outcome', body: { effect, now, result: result as unknown as Json } }
}

/** A copy does not repeat what was allowed in its origin, only what looks. */
function isOfOrigin({ state, tools }: Live, seq: number, { tool }: Intent): boolean {
  if (!tool || !state.copied || seq > state.copied.seq) return false
  return tools.get(tool.name)?.spec.access !== 'read'
}

function outcomeError(effect: number, now: number, error: BatonError, printed = ''): Draft {
  return { kind: 'outcome', body: { effect, now, error: withPrinted(failureOf(error), printed) } }
}

/**
 * Outcomes of effects that this runner cuts off because it has to let go, and that nobody may begin again: only here it is known what they
 * had printed. The others are the next runner's.
 */
export function cutHere({ state }: Live, cut: readonly Cut[], now: number): Draft[] {
  return cut.flatMap(({ effect, printed }) =>
    state.open.get(effect)?.intent.replay === 'never'
      ? [outcomeError(effect, now, new BatonError('interrupted'), printed)]
      : [],
  )
}

/** Outcomes of effects that had not begun here when Stop came (H10). */
export function stopUnbegun(live: Live, now: number): Draft[] {
  const drafts = Array.from(live.toStart.keys(), (effect) =>
    outcomeError(effect, now, new BatonError('stopped')),
  )
  live.toStart.clear()
  return drafts
}
