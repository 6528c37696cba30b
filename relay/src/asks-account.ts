/** What any device may ask of the account as a whole. */
import { BatonError } from '@baton/shared/errors.ts'
import { LIMITS } from '@baton/shared/protocol.ts'
import type { Handler } from './handler.ts'
import { accountKeys, pairingKey } from './keys.ts'
import { revoke } from './sign-in.ts'

const list: Handler<'list'> = async (context, peer) => {
  const hub = context.hubs.of(peer.identity.account)
  if (!hub) throw new BatonError('internal')
  return peer.listWhile(() => hub.everything())
}

const usage: Handler<'usage'> = async ({ redis, usage: stored, options }, { identity: { account } }) => ({
  sessions: await redis.scard(accountKeys(account).sessions),
  sessions_max: options.limits.sessions_per_account,
  ...stored.of(account),
  frames_per_s: options.limits.frames_per_s,
})

const pairing: Handler<'pairing'> = async ({ redis, disk }, _peer, { offer, box }) => {
  disk.check()
  await redis.set(pairingKey(offer), box, 'PX', LIMITS.pairing_ms)
  return { expires_at: Date.now() + LIMITS.pairing_ms }
}

const revokeDevice: Handler<'revoke'> = async ({ redis }, peer, { device }) => {
  await revoke(redis, peer.identity.account, device)
  return {}
}

export const accountAsks = { list, usage, pairing, revoke: revokeDevice }
