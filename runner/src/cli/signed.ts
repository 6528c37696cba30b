/** Commands that a device signs: decisions and changes of the mode. Used by commands and by `attach`. */
import type { CommandBodyOf } from '@baton/shared/entries.ts'
import { BatonError } from '@baton/shared/errors.ts'
import type { Mode } from '@baton/shared/guest.ts'
import type { Rule } from '@baton/shared/journal.ts'
import { signDecision, signMode, type Device } from '@baton/shared/keys.ts'
import { ruleFor } from '@baton/shared/permissions.ts'
import { isTrueCall } from '@baton/shared/view/call.ts'
import type { Approval } from '@baton/shared/view/items.ts'
import type { Transcript } from '@baton/shared/view/transcript.ts'

export interface Decision {
  approved: boolean
  note?: string
  always?: Rule
}

/** Throws BatonError `bad-input` rather than approve a call that its digest does not name (I10). */
export function decisionBody(
  device: Device,
  sid: string,
  { effect, digest, ...call }: Approval,
  { approved, note, always }: Decision,
): CommandBodyOf<'decision'> {
  // Signed is only what was shown; denying is always possible.
  if (approved && !isTrueCall({ effect, digest, ...call }))
    throw new BatonError('bad-input', `(effect ${effect}: the digest is of another call)`)
  const signature = signDecision(device, { sid, effect, digest, approved, always })
  return {
    ...{ effect, digest, approved, device: device.id, certificate: device.certificate, signature },
    ...(note === undefined || note === '' ? {} : { note }),
    ...(always === undefined ? {} : { always }),
  }
}

/** The rule that "always" means for a call; undefined when none would be safe. */
export function alwaysRule(transcript: Transcript, { name, input }: Approval): Rule | undefined {
  return ruleFor({ name, input, access: transcript.access.get(name) ?? 'run' })
}

/** Is it a plan of a session that may only plan? Approved alone it changes nothing: the mode has to change before. */
export function endsPlanning({ mode }: Transcript, { name }: Approval): boolean {
  return name === 'propose_plan' && mode === 'plan'
}

export function ruleWords({ tool, prefix }: Rule): string {
  return prefix === undefined ? tool : `${tool}: ${prefix} …`
}

/** `revision`: how many changes the session has had before. `plan`: the effect of the plan that it is approved with. */
export function modeBody(
  device: Device,
  sid: string,
  mode: Mode,
  revision: number,
  plan?: number,
): CommandBodyOf<'mode'> {
  const signature = signMode(device, { sid, revision, mode })
  return {
    ...{ mode, revision, device: device.id, certificate: device.certificate, signature },
    ...(plan === undefined ? {} : { plan }),
  }
}
