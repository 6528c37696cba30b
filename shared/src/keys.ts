/**
 * Keys. An account is one root secret; everything else is derived from it (HKDF-SHA256, RFC 5869) or certified by it
 * (Ed25519, RFC 8032). A device has a key pair of its own, so that it can be revoked alone.
 */
import { ed25519 } from '@noble/curves/ed25519.js'
import { hkdf } from '@noble/hashes/hkdf.js'
import { sha256 } from '@noble/hashes/sha2.js'
import { randomBytes } from '@noble/hashes/utils.js'
import { fromBase64, toBase64, toHex, utf8 } from './bytes.ts'
import { BatonError } from './errors.ts'
import { open, place, seal } from './seal.ts'

const KEY_BYTES = 32

function derive(secret: Uint8Array, purpose: string, salt = ''): Uint8Array {
  return hkdf(sha256, secret, utf8(salt), utf8(`baton1 ${purpose}`), KEY_BYTES)
}

/** The keys of an account, as every paired device holds them. Never leaves a device unencrypted. */
export interface Account {
  root: Uint8Array
  /** Public name of the account: its Ed25519 public key, base64url. */
  id: string
}

export function accountOf(root: Uint8Array): Account {
  return { root, id: toBase64(ed25519.getPublicKey(derive(root, 'account'))) }
}

export function newAccount(): Account {
  return accountOf(randomBytes(KEY_BYTES))
}

/** Key of one session: entries, commands, blobs, metadata. */
export function sessionKey(account: Account, sid: string): Uint8Array {
  return derive(account.root, 'session', sid)
}

/** Key for what belongs to the account as a whole: names of devices and runners. */
export function accountKey(account: Account): Uint8Array {
  return derive(account.root, 'names')
}

/** Key of one exported file, whose `id` is random. */
export function exportKey(account: Account, id: string): Uint8Array {
  return derive(account.root, 'export', id)
}

/** What the relay calls an engine: 64 hex digits that tell it nothing. */
export function engineName(account: Account, hash: string): string {
  return toHex(derive(account.root, 'engine', hash))
}

/** Opaque form of a pool label, so that the relay can match labels without reading them (I9). 22 characters. */
export function poolTag(account: Account, label: string): string {
  return toBase64(derive(account.root, 'pool', label).subarray(0, 16))
}

/** A device's own key pair and the account's word that it belongs. */
export interface Device {
  secret: Uint8Array
  /** Public name of the device: its Ed25519 public key, base64url. */
  id: string
  /** Signature by the account over the device id, base64url. */
  certificate: string
}

export function newDevice(account: Account): Device {
  return deviceOf(account, ed25519.utils.randomSecretKey())
}

export function deviceOf(account: Account, secret: Uint8Array): Device {
  const id = toBase64(ed25519.getPublicKey(secret))
  const certificate = toBase64(ed25519.sign(certificateText(id), derive(account.root, 'account')))
  return { secret, id, certificate }
}

function certificateText(device: string): Uint8Array {
  return utf8(`baton1|device|${device}`)
}

function verify(signature: string, text: Uint8Array, publicKey: string): boolean {
  try {
    return ed25519.verify(fromBase64(signature), text, fromBase64(publicKey))
  } catch {
    return false
  }
}

/** Does the account vouch for the device? */
export function verifyCertificate(account: string, device: string, certificate: string): boolean {
  return verify(certificate, certificateText(device), account)
}

/** Answer to a relay's challenge: good for this relay's id and this nonce only. */
export function signChallenge(device: Device, account: string, relay: string, nonce: string): string {
  return toBase64(ed25519.sign(challengeText(account, device.id, relay, nonce), device.secret))
}

export function verifyChallenge(
  account: string,
  device: string,
  relay: string,
  nonce: string,
  signature: string,
): boolean {
  return verify(signature, challengeText(account, device, relay, nonce), device)
}

function challengeText(account: string, device: string, relay: string, nonce: string): Uint8Array {
  return utf8(`baton1|sign-in|${account}|${device}|${relay}|${nonce}`)
}

/** What a decision binds: one effect of one session, and the digest of the full call (I10). */
export interface DecisionBinding {
  sid: string
  effect: number
  digest: string
  approved: boolean
  /** Given with an approval: calls like this one are allowed from now on. */
  always?: { tool: string; prefix?: string | undefined; action: string } | undefined
}

