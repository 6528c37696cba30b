/** Commands that a device signs: decisions and changes of the mode. Used by commands and by `attach`. */
import { BatonError } from '@baton/shared/errors.ts'
import type { Mode } from '@baton/shared/guest.ts'
import type { Rule } from '@baton/shared/journal.ts'
import { signDecision, signMode } from '@baton/shared/keys.ts'
import { ruleFor } from '@baton/shared/permissions.ts'
import { isTrueCall } from '@baton/shared/view/call.ts'
import type { Approval } from '@baton/shared/view/items.ts'
import type { Transcript } from '@baton/shared/view/transcript.ts'
import type { AccountView } from './account.ts'

export interface Decision {
  approved: boolean
  note?: string
  always?: Rule
}

/** Resolves with the command's id. Throws BatonError `bad-input` when what is shown is not what its digest names (I10). */
export async function sendDecision(
  view: AccountView,
  sid: string,
  approval: Approval,
  { approved, note, always }: Decision,
): Promise<string> {
  const { effect, digest } = approval
  // Signed is only what was shown; denying is always possible.
  if (approved && !isTrueCall(approval))
    throw new BatonError('bad-input', `(effect ${effect}: the digest is of another call)`)
  const { device } = view.identity
  const signature = signDecision(device, { sid, effect, digest, approved, always })
  const { id, certificate } = device
  return view.command(sid, 'decision', {
    ...{ effect, digest, approved, device: id, certificate, signature },
    ...(note === undefined || note === '' ? {} : { note }),
    ...(always === undefined ? {} : { always }),
  })
}

/** The rule that "always" means for a call; undefined when none would be safe. */
export function alwaysRule(transcript: Transcript, { name, input }: Approval): Rule | undefined {
  return ruleFor({ name, input, access: transcript.access.get(name) ?? 'run' })
}

export function ruleWords({ tool, prefix }: Rule): string {
  return prefix === undefined ? tool : `${tool}: ${prefix} …`
}

/** `revision`: how many changes the session has had before. */
export function sendMode(view: AccountView, sid: string, mode: Mode, revision: number): Promise<string> {
  const { device } = view.identity
  const signature = signMode(device, { sid, revision, mode })
  const { id, certificate } = device
  return view.command(sid, 'mode', { mode, revision, device: id, certificate, signature })
}
