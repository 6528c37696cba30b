/**
 * The states of a guest and what may follow what. Between unwind and rewind no export runs, so only `resume` or the awaited
 * outcome leads out of an unwound state; everything else throws.
 *
 *                    deliver                 drained
 *     quiescent ───────────────▶ running ───────────────▶ quiescent | finished | failed
 *                                 │   ▲
 *              interrupt / block  ▼   │  run / outcome of `on`, resend of `on`
 *                        interrupted | blocked
 *
 *     reseed changes no state: it is allowed wherever the guest rests
     any ──── trap ───▶ failed (poisoned)
 */
import { BatonError } from '@baton/shared/errors.ts'
import type { EffectError, GuestMessage, Json } from '@baton/shared/guest.ts'

/** The export that is on the stack: the delivery of a message, or a pending job. */
export type Entry = 'deliver' | 'job'

export type State =
  | { name: 'quiescent' }
  | { name: 'running'; entry: Entry | undefined }
  | { name: 'interrupted'; entry: Entry }
  | { name: 'blocked'; entry: Entry; on: number }
  | { name: 'finished'; result: Json }
  | { name: 'failed'; error: EffectError }

/** A state in which memory may be saved. */
export type Saved = Extract<State, { name: 'quiescent' | 'interrupted' | 'blocked' }>

/** Throws `guest-state` unless the message may be delivered now. */
export function checkDelivery(state: State, message: GuestMessage): void {
  if (state.name === 'quiescent') return
  if (message.type === 'reseed' && (state.name === 'blocked' || state.name === 'interrupted')) return
  const awaited =
    state.name === 'blocked' &&
    (message.type === 'outcome' || message.type === 'resend') &&
    message.effect === state.on
  if (!awaited) throw illegal(state, `take the message ${JSON.stringify(message.type)}`)
}

/** Throws `guest-state` unless the guest was interrupted. */
export function checkRun(state: State): Extract<State, { name: 'interrupted' }> {
  if (state.name !== 'interrupted') throw illegal(state, 'be run')
  return state
}

/** Throws `guest-state` unless the guest rests. */
export function checkSave(state: State): Saved {
  if (state.name === 'quiescent' || state.name === 'interrupted' || state.name === 'blocked') return state
  throw illegal(state, 'be saved')
}

function illegal(state: State, what: string): BatonError {
  const waits = state.name === 'blocked' ? `; it waits for the outcome of effect ${state.on}` : ''
  return new BatonError('guest-state', `(it is ${state.name} and can't ${what}${waits})`)
}
