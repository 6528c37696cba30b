/** The approval that waits, pinned above the composer. */
import { isTrueCall, questionOf } from '@baton/shared/view/call.ts'
import type { Approval } from '@baton/shared/view/items.ts'
import { lastPart } from '@baton/shared/view/units.ts'
import type { NamedSession } from '../account.ts'
import { alwaysRule, endsPlanning } from '../signed.ts'
import { cleanLine, wrap, type Line } from '../term/text.ts'
import { callLines, divider, prefixed } from './rows.ts'
import type { AttachState } from './state.ts'

/** Pinned above the composer: the whole call. A long one is scrolled, and can be approved once its end was seen. */
export function cardLines(
  state: AttachState,
  approval: Approval,
  count: number,
  width: number,
  room: number,
): Line[] {
  const { live, sessions, focus } = state
  const others = count > 1 ? ` (1 of ${count})` : ''
  const where = [whereOf(state, sessions.get(live.sid)), lastPart(live.transcript.workspace ?? '')]
    .filter(Boolean)
    .join(' · ')
  const rule = focus === 'approval' ? 'bold yellow' : 'yellow'
  const title = divider(
    [`${questionOf(approval.name)}${others}`, where].filter(Boolean).join(' · '),
    width,
    rule,
  )
  const given = live.outgoing.find(({ decided }) => decided?.effect === approval.effect)
  const lie = isTrueCall(approval)
    ? []
    : prefixed(
        'What is shown here is not what would run: the call and its digest differ. It can not be approved.',
        'red',
        width,
        [],
        [],
      )
  const call = callLines(approval.name, approval.input, width)
  const isHere = focus === 'approval'
  const isPlan = endsPlanning(live.transcript, approval)
  const hasRule = !isPlan && alwaysRule(live.transcript, approval) !== undefined
  // The longest that may stand there: how many rows the call has must not change while it is scrolled.
  const longest = [false, true].map((seen) =>
    wrap([{ text: cardHint(isHere, call.length, seen, hasRule) }], width),
  )
  const rows = Math.max(1, room - 1 - lie.length - Math.max(...longest.map(({ length }) => length)))
  const from =
    state.card?.effect === approval.effect ? Math.min(state.card.from, Math.max(0, call.length - rows)) : 0
  const isSeen = from + rows >= call.length
  state.card = {
    effect: approval.effect,
    from,
    seen: isSeen || (state.card?.effect === approval.effect && state.card.seen),
  }
  const rest = call.length - from - rows
  const foot = given
    ? givenWords(
        given.state,
        given.decided?.approved === true,
        whereOf(state, sessions.get(live.sid)),
        given.error,
      )
    : cardHint(isHere, rest, state.card.seen, hasRule)
  return [
    title,
    ...call.slice(from, from + rows),
    ...lie,
    ...wrap([{ text: foot, as: given ? 'yellow' : 'dim' }], width),
  ]
}

function cardHint(isHere: boolean, rest: number, seen: boolean, hasRule: boolean): string {
  if (!isHere) return rest > 0 ? `${rest} more lines · Tab: see the rest and decide` : 'Tab: decide'
  const more = rest > 0 ? `↓ ${rest} more lines · ` : ''
  return `${more}${seen ? `y approve · n deny${hasRule ? ' · a always' : ''}` : 'n deny · see it all to approve'} · Esc back`
}

function givenWords(state: string, approved: boolean, runner: string, error: string | undefined): string {
  const what = approved ? 'Approved' : 'Denied'
  if (state === 'refused') return `${what}, but refused: ${cleanLine(error ?? '')} (x takes it back)`
  if (state === 'sending') return `${what}. Sending …`
  return runner === ''
    ? `${what}. Held until a runner is back.`
    : `${what}. ${cleanLine(runner)} takes it next.`
}

/** The runner that holds a session; empty: none does. */
export function whereOf({ names }: AttachState, session: NamedSession | undefined): string {
  return session?.holder === undefined ? '' : (names.get(session.holder) ?? session.holder.slice(0, 8))
}
