import { newId } from '@baton/shared/keys.ts'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { accountKeys, onlineKey, relayKeys, sessionKeys } from '../src/keys.ts'
import type { RunningRelay } from '../src/main.ts'
import type { RedisServer } from '../src/redis-server.ts'
import { Presence } from '../src/presence.ts'
import { Scheduler } from '../src/scheduler.ts'
import { hasWork } from '../src/sessions.ts'
import { Sweeper } from '../src/sweeper.ts'
import { entry, lookInto, newMember, RawPeer, redisForTest, relayForTest, silent, until } from './helpers.ts'

let redis: RedisServer
let relay: RunningRelay
let phone: RawPeer
let laptop: RawPeer
let cloud: RawPeer
const POOL = 'poolpoolpoolpoolpoolpo'

beforeAll(async () => {
  redis = await redisForTest()
  relay = await relayForTest(redis)
})
beforeEach(async () => {
  phone = await RawPeer.signIn(relay)
  laptop = await RawPeer.signIn(relay, newMember(phone.member.account))
  cloud = await RawPeer.signIn(relay, newMember(phone.member.account))
})

const serve = (peer: RawPeer, capacity = 4, tags: string[] = []) =>
  peer.ask('serve', { capacity, tags, body: 'AAAA' })

/** Gives the session a checkpoint, so that it may leave its first runner. */
async function checkpoint(sid: string, by = phone): Promise<void> {
  const { epoch, seq } = await by.ask('claim', { sid })
  await by.ask('append', { sid, epoch, first: seq + 1, entries: [entry('checkpoint')] })
  await by.ask('release', { sid, epoch, status: 'idle' })
}

/** A session that waits for a runner, since a later millisecond than all before it. */
async function waitingSession(client = phone): Promise<string> {
  const sid = await client.session()
  const before = Date.now()
  await until(() => Date.now() > before, 'the clock has moved on')
  await client.command(sid)
  return sid
}

describe('work', () => {
  test('S2: work is to run, to move, or a command that waits; what has ended has none', () => {
    const none = { pending: 0, inbox: 3, seen: 0 }
    const one = { pending: 1, inbox: 3, seen: 2 }
    expect(hasWork({ status: 'running', ...none })).toBe(true)
    expect(hasWork({ status: 'moving', ...none })).toBe(true)
    for (const status of ['idle', 'waiting'] as const) {
      expect(hasWork({ status, ...none })).toBe(false)
      expect(hasWork({ status, ...one })).toBe(true)
      expect(hasWork({ status, ...one, seen: 3 })).toBe(false)
    }
    for (const status of ['done', 'failed'] as const) expect(hasWork({ status, ...one })).toBe(false)
  })
})

