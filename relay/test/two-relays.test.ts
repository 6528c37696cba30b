import { CLOSE } from '@baton/shared/protocol.ts'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { relayKeys, sessionKeys } from '../src/keys.ts'
import type { RunningRelay } from '../src/main.ts'
import type { RedisServer } from '../src/redis-server.ts'
import { entries, lookInto, newMember, RawPeer, redisForTest, relayForTest, until } from './helpers.ts'

let redis: RedisServer
let one: RunningRelay
let two: RunningRelay
let phone: RawPeer
let runner: RawPeer

beforeAll(async () => {
  redis = await redisForTest()
  one = await relayForTest(redis)
  two = await relayForTest(redis)
})
beforeEach(async () => {
  phone = await RawPeer.signIn(one)
  runner = await RawPeer.signIn(two, newMember(phone.member.account))
})

describe('two relays on one Redis', () => {
  test('R1: watch, inbox, offers, deltas and presence reach across', async () => {
    await phone.ask('list', {})
    await runner.ask('serve', { capacity: 2, tags: [], body: 'AAAA' })
    await phone.notice('runner', (notice) => notice.runner.online)
    const sid = await phone.session()
    await phone.ask('watch', { sid, from: 1 })
    await phone.command(sid)
    expect((await runner.notice('offer')).sid).toBe(sid)
    const { epoch, seq } = await runner.ask('claim', { sid })
    await phone.command(sid, { id: 'second-command' })
    await runner.notice('inbox', ({ command }) => command.id === 'second-command')
    await until(() => phone.seqs(sid).includes(seq), 'the claim is seen')
    runner.sendFrame({ t: 'delta', sid, epoch, effect: 1, body: 'cGFydA' })
    expect((await phone.notice('delta')).body).toBe('cGFydA')
    await runner.ask('append', { sid, epoch, first: seq + 1, entries: entries(5) })
    await until(() => phone.seqs(sid).includes(seq + 5), 'the entries are seen')
    await until(
      () => phone.of('session').some(({ session }) => session.holder === runner.id),
      'the holder is told',
    )
    await runner.close()
    await phone.notice('runner', (notice) => notice.runner.device === runner.id && !notice.runner.online)
  })

  test('N4: a revocation at one ends the connections at the other', async () => {
    await phone.ask('revoke', { device: runner.id })
    expect((await runner.closed).code).toBe(CLOSE['device-revoked'])
  })

  test('I1: a lease taken at one is held at the other', async () => {
    const sid = await phone.session()
    await phone.ask('claim', { sid })
    expect(await runner.refused('claim', { sid })).toBe('lease-held')
    const results = await Promise.allSettled([
      phone.ask('append', { sid, epoch: 1, first: 2, entries: entries(1) }),
      runner.ask('append', { sid, epoch: 1, first: 2, entries: entries(1) }),
    ])
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected'])
  })

  test('S5: however many relays there are, a lease ends once and one sweeps at a time', async () => {
    const own = await redisForTest()
    const relays = [await relayForTest(own, { lease_ms: 1500 }), await relayForTest(own, { lease_ms: 1500 })]
    phone = await RawPeer.signIn(relays[0] as RunningRelay)
    const sid = await phone.session()
    await phone.ask('watch', { sid, from: 1 })
    await phone.ask('claim', { sid })
    await until(() => phone.seqs(sid).includes(2), 'the expiry is told')
    const { entries: journal } = await phone.ask('read', { sid, from: 1 })
    expect(journal.map(({ lease }) => lease?.change)).toEqual(['claimed', 'expired'])
    const look = lookInto(own)
    // While it is the turn of another relay, these two leave a lease alone that has run out.
    await look.set(relayKeys.sweep, 'another-relay')
    await phone.ask('claim', { sid })
    const { state } = sessionKeys(sid)
    await until(async () => {
      const now = Number((await look.time())[0]) * 1000
      return now > Number(await look.hget(state, 'expires_at')) + 1000
    }, 'it has run out')
    expect((await phone.ask('read', { sid, from: 3 })).tail).toBe(3)
    await look.del(relayKeys.sweep)
    await until(() => phone.seqs(sid).includes(4), 'the next turn ends it')
  })

  test('R1, P9: when one ends, its peers go on at the other', async () => {
    const third = await relayForTest(redis)
    const sid = await phone.session()
    const peer = await RawPeer.signIn(third, phone.member)
    await peer.ask('watch', { sid, from: 1 })
    await third.close()
    expect((await peer.closed).code).toBe(CLOSE.draining)
    await runner.ask('claim', { sid })
    const again = await RawPeer.signIn(two, phone.member)
    await again.ask('watch', { sid, from: 1 })
    await until(() => again.seqs(sid).length > 0, 'it goes on')
  })
})
