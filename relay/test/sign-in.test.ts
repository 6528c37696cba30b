import { newAccount, newDevice, signChallenge } from '@baton/shared/keys.ts'
import { CLOSE } from '@baton/shared/protocol.ts'
import { beforeAll, describe, expect, test } from 'vitest'
import { accountKeys } from '../src/keys.ts'
import type { RunningRelay } from '../src/main.ts'
import type { RedisServer } from '../src/redis-server.ts'
import { lookInto, newMember, RawPeer, redisForTest, relayForTest, until } from './helpers.ts'

let redis: RedisServer
let relay: RunningRelay
beforeAll(async () => {
  redis = await redisForTest()
  relay = await relayForTest(redis)
})

describe('sign-in', () => {
  test('N1: hello, challenge, proof, welcome; the nonce is another one each time', async () => {
    const member = newMember()
    const first = await RawPeer.signIn(relay, member)
    const second = await RawPeer.signIn(relay, member)
    const nonces = [first, second].map((peer) => peer.of('challenge')[0]?.nonce)
    expect(nonces[0]).not.toBe(nonces[1])
    const welcome = first.of('welcome')[0]
    expect(welcome?.token).toMatch(/^[A-Za-z0-9_-]{43}$/)
    expect(welcome?.token).not.toBe(second.of('welcome')[0]?.token)
  })

  test('N1, F6, F8: a handshake that is not finished in time is closed', async () => {
    const hasty = await relayForTest(redis, { handshake_ms: 50 })
    const silentPeer = new RawPeer(hasty)
    const half = new RawPeer(hasty)
    await half.open()
    half.hello()
    for (const peer of [silentPeer, half]) expect((await peer.closed).code).toBe(CLOSE.timeout)
  })

  test('N2: a proof for another nonce, relay, device or account is refused', async () => {
    const member = newMember()
    const { account, device } = member
    const other = newMember()
    const wrong = [
      (relayId: string) => signChallenge(device, account.id, relayId, 'another-nonce'),
      (_: string, nonce: string) => signChallenge(device, account.id, 'another-relay', nonce),
      (relayId: string, nonce: string) => signChallenge(other.device, account.id, relayId, nonce),
      (relayId: string, nonce: string) => signChallenge(device, other.account.id, relayId, nonce),
    ]
    for (const sign of wrong) {
      const peer = new RawPeer(relay, member)
      await peer.open()
      peer.hello()
      const { relay: relayId, nonce } = await peer.notice('challenge')
      peer.sendFrame({ t: 'proof', signature: sign(relayId, nonce) })
      const { code, reason } = await peer.closed
      expect([code, reason.split(':')[0]]).toEqual([CLOSE['not-signed-in'], 'bad-signature'])
      expect(peer.refusals[0]?.code).toBe('bad-signature')
      expect(peer.of('welcome')).toEqual([])
    }
  })

  test('N2: a device that the account does not vouch for is refused', async () => {
    const account = newAccount()
    const stranger = newDevice(newAccount())
    const peer = new RawPeer(relay, { account, device: stranger })
    await expect(peer.signIn()).rejects.toThrow('closed before welcome')
    expect(peer.refusals[0]?.code).toBe('bad-signature')
    expect(await lookInto(redis).smembers(accountKeys(account.id).devices)).toEqual([])
  })

  test('N2: whoever asks before welcome is closed', async () => {
    const peer = new RawPeer(relay)
    await peer.open()
    peer.sendFrame({ t: 'ask', re: 1, what: 'list', with: {} })
    expect((await peer.closed).code).toBe(CLOSE['not-signed-in'])
    expect(peer.notices).toEqual([])
  })

  test('N1: another protocol version is told so', async () => {
    const peer = new RawPeer(relay)
    await peer.open()
    peer.hello({ protocol: 999 })
    expect((await peer.closed).code).toBe(CLOSE['version-mismatch'])
  })

  test('N3: accounts are admitted while there is room; one that is in stays in', async () => {
    const own = await redisForTest()
    const full = await relayForTest(own, { accounts_max: 1 })
    const member = newMember()
    await RawPeer.signIn(full, member)
    const late = new RawPeer(full)
    await expect(late.signIn()).rejects.toThrow('closed before welcome')
    expect((await late.closed).reason).toMatch(/^accounts-full/)
    await RawPeer.signIn(full, newMember(member.account))
  })

  test('N3: of many new accounts at once, only as many as there is room for get in', async () => {
    const full = await relayForTest(await redisForTest(), { accounts_max: 3 })
    const peers = Array.from({ length: 10 }, () => new RawPeer(full))
    const results = await Promise.allSettled(peers.map((peer) => peer.signIn()))
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(3)
  })

  test('N4: a revoked device is closed, and does not come in again; its account and others go on', async () => {
    const phone = await RawPeer.signIn(relay)
    const stolen = await RawPeer.signIn(relay, newMember(phone.member.account))
    await phone.ask('list', {})
    await phone.ask('revoke', { device: stolen.id })
    expect((await stolen.closed).code).toBe(CLOSE['device-revoked'])
    const again = new RawPeer(relay, stolen.member)
    await expect(again.signIn()).rejects.toThrow()
    expect((await again.closed).code).toBe(CLOSE['device-revoked'])
    const told = await phone.notice('device', ({ device }) => device.device === stolen.id && device.revoked)
    expect(told.device.revoked).toBe(true)
    expect((await phone.ask('list', {})).devices.find(({ device }) => device === stolen.id)?.revoked).toBe(
      true,
    )
  })

  test('N4: a revocation whose message was lost is noticed with the next ping', async () => {
    const peer = await RawPeer.signIn(relay)
    const { account, device } = peer.member
    await lookInto(redis).sadd(accountKeys(account.id).revoked, device.id)
    peer.sendFrame({ t: 'ping', n: 1 })
    expect((await peer.closed).code).toBe(CLOSE['device-revoked'])
  })

  test('N5: the token is kept by its hash only, and ends', async () => {
    const look = lookInto(redis)
    const peer = await RawPeer.signIn(relay)
    const token = peer.of('welcome')[0]?.token ?? ''
    const keys = await look.keys('*token*')
    expect(keys.length).toBeGreaterThan(0)
    for (const key of keys) {
      expect(key).not.toContain(token)
      expect(await look.get(key)).not.toContain(token)
      expect(await look.pttl(key)).toBeGreaterThan(0)
    }
  })

  test('N7: welcome names the store; when it was emptied, open connections are ended and the name is another', async () => {
    const own = await redisForTest()
    const there = await relayForTest(own)
    const member = newMember()
    const before = await RawPeer.signIn(there, member)
    await lookInto(own).flushall()
    const pid = own.pid() ?? 0
    process.kill(pid, 'SIGKILL')
    const { code, reason } = await before.closed
    expect([code, reason.split(':')[0]]).toEqual([CLOSE.draining, 'draining'])
    const after = await until(
      () => RawPeer.signIn(there, member).catch(() => undefined),
      'sign-in works again',
    )
    expect(after.of('welcome')[0]?.store).not.toBe(before.of('welcome')[0]?.store)
  })
})
