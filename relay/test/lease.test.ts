import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sessionKeys } from '../src/keys.ts'
import type { RunningRelay } from '../src/main.ts'
import { mayTake } from '../src/placing.ts'
import type { RedisServer } from '../src/redis-server.ts'
import { entries, entry, lookInto, newMember, RawPeer, redisForTest, relayForTest, until } from './helpers.ts'

let redis: RedisServer
/** Sweeps all the time. */
let relay: RunningRelay
/** Sweeps once, at its start. */
let unswept: RunningRelay
let unsweptRedis: RedisServer
let a: RawPeer
let b: RawPeer
let sid: string

beforeAll(async () => {
  redis = await redisForTest()
  relay = await relayForTest(redis)
  unsweptRedis = await redisForTest()
  unswept = await relayForTest(unsweptRedis, { lease_ms: 150, sweep_ms: 3_600_000 })
})
beforeEach(async () => {
  a = await RawPeer.signIn(relay)
  b = await RawPeer.signIn(relay, newMember(a.member.account))
  sid = await a.session()
})

const leases = async (peer: RawPeer, session = sid) =>
  (await peer.ask('read', { sid: session, from: 1 })).entries.map(({ seq, epoch, lease }) => [
    seq,
    epoch,
    lease?.change,
    lease?.holder,
  ])

async function untilRunOut(session: string): Promise<void> {
  const look = lookInto(unsweptRedis)
  await until(async () => {
    const [seconds, micros] = await look.time()
    const now = Number(seconds) * 1000 + Number(micros) / 1000
    return Number(await look.hget(sessionKeys(session).state, 'expires_at')) <= now
  }, 'the lease has run out')
}
describe('claim', () => {
  test('L1: begins a new epoch, and is refused while a lease lives, also to the same device', async () => {
    expect(await a.ask('claim', { sid })).toMatchObject({ epoch: 1, seq: 1, ttl_ms: 60_000 })
    for (const peer of [a, b]) expect(await peer.refused('claim', { sid })).toBe('lease-held')
    await a.ask('release', { sid, epoch: 1, status: 'idle' })
    expect(await b.ask('claim', { sid })).toMatchObject({ epoch: 2, seq: 3 })
    expect(await leases(a)).toEqual([
      [1, 1, 'claimed', a.id],
      [2, 1, 'released', a.id],
      [3, 2, 'claimed', b.id],
    ])
  })

  test('I1, F16, F25: of many claims at once, one wins', async () => {
    const peers = await Promise.all(
      Array.from({ length: 8 }, () => RawPeer.signIn(relay, newMember(a.member.account))),
    )
    for (let round = 1; round <= 20; round++) {
      const results = await Promise.allSettled(peers.map((peer) => peer.ask('claim', { sid })))
      const won = results.flatMap((result, i) => (result.status === 'fulfilled' ? [i] : []))
      expect(won).toHaveLength(1)
      await peers[won[0] as number]?.ask('release', { sid, epoch: round, status: 'idle' })
    }
  })

  test('L8: the answer carries what is read first, each entry as it is read, and the commands that wait', async () => {
    await a.ask('claim', { sid })
    const body = 'QUJD'.repeat(4)
    const written = [...entries(20, body), entry('checkpoint', { body }), ...entries(20, body)]
    await a.ask('append', { sid, epoch: 1, first: 2, entries: [...written, entry('snapshot', { body })] })
    await a.ask('append', { sid, epoch: 1, first: 44, entries: entries(10, body) })
    await a.ask('release', { sid, epoch: 1, status: 'idle' })
    const sent = [await a.command(sid), await a.command(sid, { kind: 'stop' })]
    const given = await b.ask('claim', { sid })
    const seqs = given.entries?.map(({ seq }) => seq)
    expect(seqs).toEqual([1, 2, 3, 4, 22, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55])
    const all = (await b.ask('read', { sid, from: 1 })).entries
    expect(given.entries).toEqual(all.filter(({ seq }) => seqs?.includes(seq)))
    expect(given.commands?.map(({ n }) => n)).toEqual(sent.map(({ n }) => n))
    expect(given.commands).toEqual((await b.ask('inbox', { sid })).commands)
  })

  test('L8: what is large is left out; the rest goes along', async () => {
    await a.ask('claim', { sid })
    const large = entry('event', { body: 'A'.repeat(100_000) })
    await a.ask('append', { sid, epoch: 1, first: 2, entries: [large, entry('snapshot'), large, entry()] })
    await a.ask('release', { sid, epoch: 1, status: 'idle' })
    for (let n = 0; n < 2; n++) await a.command(sid, { body: 'A'.repeat(40_000) })
    const given = await b.ask('claim', { sid })
    expect(given.entries?.map(({ seq }) => seq)).toEqual([1, 2, 3, 5, 6, 7])
    expect(given.commands).toBeUndefined()
  })

  test('L1: a session of another account can not be claimed', async () => {
    const stranger = await RawPeer.signIn(relay)
    expect(await stranger.refused('claim', { sid })).toBe('no-session')
    expect(await stranger.refused('create', { sid, meta: 'bWV0YQ', place: {} })).toBe('no-session')
    expect((await stranger.ask('list', {})).sessions).toEqual([])
  })
})