describe('offers', () => {
  test('S3: a command, a release and a new runner are answered by an offer at once', async () => {
    // No second sweep: what comes, comes at once.
    const own = await redisForTest()
    const [before, unswept] = [
      await relayForTest(own, { sweep_ms: 3_600_000 }),
      await relayForTest(own, { sweep_ms: 3_600_000 }),
    ]
    const first = await RawPeer.signIn(before)
    const early = await first.session()
    await first.command(early)
    // Ends when it has done all that the command gave it to do, so the offer can only come from `serve`.
    await before.close()
    const client = await RawPeer.signIn(unswept, first.member)
    const runner = await RawPeer.signIn(unswept, newMember(client.member.account))
    await serve(runner)
    await runner.notice('offer', (offer) => offer.sid === early)
    const sid = await client.session()
    await client.command(sid)
    await runner.notice('offer', (offer) => offer.sid === sid)
    const { epoch } = await runner.ask('claim', { sid })
    await runner.ask('release', { sid, epoch, status: 'running' })
    await runner.notice('offer', (offer) => offer.sid === sid)
  })

  test('S4: one that is not taken goes to the next runner, then round again', async () => {
    const sid = await phone.session()
    await checkpoint(sid)
    await serve(laptop)
    await serve(cloud)
    await phone.command(sid, { kind: 'move', place: { prefer: laptop.id } })
    await laptop.notice('offer')
    expect(cloud.of('offer')).toEqual([])
    await cloud.notice('offer')
    await laptop.notice('offer')
    await cloud.ask('claim', { sid })
    // Another session is offered, again and again; the taken one, but for an offer that was under way, is not.
    const offers = () =>
      [...laptop.of('offer'), ...cloud.of('offer')].filter((offer) => offer.sid === sid).length
    const other = await phone.session({ prefer: laptop.id })
    await phone.command(other)
    await laptop.notice('offer', (offer) => offer.sid === other)
    const before = offers()
    for (let i = 0; i < 2; i++) await laptop.notice('offer', (offer) => offer.sid === other)
    expect(offers()).toBe(before)
  })

  test('S4, F19: while an offer is under way, nothing that happens makes a second one', async () => {
    const patient = await relayForTest(await redisForTest(), { sweep_ms: 3_600_000, offer_ms: 3_600_000 })
    const client = await RawPeer.signIn(patient)
    const [one, two] = [
      await RawPeer.signIn(patient, newMember(client.member.account)),
      await RawPeer.signIn(patient, newMember(client.member.account)),
    ]
    for (const runner of [one, two]) await serve(runner)
    const sid = await client.session()
    for (let i = 0; i < 5; i++) await client.command(sid)
    for (const runner of [one, two]) {
      const other = await client.session({ prefer: runner.id })
      await client.command(other)
      await runner.notice('offer', (offer) => offer.sid === other)
    }
    const offers = [...one.of('offer'), ...two.of('offer')].filter((offer) => offer.sid === sid)
    expect(offers).toHaveLength(1)
  })

  test('F16: an offer binds nobody; of two runners that take it, one gets the session', async () => {
    await serve(laptop)
    await serve(cloud)
    for (let i = 0; i < 20; i++) {
      const sid = await phone.session()
      await phone.command(sid)
      const results = await Promise.allSettled([laptop, cloud].map((peer) => peer.ask('claim', { sid })))
      expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
      const won = results[0]?.status === 'fulfilled' ? laptop : cloud
      await won.ask('release', { sid, epoch: 1, status: 'done' })
    }
  })

  test('F19: commands to a session that is held wake nobody else', async () => {
    await serve(laptop)
    await serve(cloud)
    const sid = await phone.session()
    await phone.command(sid)
    const holder = await until(
      () => [laptop, cloud].find((peer) => peer.of('offer').some((offer) => offer.sid === sid)),
      'one is offered the session',
    )
    const other = holder === laptop ? cloud : laptop
    await holder.ask('claim', { sid })
    for (let i = 0; i < 5; i++) await phone.command(sid)
    await until(() => holder.of('inbox').length >= 5, 'the holder is told')
    expect(other.of('offer')).toEqual([])
    expect(holder.of('offer')).toHaveLength(1)
  })

  test('S1: a full runner gets no more; a session waits until there is room', async () => {
    await serve(laptop, 1)
    const [first, second] = [await phone.session(), await phone.session()]
    await phone.command(first)
    await laptop.notice('offer')
    await laptop.ask('claim', { sid: first })
    await phone.ask('list', {})
    await until(
      async () =>
        (await phone.ask('list', {})).runners.some(({ device, held }) => device === laptop.id && held === 1),
      'the runner is seen to hold one',
    )
    await phone.command(second)
    await laptop.ask('release', { sid: first, epoch: 1, status: 'done' })
    expect((await laptop.notice('offer')).sid).toBe(second)
  })

  describe('in order', () => {
    let client: RawPeer
    let runner: RawPeer
    beforeEach(async () => {
      // Offers stand until they are taken, so that what is offered was this one's turn.
      const patient = await relayForTest(await redisForTest(), { offer_ms: 3_600_000 })
      client = await RawPeer.signIn(patient)
      runner = await RawPeer.signIn(patient, newMember(client.member.account))
    })
    const offered = () => new Set(runner.of('offer').map(({ sid }) => sid))

    test('S7: those that wait longest are offered first, and no more than there is room for', async () => {
      const sids: string[] = []
      for (let i = 0; i < 6; i++) sids.push(await waitingSession(client))
      await serve(runner, 1)
      for (const [i, expected] of sids.entries()) {
        const { sid } = await runner.notice('offer', (offer) => !sids.slice(0, i).includes(offer.sid))
        expect(sid).toBe(expected)
        // Some sweeps later it is still the only one.
        if (i < sids.length - 1) for (let n = 0; n < 3; n++) await runner.notice('crowded')
        expect(offered()).toEqual(new Set(sids.slice(0, i + 1)))
        const { epoch } = await runner.ask('claim', { sid })
        // The newest command of one that waits already changes nothing about its turn.
        await client.command(sids.at(-1) ?? '')
        await runner.ask('release', { sid, epoch, status: 'done' })
      }
    })

    test('S7: one that came back to the queue stands behind those that wait already', async () => {
      const [one, two] = [await waitingSession(client), await waitingSession(client)]
      await serve(runner, 1)
      expect((await runner.notice('offer')).sid).toBe(one)
      const { epoch } = await runner.ask('claim', { sid: one })
      await runner.ask('release', { sid: one, epoch, status: 'running' })
      expect((await runner.notice('offer')).sid).toBe(two)
    })
  })

  test('S7: one that nobody takes does not hold up those behind it', async () => {
    const [odd, other] = [await waitingSession(), await waitingSession()]
    await serve(laptop, 1)
    await laptop.notice('offer', ({ sid }) => sid === odd)
    await laptop.notice('offer', ({ sid }) => sid === other)
  })

  test('S8: a runner that is full is told how many wait that it could take, for as long as it is so', async () => {
    await serve(laptop, 1)
    const [held, mine, pinned] = [
      await phone.session(),
      await phone.session(),
      await phone.session({ prefer: cloud.id, pin: true }),
    ]
    await phone.command(held)
    await laptop.notice('offer')
    const { epoch } = await laptop.ask('claim', { sid: held })
    await phone.command(mine)
    await phone.command(pinned)
    for (let i = 0; i < 3; i++) expect(await laptop.notice('crowded')).toEqual({ t: 'crowded', waiting: 1 })
    expect(cloud.of('crowded')).toEqual([])
    await laptop.ask('release', { sid: held, epoch, status: 'idle' })
    await laptop.notice('offer', ({ sid }) => sid === mine)
    await laptop.ask('claim', { sid: mine })
    const told = laptop.of('crowded').length
    // Some sweeps later.
    const other = await phone.session({ prefer: cloud.id })
    await phone.command(other)
    await serve(cloud)
    for (let i = 0; i < 2; i++) await cloud.notice('offer', ({ sid }) => sid === other)
    expect(laptop.of('crowded').length).toBeLessThanOrEqual(told + 1)
  })

  test('S9: among runners alike, the one that held the session last comes first, however much it holds', async () => {
    for (const peer of [laptop, cloud]) await serve(peer, 4, [POOL])
    for (const holder of [cloud, laptop, cloud]) {
      const sid = await phone.session({ pool: POOL })
      await checkpoint(sid, holder)
      // It holds more than the other one.
      const busy = await phone.session()
      await holder.ask('claim', { sid: busy })
      await until(
        async () =>
          (await phone.ask('list', {})).runners.some(({ device, held }) => device === holder.id && held > 0),
        'it is seen to hold one',
      )
      await phone.command(sid)
      const offered = await until(
        () => [laptop, cloud].find((peer) => peer.of('offer').some((offer) => offer.sid === sid)),
        'it is offered',
      )
      expect(offered).toBe(holder)
      await offered.ask('claim', { sid })
    }
  })

  test('S2: what a session had seen of its inbox when it was let go wakes it only with the next command', async () => {
    await serve(laptop, 4)
    const sid = await phone.session()
    const { n } = await phone.command(sid)
    await laptop.notice('offer')
    const { epoch } = await laptop.ask('claim', { sid })
    await laptop.ask('release', { sid, epoch, status: 'waiting', seen: n })
    const other = await phone.session()
    await phone.command(other)
    for (let i = 0; i < 2; i++) await laptop.notice('offer', (offer) => offer.sid === other)
    expect(laptop.of('offer').filter((offer) => offer.sid === sid)).toHaveLength(1)
    await phone.command(sid)
    await laptop.notice('offer', (offer) => offer.sid === sid)
  })

  test('F20: a session that no message speaks of any more is found and offered', async () => {
    const sid = await phone.session()
    await phone.command(sid)
    const look = lookInto(redis)
    const { active } = accountKeys(phone.member.account.id)
    await until(() => look.sismember(active, sid), 'it is in the index')
    await look.srem(active, sid)
    // The runner was there all the time, only nobody told the scheduler.
    await serve(laptop)
    expect((await laptop.notice('offer')).sid).toBe(sid)
  })

  test('F20: a session whose runner vanished goes to another one', async () => {
    const quick = await relayForTest(redis, { lease_ms: 200 })
    const [one, two] = [await RawPeer.signIn(quick, laptop.member), await RawPeer.signIn(quick, cloud.member)]
    const sid = await phone.session({ prefer: one.id })
    await checkpoint(sid, one)
    await serve(one)
    await serve(two)
    await phone.command(sid)
    await one.notice('offer')
    await one.ask('claim', { sid })
    one.socket.terminate()
    expect((await two.notice('offer')).sid).toBe(sid)
    expect(await two.ask('claim', { sid })).toMatchObject({ epoch: 4, checkpoint: 2 })
  })

  test('S5: indexes that are wrong are put right from the sessions', async () => {
    const sid = await phone.session()
    await phone.ask('claim', { sid })
    await phone.ask('append', {
      sid,
      epoch: 1,
      first: 2,
      entries: [entry('event', { body: 'A'.repeat(1000) })],
    })
    const look = lookInto(redis)
    const keys = accountKeys(phone.member.account.id)
    await until(() => look.hget(keys.leases, sid), 'the lease is in the index')
    await look.hset(keys.leases, 'gone-session', laptop.id)
    await look.hdel(keys.leases, sid)
    await look.set(keys.usage, 123_456_789)
    // What 1000 characters of base64 stand for.
    await until(async () => Number(await look.get(keys.usage)) === 750, 'the stored bytes are right')
    await until(async () => (await look.hkeys(keys.leases)).join() === sid, 'the leases are right')
  })

  test('P12: what a relay has yet to add to the stored bytes is not counted twice', async () => {
    const own = lookInto(await redisForTest())
    const account = 'a'
    const { sessions, usage } = accountKeys(account)
    await own.sadd(relayKeys.accounts, account)
    await own.sadd(sessions, 's')
    await own.hset(sessionKeys('s').state, { account, bytes: 750, status: 'idle' })
    await own.set(usage, 700)
    const sweeper = new Sweeper(
      own,
      new Scheduler(own, new Presence(own, 1_000), 1_000),
      3_600_000,
      'only',
      silent,
    )
    const stored = async (): Promise<number> => Number(await own.get(usage))
    await sweeper.sweep()
    expect(await own.incrby(usage, 50)).toBe(750)
    await sweeper.sweep()
    await sweeper.sweep()
    expect(await stored()).toBe(750)
    await own.set(usage, 123_456_789)
    await sweeper.sweep()
    await sweeper.sweep()
    expect(await stored()).toBe(750)
  })
})

