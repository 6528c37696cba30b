import type { AskGives } from '@baton/shared/protocol.ts'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sessionKeys } from '../src/keys.ts'
import type { RunningRelay } from '../src/main.ts'
import type { RedisServer } from '../src/redis-server.ts'
import { entries, entry, lookInto, newMember, RawPeer, redisForTest, relayForTest, until } from './helpers.ts'

let redis: RedisServer
let relay: RunningRelay
let runner: RawPeer
let phone: RawPeer
let sid: string
let lease: AskGives<'claim'>

beforeAll(async () => {
  redis = await redisForTest()
  relay = await relayForTest(redis)
})
beforeEach(async () => {
  runner = await RawPeer.signIn(relay)
  phone = await RawPeer.signIn(relay, newMember(runner.member.account))
  sid = await runner.session()
  lease = await runner.ask('claim', { sid })
})

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => from + i)
const append = (first: number, list = entries(1)) =>
  runner.ask('append', { sid, epoch: lease.epoch, first, entries: list })
const delta = (effect: number, body: string, epoch = lease.epoch) =>
  runner.sendFrame({ t: 'delta', sid, epoch, effect, body })

describe('watch', () => {
  test('F3, J7: what was missed comes first, then what is new, each once and in order', async () => {
    await append(2, entries(40))
    expect(await phone.ask('watch', { sid, from: 1 })).toEqual({ tail: 41 })
    await until(() => phone.seqs(sid).length === 41, 'it has caught up')
    await append(42, entries(10))
    await until(() => phone.seqs(sid).length === 51, 'the new ones came')
    await phone.close()
    await append(52, entries(10))
    phone = await RawPeer.signIn(relay, phone.member)
    await phone.ask('watch', { sid, from: 52 })
    await until(() => phone.seqs(sid).length === 10, 'what was missed came')
    expect(phone.seqs(sid)).toEqual(range(52, 61))
  })

  test('J7: nothing is lost between catching up and live, while somebody writes all the time', async () => {
    const total = 1500
    const writing = (async () => {
      for (let first = 2; first <= total; first += 5)
        await append(first, entries(Math.min(5, total + 1 - first)))
    })()
    const watchers: RawPeer[] = []
    for (let i = 0; i < 8; i++) {
      const watcher = await RawPeer.signIn(relay, newMember(runner.member.account))
      watchers.push(watcher)
      const { tail } = await watcher.ask('read', { sid, from: 1, limit: 1 })
      await watcher.ask('watch', { sid, from: Math.floor(tail / 2) + 1 })
    }
    await writing
    for (const watcher of watchers) {
      await until(() => watcher.seqs(sid).at(-1) === total, 'it is up to date')
      const seqs = watcher.seqs(sid)
      expect(seqs).toEqual(range(seqs[0] as number, total))
    }
  })

  test('J7: a page fits a frame, however large the entries are', async () => {
    const large = 'A'.repeat(250_000)
    for (let first = 2; first < 14; first++) await append(first, entries(1, large))
    await phone.ask('watch', { sid, from: 1 })
    await until(() => phone.seqs(sid).length === 13, 'all came')
    for (const frame of phone.of('entries')) expect(JSON.stringify(frame).length).toBeLessThan(1 << 20)
    expect(phone.of('entries').length).toBeGreaterThan(4)
  })

  test('J8, F23: a cursor beyond the end is told that the journal was rolled back', async () => {
    await phone.ask('watch', { sid, from: 8 })
    expect(await phone.notice('gap')).toEqual({ t: 'gap', sid, reason: 'rolled-back', from: 1, tail: 1 })
    await append(2, entries(3))
    await phone.ask('watch', { sid, from: 1 })
    await until(() => phone.seqs(sid).length === 4, 'it started over')
    expect(phone.of('gap')).toHaveLength(1)
  })

  test('J8: a watcher learns of a journal that is rolled back under it', async () => {
    await append(2, entries(5))
    await phone.ask('watch', { sid, from: 1 })
    await until(() => phone.seqs(sid).length === 6, 'it has caught up')
    const look = lookInto(redis)
    const { state, journal } = sessionKeys(sid)
    await look.multi().xdel(journal, '5-0', '6-0').hset(state, 'seq', 4).exec()
    expect(await phone.notice('gap')).toMatchObject({ reason: 'rolled-back', tail: 4 })
  })

  test('J8: entries that are not kept any more are a gap, not an error', async () => {
    await append(2, entries(20))
    await lookInto(redis).xtrim(sessionKeys(sid).journal, 'MINID', '11-0')
    await phone.ask('watch', { sid, from: 5 })
    expect(await phone.notice('gap')).toEqual({ t: 'gap', sid, reason: 'trimmed', from: 11, tail: 21 })
    await phone.ask('watch', { sid, from: 11 })
    await until(() => phone.seqs(sid).length === 11, 'the rest came')
  })

  test('J9: a lost message costs a poll, never data', async () => {
    await phone.ask('watch', { sid, from: 1 })
    await until(() => phone.seqs(sid).length === 1, 'it has caught up')
    const look = lookInto(redis)
    const { state, journal } = sessionKeys(sid)
    const fields = [
      'epoch',
      '1',
      'kind',
      'event',
      'at',
      '1',
      'size',
      '0',
      'body',
      '',
      'blobs',
      '',
      'hint',
      '',
      'consumes',
      '',
      'lease',
      '',
    ]
    // Written without a word to anybody.
    await look
      .multi()
      .xadd(journal, '2-0', ...fields)
      .hset(state, 'seq', 2)
      .exec()
    await until(() => phone.seqs(sid).length === 2, 'the poll found it')
  })

  test('J9: what came while the relay could not listen is found as soon as it can again', async () => {
    const unpolled = await relayForTest(redis, { poll_ms: 3_600_000 })
    const watcher = await RawPeer.signIn(unpolled, phone.member)
    await watcher.ask('watch', { sid, from: 1 })
    await until(() => watcher.seqs(sid).length === 1, 'it has caught up')
    const look = lookInto(redis)
    const { state, journal } = sessionKeys(sid)
    const empty = ['size', '0', 'body', '', 'blobs', '', 'hint', '', 'consumes', '', 'lease', '']
    // One transaction: nobody listens any more when the entry is written, and nobody is told of it.
    await look
      .multi()
      .call('CLIENT', 'KILL', 'TYPE', 'pubsub')
      .xadd(journal, '2-0', 'epoch', '1', 'kind', 'event', 'at', '1', ...empty)
      .hset(state, 'seq', 2)
      .exec()
    await until(() => watcher.seqs(sid).length === 2, 'it is found')
  })

  test('J7: unwatch ends it, a second watch replaces the first', async () => {
    await phone.ask('watch', { sid, from: 1 })
    await phone.ask('watch', { sid, from: 2 })
    await append(2)
    await until(() => phone.seqs(sid).includes(2), 'the new one came')
    expect(phone.seqs(sid).filter((seq) => seq === 2)).toEqual([2])
    await phone.ask('unwatch', { sid })
    await append(3)
    await phone.ask('watch', { sid, from: 3 })
    await until(() => phone.seqs(sid).includes(3), 'watched again')
    expect(phone.seqs(sid).filter((seq) => seq === 3)).toEqual([3])
    expect(await phone.refused('watch', { sid: 'no-such-session', from: 1 })).toBe('no-session')
  })

  test('P8: a reader that stops reading is not sent more than fits, and misses nothing when it goes on', async () => {
    const large = 'A'.repeat(250_000)
    await phone.ask('watch', { sid, from: 1 })
    await until(() => phone.seqs(sid).length === 1, 'it has caught up')
    phone.socket.pause()
    const look = lookInto(redis)
    const readBytes = async () => Number(/total_net_output_bytes:(\d+)/.exec(await look.info('stats'))?.[1])
    const before = await readBytes()
    for (let first = 2; first < 102; first++) await append(first, entries(1, large))
    // Of 25 MB no more was read than the network's buffers and one page hold.
    expect((await readBytes()) - before).toBeLessThan(15e6)
    phone.socket.resume()
    await until(() => phone.seqs(sid).length === 101, 'all came')
    expect(phone.seqs(sid)).toEqual(range(1, 101))
  })
})

