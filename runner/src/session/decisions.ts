/** Do a decision and a change of mode count? They must bear a signature of a device of the account (I10). */
import type { ApproveInput } from '@baton/shared/guest.ts'
import type { DecisionCommand, ModeCommand } from '@baton/shared/journal.ts'
import { verifyCertificate, verifyDecision, verifyMode } from '@baton/shared/keys.ts'
import { permissionOf } from '@baton/shared/permissions.ts'
import type { Policy } from './permissions.ts'
import type { OpenEffect } from './state.ts'

export interface DecisionContext {
  account: string
  sid: string
  open: ReadonlyMap<number, OpenEffect>
  isRevoked: (device: string) => boolean
  policy: Policy
}

/** Why the decision does not count, in words; undefined when it does. */
export function objectionTo(decision: DecisionCommand, context: DecisionContext): string | undefined {
  const { effect, digest, approved, device, certificate, signature } = decision
  const approve = context.open.get(effect)?.intent.approve
  if (!approve) return 'It was decided already.'
  if (approve.digest !== digest) return 'The call has changed since.'
  const binding = { sid: context.sid, effect, digest, approved, always: decision.always }
  return (
    objectionToDevice(device, certificate, context) ??
    (verifyDecision(device, binding, signature) ? undefined : 'The signature does not fit.') ??
    objectionToRule(decision, approve, context.policy)
  )
}

/** Why a change of mode does not count, in words; undefined when it does. `revision`: changes so far. */
export function objectionToMode(
  { mode, revision, plan, device, certificate, signature }: ModeCommand,
  context: DecisionContext & { revision: number },
): string | undefined {
  if (revision !== context.revision) return 'The mode was changed meanwhile.'
  if (plan !== undefined && !context.open.get(plan)?.intent.approve) return 'The plan was decided already.'
  return (
    objectionToDevice(device, certificate, context) ??
    (verifyMode(device, { sid: context.sid, revision, mode }, signature)
      ? undefined
      : 'The signature does not fit.')
  )
}

function objectionToDevice(
  device: string,
  certificate: string,
  context: DecisionContext,
): string | undefined {
  if (!verifyCertificate(context.account, device, certificate)) return 'The device is not of this account.'
  if (context.isRevoked(device)) return 'The device was removed from the account.'
  return undefined
}

/** A rule that comes with an approval allows calls like the one that was shown, and no others. */
function objectionToRule(
  { always, approved }: DecisionCommand,
  { name, input }: { name: string; input: ApproveInput['input'] },
  { tools }: Policy,
): string | undefined {
  if (!always) return undefined
  const access = tools.get(name)?.spec.access
  const fits =
    approved &&
    access !== undefined &&
    always.action === 'allow' &&
    permissionOf({ name, access, input }, 'ask', [always]) === 'allow'
  return fits ? undefined : 'The rule that came with it does not allow this call.'
}
