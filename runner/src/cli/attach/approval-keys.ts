/** Keys on the card of a call that waits: a decision is given only for a call of which all was shown. */
import { modeMeans, modeName } from '@baton/shared/view/modes.ts'
import { pendingApprovals } from '@baton/shared/view/transcript.ts'
import { alwaysRule, decisionBody, endsPlanning, modeBody, ruleWords } from '../signed.ts'
import { AFTER_PLAN } from '../table.ts'
import { BLANK } from '../term/editor.ts'
import { choose } from './choices.ts'
import type { Host } from './host.ts'

export function approvalKey(host: Host, name: string | undefined): void {
  const state = host.state
  const { live, card } = state
  const [approval] = pendingApprovals(live.transcript)
  if (!approval || name === 'escape') {
    state.focus = 'composer'
    return
  }
  const given = live.outgoing.find(({ decided }) => decided?.effect === approval.effect)
  const decide = (
    approved: boolean,
    more: { note?: string; always?: ReturnType<typeof alwaysRule> } = {},
  ): void => {
    const { note, always } = more
    const body = decisionBody(host.view.identity.device, live.sid, approval, {
      approved,
      ...(note === undefined ? {} : { note }),
      ...(always === undefined ? {} : { always }),
    })
    live.send('decision', body, { decided: { effect: approval.effect, approved } })
    state.focus = 'composer'
  }
  switch (name) {
    case 'y':
    case 'a': {
      if (given) return
      if (card?.effect !== approval.effect || !card.seen) {
        host.say('See all of it first: ↓')
        return
      }
      if (endsPlanning(live.transcript, approval)) {
        choose(
          host,
          'The plan is approved. What may the agent do then?',
          AFTER_PLAN.map((mode) => ({
            ...{ label: modeName(mode), about: modeMeans(mode) },
            pick: () => {
              const { device } = host.view.identity
              live.send('mode', modeBody(device, live.sid, mode, live.transcript.revision, approval.effect))
              decide(true)
            },
          })),
        )
        return
      }
      if (name === 'y') {
        decide(true)
        return
      }
      const always = alwaysRule(live.transcript, approval)
      if (!always) host.say('No rule would be safe for a call like this; y approves this one.')
      else {
        choose(host, `From now on, in this session, without asking?`, [
          { label: `Always allow ${ruleWords(always)}`, pick: () => decide(true, { always }) },
          { label: 'Only this one', pick: () => decide(true) },
        ])
      }
      return
    }
    case 'n':
      if (given) return
      state.overlay = {
        ...{ as: 'ask', question: 'Deny. Why? (for the agent; may be empty)', draft: BLANK },
        done: (note) => decide(false, note === '' ? {} : { note }),
      }
      return
    case 'x':
      if (given?.state === 'refused') live.drop(given.id)
      return
    case 'up':
    case 'k':
      if (card) card.from = Math.max(0, card.from - 1)
      return
    case 'down':
    case 'j':
    case ' ':
      if (card) card.from += 1
      return
  }
}