describe('place', () => {
  const POOL = 'poolpoolpoolpoolpoolpo'

  test('L7: a pinned session goes to its runner or pool only, whoever asks; a move is the way out', async () => {
    const c = await RawPeer.signIn(relay, newMember(a.member.account))
    await c.ask('serve', { capacity: 1, tags: ['otherotherotherotherot', POOL], body: 'AAAA' })
    const pinned = await a.session({ prefer: b.id, pin: true })
    expect(await a.refused('claim', { sid: pinned })).toBe('placed-elsewhere')
    await a.command(pinned, { kind: 'move', place: { pool: POOL, pin: true } })
    for (const peer of [a, b]) expect(await peer.refused('claim', { sid: pinned })).toBe('placed-elsewhere')
    expect(await leases(a, pinned)).toEqual([])
    expect(await c.ask('claim', { sid: pinned })).toMatchObject({ epoch: 1, moving: true })
  })

  test('L7: the script and the scheduler have the same rule', async () => {
    await b.ask('serve', { capacity: 1, tags: [POOL], body: 'AAAA' })
    const runners = [
      { peer: a, device: a.id, tags: [] },
      { peer: b, device: b.id, tags: [POOL] },
    ]
    let allowed = 0
    for (const prefer of [undefined, a.id, 'x'.repeat(43)]) {
      for (const pool of [undefined, POOL, 'otherotherotherotherot']) {
        for (const pin of [undefined, false, true]) {
          for (const checkpoint of [0, 2]) {
            const place = {
              ...(prefer && { prefer }),
              ...(pool && { pool }),
              ...(pin !== undefined && { pin }),
            }
            const session = await a.session(checkpoint === 0 ? place : {})
            if (checkpoint > 0) {
              await a.ask('claim', { sid: session })
              await a.ask('append', { sid: session, epoch: 1, first: 2, entries: [entry('checkpoint')] })
              await a.ask('release', { sid: session, epoch: 1, status: 'idle', place })
            }
            for (const { peer, ...runner } of runners) {
              const may = mayTake({ place, checkpoint, unstored: '', holders: [] }, runner)
              const claimed = await peer.ask('claim', { sid: session }).catch(() => undefined)
              expect([place, checkpoint, runner.device, claimed !== undefined]).toEqual([
                ...[place, checkpoint, runner.device, may],
              ])
              if (!claimed) continue
              allowed++
              await peer.ask('release', { sid: session, epoch: claimed.epoch, status: 'idle' })
            }
          }
        }
      }
    }
    expect(allowed).toBeGreaterThan(20)
  })

  test('L1: says how long the session waited for a runner, and whether it was on its way to one', async () => {
    await a.command(sid)
    const look = lookInto(redis)
    const waits_since = Number(await look.hget(sessionKeys(sid).state, 'waits_since'))
    expect(waits_since).toBeGreaterThan(0)
    await look.hset(sessionKeys(sid).state, 'waits_since', waits_since - 5000)
    const claimed = await a.ask('claim', { sid })
    expect(claimed.waited_ms).toBeGreaterThanOrEqual(5000)
    expect(claimed.moving).toBe(false)
    await a.ask('release', { sid, epoch: 1, status: 'moving' })
    expect(await b.ask('claim', { sid })).toMatchObject({ moving: true })
  })
})

