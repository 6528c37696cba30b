/**
 * Who is there. A device proves that it holds its key by signing the relay's challenge, and that it belongs to the account by
 * the account's certificate. The relay keeps no secret of either. For HTTP it gives out a random token, kept by its hash.
 */
import { createHash, randomBytes } from 'node:crypto'
import { BatonError } from '@baton/shared/errors.ts'
import { verifyCertificate, verifyChallenge } from '@baton/shared/keys.ts'
import type { DeviceInfo, PeerFrame } from '@baton/shared/protocol.ts'
import type { Redis } from 'ioredis'
import { accountChannel, accountKeys, deviceKey, relayKeys, tokenKey } from './keys.ts'
import { run } from './scripts.ts'

export type Hello = Extract<PeerFrame, { t: 'hello' }>

export interface Identity {
  account: string
  device: string
}

export interface Challenge {
  relay: string
  nonce: string
}

/** A challenge is for one connection; its nonce is never used twice. */
export function newChallenge(relay: string): Challenge {
  return { relay, nonce: randomBytes(32).toString('base64url') }
}

/** Throws BatonError `bad-signature`, `device-revoked`, `accounts-full`. */
export async function admit(
  redis: Redis,
  hello: Hello,
  { relay, nonce }: Challenge,
  signature: string,
  accounts_max: number,
): Promise<Identity> {
  const { account, device, certificate, body } = hello
  if (!verifyCertificate(account, device, certificate)) throw new BatonError('bad-signature', '(certificate)')
  if (!verifyChallenge(account, device, relay, nonce, signature))
    throw new BatonError('bad-signature', '(challenge)')
  if (await isRevoked(redis, { account, device })) throw new BatonError('device-revoked')
  const [code] = await run(redis, 'admit', { accounts: relayKeys.accounts }, { account, accounts_max })
  if (code !== 'ok') throw new BatonError(code, `(${accounts_max} at most)`)
  const key = deviceKey(account, device)
  const now = Date.now()
  await Promise.all([
    redis.hsetnx(key, 'added_at', now),
    redis.hset(key, 'body', body, 'seen_at', now),
    redis.sadd(accountKeys(account).devices, device),
  ])
  await redis.publish(accountChannel(account), `device ${device}`)
  return { account, device }
}

/** It was there until now. */
export async function sawDevice(redis: Redis, { account, device }: Identity): Promise<void> {
  await redis.hset(deviceKey(account, device), 'seen_at', Date.now())
}

export async function isRevoked(redis: Redis, { account, device }: Identity): Promise<boolean> {
  return (await redis.sismember(accountKeys(account).revoked, device)) === 1
}

/** Ends the device's connections at all relays, and its tokens with them. For good. */
export async function revoke(redis: Redis, account: string, device: string): Promise<void> {
  await redis.sadd(accountKeys(account).revoked, device)
  await redis.publish(accountChannel(account), `revoked ${device}`)
  await redis.publish(accountChannel(account), `device ${device}`)
}

export async function readDevice(redis: Redis, identity: Identity): Promise<DeviceInfo | undefined> {
  const { account, device } = identity
  const [hash, revoked] = await Promise.all([
    redis.hgetall(deviceKey(account, device)),
    isRevoked(redis, identity),
  ])
  if (hash['body'] === undefined) return undefined
  return {
    device,
    body: hash['body'],
    added_at: Number(hash['added_at'] ?? 0),
    seen_at: Number(hash['seen_at'] ?? 0),
    revoked,
  }
}

export async function readDevices(redis: Redis, account: string): Promise<DeviceInfo[]> {
  const ids = await redis.smembers(accountKeys(account).devices)
  const devices = await Promise.all(ids.map((device) => readDevice(redis, { account, device })))
  return devices.filter((device) => device !== undefined)
}

export async function newToken(redis: Redis, { account, device }: Identity, ttl_ms: number): Promise<string> {
  const token = randomBytes(32).toString('base64url')
  await redis.set(tokenKey(hashOf(token)), `${account} ${device}`, 'PX', ttl_ms)
  return token
}

/** The connection that the token belongs to still lives. */
export async function extendToken(redis: Redis, token: string, ttl_ms: number): Promise<void> {
  await redis.pexpire(tokenKey(hashOf(token)), ttl_ms)
}

/** Throws BatonError `not-signed-in`, `device-revoked`. */
export async function checkToken(redis: Redis, token: string): Promise<Identity> {
  const [account, device] = ((await redis.get(tokenKey(hashOf(token)))) ?? '').split(' ')
  if (!account || !device) throw new BatonError('not-signed-in')
  const identity = { account, device }
  if (await isRevoked(redis, identity)) throw new BatonError('device-revoked')
  return identity
}

function hashOf(token: string): string {
  return createHash('sha256').update(token).digest('base64url')
}
