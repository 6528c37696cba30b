/** Is a decision good? It must name an open approval, its exact call, and bear a signature of a device of the account (I10). */
import type { DecisionCommand } from '@baton/shared/journal.ts'
import { verifyCertificate, verifyDecision } from '@baton/shared/keys.ts'
import type { OpenEffect } from './state.ts'

export interface DecisionContext {
  account: string
  sid: string
  open: ReadonlyMap<number, OpenEffect>
  isRevoked: (device: string) => boolean
}

/** Why the decision does not count, in words; undefined when it does. */
export function objectionTo(decision: DecisionCommand, context: DecisionContext): string | undefined {
  const { effect, digest, approved, device, certificate, signature } = decision
  const approve = context.open.get(effect)?.intent.approve
  if (!approve) return 'It was decided already.'
  if (approve.digest !== digest) return 'The call has changed since.'
  if (!verifyCertificate(context.account, device, certificate)) return 'The device is not of this account.'
  if (context.isRevoked(device)) return 'The device was removed from the account.'
  if (!verifyDecision(device, { sid: context.sid, effect, digest, approved }, signature)) {
    return 'The signature does not fit.'
  }
  return undefined
}