export function signDecision(device: Device, binding: DecisionBinding): string {
  return toBase64(ed25519.sign(decisionText(binding), device.secret))
}

export function verifyDecision(device: string, binding: DecisionBinding, signature: string): boolean {
  return verify(signature, decisionText(binding), device)
}

function decisionText({ sid, effect, digest, approved, always }: DecisionBinding): Uint8Array {
  const rule = always ? `|${JSON.stringify([always.tool, always.prefix ?? null, always.action])}` : ''
  return utf8(`baton1|decision|${sid}|${effect}|${digest}|${approved ? 'approve' : 'deny'}${rule}`)
}

/** What the signature of a change of mode says. `revision`: how many changes the session has had before. */
export interface ModeBinding {
  sid: string
  revision: number
  mode: string
}

export function signMode(device: Device, binding: ModeBinding): string {
  return toBase64(ed25519.sign(modeText(binding), device.secret))
}

export function verifyMode(device: string, binding: ModeBinding, signature: string): boolean {
  return verify(signature, modeText(binding), device)
}

function modeText({ sid, revision, mode }: ModeBinding): Uint8Array {
  return utf8(`baton1|mode|${sid}|${revision}|${mode}`)
}

/**
 * A pairing: the root secret waits at the relay, sealed under a one-time key that only the link's fragment holds.
 * `offer` names it to the relay and tells nothing of the key.
 */
export interface Pairing {
  key: Uint8Array
  offer: string
  box: string
}

export function newPairing(account: Account): Pairing {
  const key = randomBytes(KEY_BYTES)
  const offer = pairingOffer(key)
  const box = toBase64(seal(derive(key, 'pairing-box'), account.root, place.pairing(offer)))
  return { key, offer, box }
}

export function pairingOffer(key: Uint8Array): string {
  return toBase64(derive(key, 'pairing-offer').subarray(0, 16))
}

/** Opens what the relay gave out. Throws BatonError `cannot-open` or `link-invalid`. */
export function openPairing(key: Uint8Array, box: string): Account {
  const root = open(derive(key, 'pairing-box'), fromBase64(box), place.pairing(pairingOffer(key)))
  if (root.length !== KEY_BYTES) throw new BatonError('link-invalid')
  return accountOf(root)
}

/** Seed of a session's random generator: 64 hex digits that the relay can't know. */
export function sessionSeed(account: Account, sid: string): string {
  return toHex(derive(account.root, 'seed', sid))
}

/** Fresh id of a session or command: 22 characters of base64url, 127 random bits and more; never like a command's option. */
export function newId(): string {
  for (;;) {
    const id = toBase64(randomBytes(16))
    if (!id.startsWith('-')) return id
  }
}

const FRAGMENT = /^#?pair=([A-Za-z0-9_-]{43})$/

/** The link that a new device opens: the fragment is never sent to a server. */
export function pairingLink(origin: string, pairing: Pick<Pairing, 'key'>): string {
  return `${origin.replace(/\/$/, '')}/#pair=${toBase64(pairing.key)}`
}

/** Reads a pairing link. Throws BatonError `link-invalid`. */
export function parsePairingLink(link: string): { origin: string; key: Uint8Array } {
  let url: URL
  try {
    url = new URL(link.trim())
  } catch (cause) {
    throw new BatonError('link-invalid', '', { cause })
  }
  const match = FRAGMENT.exec(url.hash)
  if (!match?.[1] || !/^https?:$/.test(url.protocol)) throw new BatonError('link-invalid')
  return { origin: url.origin, key: fromBase64(match[1]) }
}

/** A device's keys as one line of JSON, to be kept where only the owner can read. */
export function identityToJson(account: Account, device: Device): string {
  return JSON.stringify({ v: 1, root: toBase64(account.root), device: toBase64(device.secret) })
}

/** Inverse of identityToJson. Throws BatonError `cannot-open`. */
export function identityFromJson(text: string): { account: Account; device: Device } {
  try {
    const { v, root, device } = JSON.parse(text) as { v?: unknown; root?: unknown; device?: unknown }
    if (v !== 1 || typeof root !== 'string' || typeof device !== 'string') throw new Error('shape')
    const account = accountOf(fromBase64(root))
    return { account, device: deviceOf(account, fromBase64(device)) }
  } catch (cause) {
    throw new BatonError('cannot-open', 'The identity file is damaged.', { cause })
  }
}
