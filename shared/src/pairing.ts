/** Joining an account by a pairing link, from any device. */
import * as v from 'valibot'
import { refusalOf } from './blobs.ts'
import { BatonError } from './errors.ts'
import { newDevice, openPairing, pairingOffer, parsePairingLink, type Account, type Device } from './keys.ts'
import { PairAnswer } from './protocol.ts'

const PAIR_MS = 15_000

/** What has no code of ours comes from something else at that address. */
function notARelay(error: BatonError, origin: string): BatonError {
  if (error.code !== 'internal') return error
  const todo = 'Check host and port of the link, or make a new one where the relay runs: baton pair'
  return new BatonError('link-invalid', `(what answers at ${origin} is no relay of Baton)`, {
    cause: error,
    todo,
  })
}

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
      // Something that takes connections and never answers (F6, F8).
      signal: AbortSignal.timeout(PAIR_MS),
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ offer: pairingOffer(parsed.key) }),
    })
  } catch (cause) {
    throw new BatonError('offline', `(${origin} can not be reached)`, { cause })
  }
  if (!response.ok) throw notARelay(await refusalOf(response), origin)
  const answer = v.safeParse(PairAnswer, await response.json().catch(() => undefined))
  if (!answer.success) throw notARelay(new BatonError('internal'), origin)
  const account = openPairing(parsed.key, answer.output.box)
  return { origin, account, device: newDevice(account) }
}
