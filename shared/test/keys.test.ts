import { describe, expect, it } from 'vitest'
import * as keys from '../src/keys.ts'

const account = keys.newAccount()
const device = keys.newDevice(account)

describe('accounts and devices', () => {
  it('derives the same keys from the same root, and others from another', () => {
    const again = keys.accountOf(account.root)
    expect(again.id).toBe(account.id)
    expect(keys.sessionKey(again, 's')).toEqual(keys.sessionKey(account, 's'))
    expect(keys.sessionKey(account, 't')).not.toEqual(keys.sessionKey(account, 's'))
    expect(keys.sessionKey(keys.newAccount(), 's')).not.toEqual(keys.sessionKey(account, 's'))
  })

  it('certifies its own devices and nobody else’s', () => {
    expect(keys.verifyCertificate(account.id, device.id, device.certificate)).toBe(true)
    expect(keys.verifyCertificate(keys.newAccount().id, device.id, device.certificate)).toBe(false)
    expect(keys.verifyCertificate(account.id, keys.newDevice(account).id, device.certificate)).toBe(false)
    expect(keys.verifyCertificate(account.id, device.id, 'nonsense')).toBe(false)
  })

  it('binds the answer to a challenge to relay, account and nonce', () => {
    const signature = keys.signChallenge(device, account.id, 'relay', 'nonce')
    expect(keys.verifyChallenge(account.id, device.id, 'relay', 'nonce', signature)).toBe(true)
    expect(keys.verifyChallenge(account.id, device.id, 'other', 'nonce', signature)).toBe(false)
    expect(keys.verifyChallenge(account.id, device.id, 'relay', 'again', signature)).toBe(false)
  })

  it('keeps an identity as one line and refuses a damaged one', () => {
    const text = keys.identityToJson(account, device)
    const read = keys.identityFromJson(text)
    expect(read).toEqual({ account, device })
    for (const bad of ['', '{}', text.slice(0, -5), text.replace('"v":1', '"v":2')]) {
      expect(() => keys.identityFromJson(bad)).toThrow(expect.objectContaining({ code: 'cannot-open' }))
    }
  })

  it('gives pool labels an opaque form that only the account can make', () => {
    expect(keys.poolTag(account, 'cloud')).toMatch(/^[\w-]{22}$/)
    expect(keys.poolTag(keys.newAccount(), 'cloud')).not.toBe(keys.poolTag(account, 'cloud'))
  })
})

describe('decisions', () => {
  it('I10: a signature holds for one session, effect, call and answer only', () => {
    const binding = { sid: 's', effect: 4, digest: 'd'.repeat(64), approved: true }
    const signature = keys.signDecision(device, binding)
    expect(keys.verifyDecision(device.id, binding, signature)).toBe(true)
    for (const change of [{ sid: 't' }, { effect: 5 }, { digest: 'e'.repeat(64) }, { approved: false }]) {
      expect(keys.verifyDecision(device.id, { ...binding, ...change }, signature)).toBe(false)
    }
    expect(keys.verifyDecision(keys.newDevice(account).id, binding, signature)).toBe(false)
  })
})

describe('pairing', () => {
  it('hands the account over through a link whose key is only in the fragment', () => {
    const pairing = keys.newPairing(account)
    const link = keys.pairingLink('http://127.0.0.1:7788/', pairing)
    expect(link).toMatch(/^http:\/\/127\.0\.0\.1:7788\/#pair=[\w-]{43}$/)
    const { origin, key } = keys.parsePairingLink(link)
    expect(origin).toBe('http://127.0.0.1:7788')
    expect(keys.pairingOffer(key)).toBe(pairing.offer)
    expect(keys.openPairing(key, pairing.box)).toEqual(account)
    expect(link).not.toContain(pairing.offer)
  })

  it('refuses links that are not whole, in words', () => {
    for (const link of ['', 'http://x/', 'http://x/#pair=short', 'ftp://x/#pair=' + 'a'.repeat(43), 'pair']) {
      expect(() => keys.parsePairingLink(link)).toThrow(expect.objectContaining({ code: 'link-invalid' }))
    }
  })

  it('refuses a box of another pairing', () => {
    const [one, other] = [keys.newPairing(account), keys.newPairing(account)]
    expect(() => keys.openPairing(one.key, other.box)).toThrow(
      expect.objectContaining({ code: 'cannot-open' }),
    )
  })
})
