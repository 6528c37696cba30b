import { newId } from '@baton/shared/keys.ts'
import type { RunnerInfo } from '@baton/shared/protocol.ts'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { accountKeys, onlineKey, sessionKeys } from '../src/keys.ts'
import type { RunningRelay } from '../src/main.ts'
import type { RedisServer } from '../src/redis-server.ts'
import { rank } from '../src/scheduler.ts'
import { hasWork } from '../src/sessions.ts'
import { entry, lookInto, newMember, RawPeer, redisForTest, relayForTest, until } from './helpers.ts'

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
async function checkpoint(sid: string, status: 'idle' | 'running' | 'waiting' = 'idle'): Promise<void> {
  const { epoch, seq } = await phone.ask('claim', { sid })
  await phone.ask('append', { sid, epoch, first: seq + 1, entries: [entry('checkpoint')] })
  await phone.ask('release', { sid, epoch, status })
}

describe('rank', () => {
  const runner = (device: string, more: Partial<RunnerInfo> = {}): RunnerInfo => ({
    device,
    online: true,
    since: 0,
    capacity: 2,
    held: 0,
    tags: [],
    body: '',
    ...more,
  })

  test('S1: the preferred runner first, then the pool, then by how little they hold', () => {
    const runners = [
      runner('busy', { held: 1 }),
      runner('free'),
      runner('pool-busy', { tags: [POOL], held: 1 }),
      runner('pool', { tags: [POOL] }),
      runner('home', { held: 1 }),
    ]
    expect(rank({ prefer: 'home', pool: POOL }, 7, runners)).toEqual([
      'home',
      'pool',
      'pool-busy',
      'free',
      'busy',
    ])
    expect(rank({ pool: POOL }, 0, runners)).toEqual(['pool', 'pool-busy', 'free', 'busy', 'home'])
    expect(rank({}, 0, runners)).toEqual(['free', 'pool', 'busy', 'home', 'pool-busy'])
  })

  test('S1: who is away or full does not count', () => {
    const runners = [runner('away', { online: false }), runner('full', { held: 2 }), runner('other')]
    expect(rank({ prefer: 'away' }, 7, runners)).toEqual(['other'])
    expect(rank({ prefer: 'full' }, 7, runners)).toEqual(['other'])
  })

  test('S1: a pinned session, and one without a checkpoint, stays where it is', () => {
    const runners = [runner('home', { online: false }), runner('other'), runner('pool', { tags: [POOL] })]
    expect(rank({ prefer: 'home', pin: true }, 7, runners)).toEqual([])
    expect(rank({ prefer: 'home' }, 0, runners)).toEqual([])
    expect(rank({ pool: POOL, pin: true }, 7, runners)).toEqual(['pool'])
  })

  test('S2: work is to run, to move, or a command that waits; what has ended has none', () => {
    expect(hasWork({ status: 'running', pending: 0 })).toBe(true)
    expect(hasWork({ status: 'moving', pending: 0 })).toBe(true)
    for (const status of ['idle', 'waiting'] as const) {
      expect(hasWork({ status, pending: 0 })).toBe(false)
      expect(hasWork({ status, pending: 1 })).toBe(true)
    }
    for (const status of ['done', 'failed'] as const) expect(hasWork({ status, pending: 1 })).toBe(false)
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
    expect(await runner.notice('offer')).toEqual({ t: 'offer', sid: early })
    const sid = await client.session()
    await client.command(sid)
    expect(await runner.notice('offer')).toEqual({ t: 'offer', sid })
    const { epoch } = await runner.ask('claim', { sid })
    await runner.ask('release', { sid, epoch, status: 'running' })
    expect(await runner.notice('offer')).toEqual({ t: 'offer', sid })
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
    await checkpoint(sid)
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
    await until(async () => Number(await look.get(keys.usage)) === 1000, 'the stored bytes are right')
    await until(async () => (await look.hkeys(keys.leases)).join() === sid, 'the leases are right')
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
