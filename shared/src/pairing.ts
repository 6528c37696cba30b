/** Joining an account by a pairing link, from any device. */
import * as v from 'valibot'
import { refusalOf } from './blobs.ts'
import { BatonError } from './errors.ts'
import { newDevice, openPairing, pairingOffer, parsePairingLink, type Account, type Device } from './keys.ts'
import { PairAnswer } from './protocol.ts'

/**
 * Takes the account that waits behind the link, which the relay gives out once, and makes a device of it. `at`: the origin to
 * ask instead of the link's, for an app that was loaded from there. Throws BatonError `link-invalid`, `link-expired`, `offline`,
 * `cannot-open`.
 */
export async function takePairing(
  link: string,
  at?: string,
): Promise<{ origin: string; account: Account; device: Device }> {
  const parsed = parsePairingLink(link)
  const origin = at ?? parsed.origin
  let response: Response
  try {
    response = await fetch(`${origin}/pair`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ offer: pairingOffer(parsed.key) }),
    })
  } catch (cause) {
    throw new BatonError('offline', `(${origin} can not be reached)`, { cause })
  }
  if (!response.ok) throw await refusalOf(response)
  const answer = v.safeParse(PairAnswer, await response.json().catch(() => undefined))
  if (!answer.success) throw new BatonError('bad-frame', '(answer to pair)')
  const account = openPairing(parsed.key, answer.output.box)
  return { origin, account, device: newDevice(account) }
}