describe('presence', () => {
  const isOnline = async (device: string) =>
    (await phone.ask('list', {})).runners.find((runner) => runner.device === device)?.online

  test('S6: a runner is online from serve to close, and everybody is told', async () => {
    await phone.ask('list', {})
    await serve(laptop, 3, [POOL])
    const { runner } = await phone.notice('runner', (notice) => notice.runner.online)
    expect(runner).toMatchObject({ device: laptop.id, capacity: 3, held: 0, tags: [POOL], body: 'AAAA' })
    await laptop.close()
    await phone.notice('runner', (notice) => notice.runner.device === laptop.id && !notice.runner.online)
    expect(await isOnline(laptop.id)).toBe(false)
  })

  test('S6: the end of an old connection does not end the presence of a newer one', async () => {
    await serve(laptop)
    const again = await RawPeer.signIn(relay, laptop.member)
    await serve(again)
    await laptop.close()
    // Whoever closes after it is seen to be away, so the old one has been dealt with.
    await serve(cloud)
    await cloud.close()
    await until(async () => (await isOnline(cloud.id)) === false, 'the later one is away')
    expect(await isOnline(again.id)).toBe(true)
  })

  test('F5: a runner counts as online while it pings, not while its socket or its relay seems open', async () => {
    const quick = await relayForTest(redis, { heartbeat_ms: 400 })
    const runner = await RawPeer.signIn(quick, laptop.member)
    await serve(runner)
    const look = lookInto(redis)
    const lives = () => look.pttl(onlineKey(phone.member.account.id, laptop.id))
    expect(await lives()).toBeLessThanOrEqual(1000)
    await until(async () => (await lives()) < 700, 'some of its time is over')
    await until(async () => {
      runner.sendFrame({ t: 'ping', n: 1 })
      await runner.notice('pong')
      return (await lives()) > 800
    }, 'a ping gives it more')
    await phone.ask('list', {})
    await phone.notice('runner', (notice) => notice.runner.device === laptop.id && !notice.runner.online)
  })

  test('S6: what a relay that died leaves behind, others see by themselves', async () => {
    await phone.ask('list', {})
    await serve(laptop)
    await phone.notice('runner', (notice) => notice.runner.online)
    // The key ends without a word, as it does when nobody refreshes it.
    await lookInto(redis).del(onlineKey(phone.member.account.id, laptop.id))
    await phone.notice('runner', (notice) => notice.runner.device === laptop.id && !notice.runner.online)
  })

  test('S3: a session without a checkpoint waits for its preferred runner', async () => {
    await serve(cloud)
    const sid = await phone.session({ prefer: laptop.id })
    await phone.command(sid, { id: newId() })
    const other = await phone.session({ prefer: cloud.id })
    await phone.command(other)
    expect((await cloud.notice('offer')).sid).toBe(other)
    await serve(laptop)
    expect((await laptop.notice('offer')).sid).toBe(sid)
    expect(cloud.of('offer').filter((offer) => offer.sid === sid)).toEqual([])
    expect(await lookInto(redis).hkeys(sessionKeys(sid).offers)).toEqual([laptop.id])
  })
})
