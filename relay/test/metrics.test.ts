import { beforeAll, describe, expect, test } from 'vitest'
import type { RunningRelay } from '../src/main.ts'
import type { RedisServer } from '../src/redis-server.ts'
import { newMember, RawPeer, redisForTest, relayForTest, until } from './helpers.ts'

const POOL = 'poolpoolpoolpoolpoolpo'
let redis: RedisServer
let relay: RunningRelay

beforeAll(async () => {
  redis = await redisForTest()
  relay = await relayForTest(redis, { metrics: { host: '127.0.0.1', port: 0 } })
})

/** The value of one line. */
async function value(line: string): Promise<number> {
  const text = await (await fetch(relay.metricsUrl ?? '')).text()
  const found = text.split('\n').find((candidate) => candidate.startsWith(`${line} `))
  return found === undefined ? Number.NaN : Number(found.slice(line.length + 1))
}

describe('metrics', () => {
  test('R5: count sessions, room and waiting, and tell how long the oldest waits', async () => {
    const phone = await RawPeer.signIn(relay)
    const runner = await RawPeer.signIn(relay, newMember(phone.member.account))
    await runner.ask('serve', { capacity: 2, tags: [POOL], body: 'AAAA' })
    expect(await value('baton_capacity')).toBe(2)
    expect(await value('baton_oldest_waiting_seconds{waits_for="room"}')).toBe(0)
    const pinned = await phone.session({ prefer: phone.id, pin: true })
    const held = await phone.session()
    await phone.command(held)
    await runner.notice('offer')
    const { epoch } = await runner.ask('claim', { sid: held })
    await phone.command(pinned)
    await until(async () => (await value('baton_sessions_held')) === 1, 'the lease is counted')
    expect(await value('baton_runners_online')).toBe(1)
    expect(await value('baton_sessions{status="idle"}')).toBe(2)
    expect(await value('baton_sessions_waiting{waits_for="room"}')).toBe(0)
    // What only one machine may take is no reason to start more of others.
    expect(await value('baton_sessions_waiting{waits_for="machine"}')).toBe(1)
    await runner.ask('serve', { capacity: 0, tags: [POOL], body: 'AAAA' })
    await runner.ask('release', { sid: held, epoch, status: 'running' })
    await until(async () => (await value('baton_sessions_waiting{waits_for="room"}')) === 1, 'it waits')
    const before = await value('baton_oldest_waiting_seconds{waits_for="room"}')
    await until(
      async () => (await value('baton_oldest_waiting_seconds{waits_for="room"}')) > before,
      'its wait grows',
    )
    expect(await value('baton_sessions{status="running"}')).toBe(1)
    expect(await value('baton_scripts_total{script="claim",code="ok"}')).toBeGreaterThanOrEqual(1)
    expect(await value('baton_script_seconds_count{script="release"}')).toBeGreaterThanOrEqual(1)
    expect(await value('baton_redis_ping_seconds')).toBeGreaterThan(0)
    expect(await value('baton_relay_connections')).toBeGreaterThanOrEqual(2)
  })

  test('I9: name nobody', async () => {
    const phone = await RawPeer.signIn(relay)
    const sid = await phone.session()
    await phone.command(sid)
    const text = await (await fetch(relay.metricsUrl ?? '')).text()
    for (const name of [sid, phone.id, phone.member.account.id, POOL]) expect(text).not.toContain(name)
    const labels = new Set(Array.from(text.matchAll(/[{,]([a-z_]+)="/g), ([, label = '']) => label))
    const common = ['version', 'major', 'minor', 'patch', 'kind', 'type', 'space', 'le']
    const own = [...labels].filter((label) => !common.includes(label))
    expect(new Set(own)).toEqual(new Set(['code', 'script', 'status', 'waits_for']))
  })

  test('R5: are not served where the app is, and nothing else is served there', async () => {
    expect((await fetch(`${relay.url}/metrics`)).status).toBe(404)
    expect((await fetch((relay.metricsUrl ?? '').replace('/metrics', '/healthz'))).status).toBe(404)
    expect((await fetch(relay.metricsUrl ?? '')).headers.get('content-type')).toContain('text/plain')
    const port = Number(new URL(relay.metricsUrl ?? '').port)
    await expect(relayForTest(redis, { metrics: { host: '127.0.0.1', port } })).rejects.toMatchObject({
      code: 'port-taken',
    })
  })
})