describe('renew', () => {
  test('L2, F22: extends a lease that lives, and names those that do not', async () => {
    const look = lookInto(redis)
    const expiry = async () => Number(await look.hget(sessionKeys(sid).state, 'expires_at'))
    await a.ask('claim', { sid })
    const before = await expiry()
    await until(async () => {
      expect(await a.ask('renew', { leases: [{ sid, epoch: 1 }] })).toEqual({ lost: [] })
      return (await expiry()) > before
    }, 'the lease ends later')
    const other = await a.session()
    expect(
      await a.ask('renew', {
        leases: [
          { sid, epoch: 2 },
          { sid: other, epoch: 1 },
          { sid: 'no-such-session', epoch: 1 },
        ],
      }),
    ).toEqual({ lost: [sid, other, 'no-such-session'] })
    expect(await b.ask('renew', { leases: [{ sid, epoch: 1 }] })).toEqual({ lost: [sid] })
  })
})

describe('release', () => {
  test('L3: is written, keeps status and place, and only the holder can', async () => {
    await a.ask('claim', { sid })
    expect(await b.refused('release', { sid, epoch: 1, status: 'idle' })).toBe('lease-lost')
    await a.ask('release', { sid, epoch: 1, status: 'waiting', place: { prefer: b.id } })
    expect(await a.refused('release', { sid, epoch: 1, status: 'idle' })).toBe('lease-lost')
    const session = (await a.ask('list', {})).sessions[0]
    expect(session).toMatchObject({ status: 'waiting', place: { prefer: b.id } })
    expect(session).not.toHaveProperty('holder')
    const { entries: journal } = await a.ask('read', { sid, from: 2 })
    expect(journal[0]?.lease).toEqual({ change: 'released', holder: a.id, place: { prefer: b.id } })
  })

  test('L3: a move that came while it was held says where to, unless the holder does', async () => {
    const placeOf = async () => (await a.ask('list', {})).sessions[0]?.place
    await a.ask('claim', { sid })
    await a.command(sid, { kind: 'move', place: { prefer: b.id } })
    expect(await placeOf()).toEqual({})
    await a.ask('release', { sid, epoch: 1, status: 'idle' })
    expect(await placeOf()).toEqual({ prefer: b.id })
    await b.ask('claim', { sid })
    await a.command(sid, { kind: 'move', place: { prefer: b.id } })
    await b.ask('release', { sid, epoch: 2, status: 'done', place: { prefer: a.id, pin: true } })
    expect(await placeOf()).toEqual({ prefer: a.id, pin: true })
  })
})

describe('expiry', () => {
  test('F17, L4, F24: the append of a runner whose lease ran out is refused, also before anybody noticed', async () => {
    const zombie = await RawPeer.signIn(unswept)
    const session = await zombie.session()
    await zombie.ask('claim', { sid: session })
    await untilRunOut(session)
    const late = { sid: session, epoch: 1, first: 2, entries: entries(1) }
    expect(await zombie.refused('append', late)).toBe('lease-lost')
    expect(await zombie.refused('release', { sid: session, epoch: 1, status: 'idle' })).toBe('lease-lost')
    expect(await zombie.ask('renew', { leases: [{ sid: session, epoch: 1 }] })).toEqual({ lost: [session] })
    expect(await leases(zombie, session)).toEqual([[1, 1, 'claimed', zombie.id]])
  })

  test('L5: a claim ends a lease that ran out unnoticed, in the journal too', async () => {
    const first = await RawPeer.signIn(unswept)
    const second = await RawPeer.signIn(unswept, newMember(first.member.account))
    const session = await first.session()
    await first.ask('claim', { sid: session })
    await untilRunOut(session)
    expect(await second.ask('claim', { sid: session })).toMatchObject({ epoch: 3, seq: 3 })
    expect(await leases(second, session)).toEqual([
      [1, 1, 'claimed', first.id],
      [2, 2, 'expired', first.id],
      [3, 3, 'claimed', second.id],
    ])
  })

  test('L6: the sweeper ends a lease that ran out; the epoch moves on', async () => {
    const quick = await relayForTest(redis, { lease_ms: 100 })
    const zombie = await RawPeer.signIn(quick)
    const session = await zombie.session()
    await zombie.ask('watch', { sid: session, from: 1 })
    await zombie.ask('claim', { sid: session })
    await zombie.command(session, { kind: 'move', place: { prefer: zombie.id } })
    await until(() => zombie.seqs(session).includes(2), 'the expiry is told')
    expect(await leases(zombie, session)).toEqual([
      [1, 1, 'claimed', zombie.id],
      [2, 2, 'expired', zombie.id],
    ])
    const late = { sid: session, epoch: 1, first: 3, entries: entries(1) }
    expect(await zombie.refused('append', late)).toBe('lease-lost')
    expect((await zombie.ask('list', {})).sessions[0]).toMatchObject({
      place: { prefer: zombie.id },
      epoch: 2,
    })
  })
})
