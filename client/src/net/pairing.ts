/** Joining an account by a link, and letting another device join. */
import { BatonError } from '@baton/shared/errors.ts'
import { refusalOf } from '@baton/shared/blobs.ts'
import {
  newDevice,
  openPairing,
  pairingOffer,
  parsePairingLink,
  type Account,
  type Device,
} from '@baton/shared/keys.ts'
import { PairAnswer } from '@baton/shared/protocol.ts'
import * as v from 'valibot'

/**
 * Takes the account that waits behind the link; the relay gives it out once. Throws BatonError `link-invalid`,
 * `link-expired`, `offline`.
 */
export async function takePairing(
  origin: string,
  link: string,
): Promise<{ account: Account; device: Device }> {
  const { key } = parsePairingLink(link)
  let response: Response
  try {
    response = await fetch(`${origin}/pair`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ offer: pairingOffer(key) }),
    })
  } catch (cause) {
    throw new BatonError('offline', '', { cause })
  }
  if (!response.ok) throw await refusalOf(response)
  const parsed = v.safeParse(PairAnswer, await response.json().catch(() => undefined))
  if (!parsed.success) throw new BatonError('bad-frame', '(answer to pair)')
  const account = openPairing(key, parsed.output.box)
  return { account, device: newDevice(account) }
}

/** What this device calls itself, from what the browser tells. */
export function guessDeviceName(agent: string): { name: string; kind: 'phone' | 'browser' } {
  const [system, phone] = /iPhone/.test(agent)
    ? (['iPhone', true] as const)
    : /iPad/.test(agent)
      ? (['iPad', true] as const)
      : /Android/.test(agent)
        ? (['Android', true] as const)
        : /Mac OS X/.test(agent)
          ? (['Mac', false] as const)
          : /Windows/.test(agent)
            ? (['Windows', false] as const)
            : /Linux|CrOS/.test(agent)
              ? (['Linux', false] as const)
              : (['', false] as const)
  const browser = /Firefox|FxiOS/.test(agent)
    ? 'Firefox'
    : /Edg/.test(agent)
      ? 'Edge'
      : /Chrome|CriOS/.test(agent)
        ? 'Chrome'
        : /Safari/.test(agent)
          ? 'Safari'
          : 'Browser'
  const name = phone ? system : system === '' ? browser : `${browser} on ${system}`
  return { name, kind: phone ? 'phone' : 'browser' }
}
