/** `baton pair`: a link, as text and QR code, by which one more device joins the account. */
import { renderUnicodeCompact } from 'uqr'
import { newPairing, pairingLink, type Account } from '@baton/shared/keys.ts'
import { LIMITS } from '@baton/shared/protocol.ts'
import type { Link } from '../daemon/link.ts'
import { withAccount } from './account.ts'
import { address, parseFor } from './args.ts'
import { print } from './output.ts'

/** Lets a pairing wait at the relay; resolves with the link that takes it. `origin`: how the new device reaches the relay. */
export async function offerPairing(link: Link, account: Account, origin: string): Promise<string> {
  const pairing = newPairing(account)
  await link.ask('pairing', { offer: pairing.offer, box: pairing.box })
  return pairingLink(origin, pairing)
}

export function qrCode(text: string): string {
  return renderUnicodeCompact(text, { border: 1 })
}

export async function pair(args: string[]): Promise<number> {
  const { values } = parseFor('pair', args)
  const origin = values.origin === undefined ? undefined : address('--origin', values.origin)
  return withAccount(values.data, async (view) => {
    const { account } = view.identity
    const link = await offerPairing(view.link, account, origin ?? view.link.connection.origin)
    const minutes = LIMITS.pairing_ms / 60_000
    print(
      values.json,
      { link },
      `${qrCode(link)}\n${link}\nGood once, for ${minutes} minutes. It gives full access: show it to nobody else.`,
    )
    return 0
  })
}
