import { newId } from '@baton/shared/keys.ts'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { sessionKeys } from '../src/keys.ts'
import type { RunningRelay } from '../src/main.ts'
import type { RedisServer } from '../src/redis-server.ts'
import { entry, lookInto, newMember, RawPeer, redisForTest, relayForTest, until } from './helpers.ts'

let redis: RedisServer
let relay: RunningRelay
let phone: RawPeer
let runner: RawPeer
let sid: string

beforeAll(async () => {
  redis = await redisForTest()
  relay = await relayForTest(redis)
})
beforeEach(async () => {
  phone = await RawPeer.signIn(relay)
  runner = await RawPeer.signIn(relay, newMember(phone.member.account))
  sid = await phone.session()
})

const waiting = async () => (await phone.ask('inbox', { sid })).commands

describe('commands', () => {
  test('I6, F12: sent three times with one id, over two devices and connections, it waits once', async () => {
    const id = newId()
    const tablet = await RawPeer.signIn(relay, newMember(phone.member.account))
    const answers = await Promise.all([phone, tablet, phone].map((peer) => peer.command(sid, { id })))
    expect(answers.map(({ n }) => n)).toEqual([1, 1, 1])
    expect(answers.filter(({ repeated }) => !repeated)).toHaveLength(1)
    await phone.close()
    phone = await RawPeer.signIn(relay, phone.member)
    expect(await phone.command(sid, { id })).toEqual({ n: 1, repeated: true })
    expect((await waiting()).map((command) => command.id)).toEqual([id])
  })

  test('F21: it is known for as long as the session, also long after it was applied', async () => {
    const id = newId()
    await phone.command(sid, { id })
    const { epoch } = await runner.ask('claim', { sid })
    await runner.ask('append', {
      sid,
      epoch,
      first: 2,
      entries: [entry('received', { consumes: { n: 1, id } })],
    })
    expect(await phone.command(sid, { id })).toEqual({ n: 1, repeated: true })
    expect(await waiting()).toEqual([])
    expect(await lookInto(redis).ttl(sessionKeys(sid).commands)).toBe(-1)
  })

  test('F10: the first one, sent before any runner was there, waits for it from number 1', async () => {
    const body = 'Zmlyc3Q'
    expect(await phone.command(sid, { kind: 'start', body })).toEqual({ n: 1, repeated: false })
    await runner.ask('claim', { sid })
    const { commands } = await runner.ask('inbox', { sid })
    expect(commands).toMatchObject([{ n: 1, kind: 'start', body, device: phone.id }])
  })

  test('I10: a decision reaches the holder as it was sent, with the device that sent it', async () => {
    await runner.ask('claim', { sid })
    await phone.command(sid, { id: 'the-decision', kind: 'decision', body: 'c2VhbGVk' })
    const { command } = await runner.notice('inbox')
    expect(command).toMatchObject({
      id: 'the-decision',
      kind: 'decision',
      body: 'c2VhbGVk',
      device: phone.id,
    })
  })

  test('F32: of a decision given twice, both are acknowledged and both stand in the inbox in one order', async () => {
    const tablet = await RawPeer.signIn(relay, newMember(phone.member.account))
    const answers = await Promise.all([
      phone.command(sid, { kind: 'decision', body: 'eWVz' }),
      tablet.command(sid, { kind: 'decision', body: 'bm8' }),
    ])
    expect(answers.map(({ n }) => n).toSorted((a, b) => a - b)).toEqual([1, 2])
    expect((await waiting()).map(({ n }) => n)).toEqual([1, 2])
  })

  test('F33: a decision given while no runner is there is kept and delivered', async () => {
    const { epoch } = await runner.ask('claim', { sid })
    await runner.close()
    await phone.command(sid, { kind: 'decision' })
    runner = await RawPeer.signIn(relay, runner.member)
    expect(await runner.ask('renew', { leases: [{ sid, epoch }] })).toEqual({ lost: [] })
    expect((await runner.notice('inbox')).command).toMatchObject({ n: 1, kind: 'decision' })
  })

  test('Q1: a holder is told of commands in order, and only the holder is', async () => {
    const bystander = await RawPeer.signIn(relay, newMember(phone.member.account))
    await bystander.ask('serve', { capacity: 4, tags: [], body: 'AAAA' })
    await runner.ask('claim', { sid })
    for (let i = 1; i <= 20; i++) void phone.command(sid, { id: `command-${i}` })
    await until(() => runner.of('inbox').length >= 20, 'all are told')
    expect(runner.of('inbox').map(({ command }) => command.n)).toEqual(
      Array.from({ length: 20 }, (_, i) => i + 1),
    )
    expect(bystander.of('inbox')).toEqual([])
    await runner.ask('release', { sid, epoch: 1, status: 'idle' })
    await phone.command(sid)
    expect(await waiting()).toHaveLength(21)
    expect(runner.of('inbox')).toHaveLength(20)
  })

  test('Q1, F17: who lost the lease is told of no command any more', async () => {
    const quick = await relayForTest(redis, { lease_ms: 100 })
    const zombie = await RawPeer.signIn(quick, newMember(phone.member.account))
    await zombie.ask('claim', { sid })
    await until(async () => (await phone.ask('read', { sid, from: 1 })).tail === 2, 'its lease ran out')
    await runner.ask('claim', { sid })
    for (let i = 1; i <= 3; i++) {
      await phone.command(sid)
      await runner.notice('inbox', ({ command }) => command.n === i)
    }
    await zombie.ask('list', {})
    expect(zombie.of('inbox')).toEqual([])
  })

  test('Q2: a lost notice is found with the next renewal', async () => {
    await runner.ask('claim', { sid })
    const look = lookInto(redis)
    const { state, inbox } = sessionKeys(sid)
    // As if the message had been lost: the command is there, nobody was told.
    await look.xadd(
      inbox,
      '1-0',
      'id',
      'lost-notice',
      'kind',
      'stop',
      'at',
      '1',
      'device',
      phone.id,
      'body',
      '',
      'place',
      '',
    )
    await look.hset(state, 'inbox', 1)
    await runner.ask('renew', { leases: [{ sid, epoch: 1 }] })
    expect((await runner.notice('inbox')).command.id).toBe('lost-notice')
  })

  test('Q3: a full inbox refuses what is new, answers what is known, and takes again when there is room', async () => {
    const small = await relayForTest(redis, { limits: { inbox_commands: 3 } })
    const peer = await RawPeer.signIn(small, phone.member)
    for (let i = 1; i <= 3; i++) await peer.command(sid, { id: `command-${i}` })
    expect(await peer.refused('command', { sid, id: 'one-too-many', kind: 'prompt', body: '' })).toBe(
      'inbox-full',
    )
    expect(await peer.command(sid, { id: 'command-2' })).toEqual({ n: 2, repeated: true })
    const { epoch } = await runner.ask('claim', { sid })
    const consumes = { n: 2, id: 'command-2' }
    await runner.ask('append', { sid, epoch, first: 2, entries: [entry('received', { consumes })] })
    expect(await peer.command(sid, { id: 'one-too-many' })).toEqual({ n: 4, repeated: false })
  })

  test('Q4: a move of a session that nobody holds changes its place at once', async () => {
    await phone.command(sid, { kind: 'move', place: { prefer: runner.id, pin: true } })
    const session = (await phone.ask('list', {})).sessions[0]
    expect(session).toMatchObject({ status: 'moving', place: { prefer: runner.id, pin: true }, pending: 1 })
    expect(await phone.refused('command', { sid, id: newId(), kind: 'prompt', body: '', place: {} })).toBe(
      'bad-frame',
    )
  })

  test('Q6: a session that has ended takes no commands, and no move wakes it; what is known is answered', async () => {
    await phone.command(sid, { id: 'known-command' })
    for (const status of ['done', 'failed'] as const) {
      const { epoch } = await runner.ask('claim', { sid })
      await runner.ask('release', { sid, epoch, status })
      const move = { sid, id: newId(), kind: 'move', body: '', place: { prefer: runner.id } }
      expect(await phone.refused('command', move)).toBe('session-ended')
      expect(await phone.refused('command', { sid, id: newId(), kind: 'prompt', body: '' })).toBe(
        'session-ended',
      )
      expect(await phone.command(sid, { id: 'known-command' })).toEqual({ n: 1, repeated: true })
      expect((await phone.ask('list', {})).sessions[0]).toMatchObject({ status, place: {}, pending: 1 })
    }
  })

  test('Q5: a command for no session, or for one of another account, is refused', async () => {
    const stranger = await RawPeer.signIn(relay)
    const command = { sid, id: newId(), kind: 'prompt', body: '' }
    expect(await stranger.refused('command', command)).toBe('no-session')
    expect(await stranger.refused('inbox', { sid })).toBe('no-session')
    expect(await phone.refused('command', { ...command, sid: 'no-such-session' })).toBe('no-session')
  })
})