describe('deltas', () => {
  test('J10: reach watchers, and late ones get the newest; the outcome ends it', async () => {
    await phone.ask('watch', { sid, from: 1 })
    await until(() => phone.seqs(sid).length === 1, 'it has caught up')
    delta(1, 'b25l')
    delta(1, 'b25ldHdv')
    expect(await phone.notice('delta')).toMatchObject({ effect: 1, body: 'b25l' })
    expect(await phone.notice('delta')).toMatchObject({ effect: 1, body: 'b25ldHdv' })
    const { partial } = sessionKeys(sid)
    const look = lookInto(redis)
    await until(async () => (await look.hget(partial, 'body')) === 'b25ldHdv', 'the newest is kept')
    const late = await RawPeer.signIn(relay, newMember(runner.member.account))
    await late.ask('watch', { sid, from: 1 })
    expect(await late.notice('delta')).toMatchObject({ effect: 1, body: 'b25ldHdv' })
    await append(2, [entry('outcome')])
    expect(await lookInto(redis).exists(sessionKeys(sid).partial)).toBe(0)
    const latest = await RawPeer.signIn(relay, newMember(runner.member.account))
    await latest.ask('watch', { sid, from: 1 })
    await until(() => latest.seqs(sid).length === 2 && late.seqs(sid).length === 2, 'the outcome came')
    delta(2, 'bmV4dA')
    expect(await latest.notice('delta')).toMatchObject({ effect: 2, body: 'bmV4dA' })
  })

  test('J10: one that is kept late does not outlive the outcome', async () => {
    const other = await runner.session()
    const { epoch } = await runner.ask('claim', { sid: other })
    const look = lookInto(redis)
    const kept = (session: string) => look.hget(sessionKeys(session).partial, 'body')
    // The first is kept at once, the second a moment later.
    delta(1, 'b25l')
    delta(1, 'dHdv')
    await append(2, [entry('outcome')])
    for (const body of ['b25l', 'dHdv']) runner.sendFrame({ t: 'delta', sid: other, epoch, effect: 1, body })
    await until(async () => (await kept(other)) === 'dHdv', 'a later one of another session is kept')
    expect(await kept(sid)).toBeNull()
  })

  test('J10: without the lease they are not passed on', async () => {
    await phone.ask('watch', { sid, from: 1 })
    await until(() => phone.seqs(sid).length === 1, 'it has caught up')
    delta(1, 'c3RhbGU', lease.epoch + 1)
    phone.sendFrame({ t: 'delta', sid, epoch: lease.epoch, effect: 1, body: 'Zm9yZ2Vk' })
    await phone.ask('inbox', { sid })
    delta(1, 'cmlnaHQ')
    expect((await phone.notice('delta')).body).toBe('cmlnaHQ')
    expect(phone.of('delta')).toHaveLength(1)
  })
})
