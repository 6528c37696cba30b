import { newId } from '@baton/shared/keys.ts'
import { CLOSE, LIMITS, SOCKET_PATH } from '@baton/shared/protocol.ts'
import { beforeAll, describe, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import type { RunningRelay } from '../src/main.ts'
import type { RedisServer } from '../src/redis-server.ts'
import { entries, entry, newMember, RawPeer, redisForTest, relayForTest, until } from './helpers.ts'

let redis: RedisServer
let relay: RunningRelay
beforeAll(async () => {
  redis = await redisForTest()
  relay = await relayForTest(redis)
})

const lives = async () => expect((await fetch(`${relay.url}/healthz`)).status).toBe(200)

describe('frames', () => {
  test.each([
    ['not JSON', '{"t":'],
    ['no object', '[]'],
    ['null', 'null'],
    ['no kind', '{}'],
    ['a kind that is no text', '{"t":7}'],
    ['a missing field', '{"t":"ask","re":1}'],
    ['a wrong type', '{"t":"ping","n":"1"}'],
    ['a number that is none', '{"t":"ping","n":1e400}'],
    ['a negative number', '{"t":"ping","n":-1}'],
    ['a field too many', '{"t":"ping","n":1,"admin":true}'],
    ['a prototype', '{"t":"ping","n":1,"__proto__":{"n":2}}'],
    ['NUL and lone surrogates', '\u0000\ud800'],
  ])('P1: %s ends the connection with 4400 and a reason, before sign-in and after', async (_, text) => {
    const before = new RawPeer(relay)
    await before.open()
    const after = await RawPeer.signIn(relay)
    for (const peer of [before, after]) {
      peer.socket.send(text)
      const { code, reason } = await peer.closed
      expect(code).toBe(CLOSE['bad-frame'])
      expect(reason).toMatch(/^bad-frame: \S+/)
    }
    await lives()
  })

  test('P1: so does a binary frame, and a second hello', async () => {
    const binary = await RawPeer.signIn(relay)
    binary.socket.send(Buffer.from('{"t":"ping","n":1}'), { binary: true })
    expect((await binary.closed).code).toBe(CLOSE['bad-frame'])
    const again = await RawPeer.signIn(relay)
    again.hello()
    expect((await again.closed).code).toBe(CLOSE['bad-frame'])
  })

  test('P2: a frame and an ask that only a newer peer knows are refused, and the connection goes on', async () => {
    const peer = await RawPeer.signIn(relay)
    peer.sendFrame({ t: 'subscribe', re: 77, anything: [1, 2] })
    await until(
      () => peer.refusals.some(({ re, code }) => re === 77 && code === 'unknown-message'),
      'it is refused',
    )
    for (const what of ['archive', 'toString', '__proto__', '']) {
      expect(await peer.refused(what, {})).toBe('unknown-message')
    }
    expect(await peer.ask('list', {})).toMatchObject({ sessions: [] })
  })

  test('P3: every ask gets one answer or refusal with its number, however many are under way', async () => {
    const peer = await RawPeer.signIn(relay)
    const sid = await peer.session()
    const asks = Array.from({ length: 200 }, (_, i) =>
      i % 3 === 0 ? peer.refused('claim', { sid: 'no-such-session' }) : peer.command(sid, { id: newId() }),
    )
    const results = await Promise.all(asks)
    expect(results.filter((result) => result === 'no-session')).toHaveLength(67)
    expect(results.filter((result) => typeof result === 'object')).toHaveLength(133)
  })

  test('P4: what does not fit is refused, says where and not what, and nothing is done', async () => {
    const peer = await RawPeer.signIn(relay)
    const sid = await peer.session()
    const secret = 'c2VjcmV0LXZhbHVl'
    const wrong: [string, unknown][] = [
      ['create', { sid: 'a{b}c', meta: '', place: {} }],
      ['create', { sid: newId(), meta: `${secret}!`, place: {} }],
      ['create', { sid: newId(), meta: '', place: { prefer: secret } }],
      ['command', { sid, id: newId(), kind: secret, body: '' }],
      ['command', { sid, id: 'short', kind: 'prompt', body: '' }],
      ['append', { sid, epoch: 1, first: 1, entries: [] }],
      ['append', { sid, epoch: 1, first: 1, entries: [{ ...entry(), kind: 'lease' }] }],
      ['append', { sid, epoch: 1.5, first: 1, entries: entries(1) }],
      ['list', null],
      ['list', { secret }],
      ['serve', { capacity: -1, tags: [], body: '' }],
    ]
    for (const [what, input] of wrong) expect(await peer.refused(what, input)).toBe('bad-frame')
    for (const { message } of peer.refusals) {
      expect(message.length).toBeGreaterThan(0)
      expect(message).not.toContain(secret)
    }
    const { sessions } = await peer.ask('list', {})
    expect(sessions).toMatchObject([{ sid, seq: 0, pending: 0 }])
  })

  test('P4: what is too long for its field is refused as too large', async () => {
    const peer = await RawPeer.signIn(relay)
    const sid = await peer.session()
    const { epoch } = await peer.ask('claim', { sid })
    const command = { sid, id: newId(), kind: 'prompt', body: 'A'.repeat(LIMITS.command_bytes + 1) }
    expect(await peer.refused('command', command)).toBe('too-large')
    const large = entry('event', { body: 'A'.repeat(LIMITS.body_bytes + 1) })
    expect(await peer.refused('append', { sid, epoch, first: 2, entries: [large] })).toBe('too-large')
    const many = { sid, epoch, first: 2, entries: entries(LIMITS.append_entries + 1) }
    expect(await peer.refused('append', many)).toBe('too-large')
    expect(await peer.ask('append', { ...many, entries: entries(LIMITS.append_entries) })).toMatchObject({
      seq: 65,
    })
    await peer.command(sid, { body: 'A'.repeat(LIMITS.command_bytes) })
  })

  test('P5: a frame that is too large ends the connection; one that is far too large is not even read', async () => {
    const large = await RawPeer.signIn(relay)
    large.sendFrame({ t: 'ping', n: 1, padding: 'A'.repeat(LIMITS.frame_bytes) })
    const { code, reason } = await large.closed
    expect([code, reason.split(':')[0]]).toEqual([CLOSE['too-large'], 'too-large'])
    const huge = await RawPeer.signIn(relay)
    huge.socket.send('A'.repeat(LIMITS.frame_bytes * 5))
    expect((await huge.closed).code).toBe(1009)
    await lives()
  })

  test('P1: garbage instead of a WebSocket, and a broken one, do no harm', async () => {
    expect((await fetch(`${relay.url}${SOCKET_PATH}`)).status).toBe(404)
    const peer = await RawPeer.signIn(relay)
    const { _socket: raw } = peer.socket as WebSocket & { _socket: NodeJS.WritableStream }
    raw.write(Buffer.from([0xff, 0xff, 0xff, 0xff, 0x00, 0x13, 0x37]))
    expect((await peer.closed).code).toBeGreaterThanOrEqual(1000)
    await lives()
  })
})

describe('limits', () => {
  test('P6: who asks too fast is told so, and who does not stop is closed', async () => {
    const strict = await relayForTest(redis, { limits: { frames_burst: 50, frames_per_s: 0 } })
    const hasty = await RawPeer.signIn(strict)
    const results = await Promise.allSettled(Array.from({ length: 100 }, () => hasty.ask('list', {})))
    const refused = results.filter(({ status }) => status === 'rejected').length
    expect(refused).toBeGreaterThanOrEqual(40)
    expect(new Set(hasty.refusals.map(({ code }) => code))).toEqual(new Set(['too-fast']))
    for (let i = 0; i < 1100; i++) hasty.sendFrame({ t: 'ping', n: i })
    expect((await hasty.closed).code).toBe(CLOSE['too-fast'])
  })

  test('P6: large frames cost more than small ones', async () => {
    const strict = await relayForTest(redis, { limits: { frames_burst: 100, frames_per_s: 0 } })
    const peer = await RawPeer.signIn(strict)
    const sid = await peer.session()
    const body = 'A'.repeat(LIMITS.command_bytes)
    const results = await Promise.allSettled(Array.from({ length: 20 }, () => peer.command(sid, { body })))
    expect(results.filter(({ status }) => status === 'fulfilled').length).toBeLessThan(12)
  })

  test('P6: an address that connects too often is turned away, others are not concerned', async () => {
    const strict = await relayForTest(redis, { limits: { connects_burst: 3, connects_per_s: 0 } })
    for (let i = 0; i < 3; i++) await RawPeer.signIn(strict)
    const fourth = new RawPeer(strict)
    expect((await fourth.closed).code).toBe(CLOSE['too-fast'])
  })

  test('P7, F4: ping is answered; a peer that falls silent is closed after at least two heartbeats', async () => {
    const quick = await relayForTest(redis, { heartbeat_ms: 40 })
    const peer = await RawPeer.signIn(quick)
    const { heartbeat_ms, timeout_ms } = peer.of('welcome')[0] ?? { heartbeat_ms: 0, timeout_ms: 0 }
    expect(heartbeat_ms).toBe(40)
    expect(timeout_ms).toBeGreaterThanOrEqual(2 * heartbeat_ms)
    const begun = performance.now()
    for (let n = 1; performance.now() - begun < 3 * timeout_ms; n++) {
      peer.sendFrame({ t: 'ping', n })
      await peer.notice('pong', (pong) => pong.n === n)
    }
    expect((await peer.closed).code).toBe(CLOSE.timeout)
  })

  test('P11: an account has a limited number of sessions', async () => {
    const small = await relayForTest(redis, { limits: { sessions_per_account: 2 } })
    const peer = await RawPeer.signIn(small)
    const [first] = [await peer.session(), await peer.session()]
    expect(await peer.refused('create', { sid: newId(), meta: '', place: {} })).toBe('session-limit')
    await peer.ask('create', { sid: first, meta: 'b3RoZXI', place: {} })
    const { sessions } = await peer.ask('list', {})
    expect(sessions.map(({ meta }) => meta)).toEqual(['bWV0YQ', 'bWV0YQ'])
    const other = await RawPeer.signIn(small, newMember())
    await other.session()
  })

  test('P12: an account stores a limited number of bytes; what is known is still answered', async () => {
    const small = await relayForTest(redis, { limits: { bytes_per_account: 100_000 } })
    const peer = await RawPeer.signIn(small)
    const sid = await peer.session()
    const { epoch } = await peer.ask('claim', { sid })
    await peer.command(sid, { id: 'known-command' })
    let seq = 1
    await until(async () => {
      try {
        const list = entries(1, 'A'.repeat(20_000))
        ;({ seq } = await peer.ask('append', { sid, epoch, first: seq + 1, entries: list }))
        return false
      } catch (error) {
        expect(error).toMatchObject({ code: 'storage-limit' })
        return true
      }
    }, 'it is refused')
    // Fifteen thousand bytes each.
    expect(seq).toBeLessThanOrEqual(8)
    expect(await peer.refused('command', { sid, id: newId(), kind: 'prompt', body: '' })).toBe(
      'storage-limit',
    )
    expect(await peer.command(sid, { id: 'known-command' })).toMatchObject({ repeated: true })
    const again = await relayForTest(redis, { limits: { bytes_per_account: 100_000 } })
    const elsewhere = await RawPeer.signIn(again, peer.member)
    await until(
      async () => (await elsewhere.ask('usage', {})).bytes >= 100_000,
      'another relay knows what is stored',
    )
    expect(await elsewhere.refused('create', { sid: newId(), meta: '', place: {} })).toBe('storage-limit')
  })
})
