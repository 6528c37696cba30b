import { sha256Hex } from '@baton/shared/bytes.ts'
import { SealedKind, Status, type AskGives } from '@baton/shared/protocol.ts'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { accountChannel, blobKey, sessionKeys } from '../src/keys.ts'
import type { RunningRelay } from '../src/main.ts'
import type { RedisServer } from '../src/redis-server.ts'
import { entries, entry, lookInto, newMember, RawPeer, redisForTest, relayForTest, until } from './helpers.ts'

let redis: RedisServer
let relay: RunningRelay
let runner: RawPeer
let sid: string
let lease: AskGives<'claim'>

beforeAll(async () => {
  redis = await redisForTest()
  relay = await relayForTest(redis)
})
beforeEach(async () => {
  runner = await RawPeer.signIn(relay)
  sid = await runner.session()
  lease = await runner.ask('claim', { sid })
})

const append = (first: number, list = entries(1), epoch = lease.epoch) => ({
  sid,
  epoch,
  first,
  entries: list,
})
const seqsOf = async (): Promise<number[]> =>
  (await runner.ask('read', { sid, from: 1 })).entries.map(({ seq }) => seq)

async function putBlob(peer: RawPeer, session: string, bytes: string): Promise<string> {
  const hash = sha256Hex(bytes)
  const token = peer.of('welcome')[0]?.token ?? ''
  const response = await fetch(`${relay.url}/blobs/${session}/${hash}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/octet-stream' },
    body: bytes,
  })
  expect(response.status).toBe(201)
  return hash
}

describe('append', () => {
  test('I1: only the holder appends, only under its epoch', async () => {
    const other = await RawPeer.signIn(relay, newMember(runner.member.account))
    expect(await other.refused('append', append(2))).toBe('lease-lost')
    expect(await runner.refused('append', append(2, entries(1), lease.epoch + 1))).toBe('lease-lost')
    expect(await runner.refused('append', append(2, entries(1), lease.epoch - 1))).toBe('lease-lost')
    expect(await seqsOf()).toEqual([1])
    expect(await runner.ask('append', append(2))).toMatchObject({ seq: 2 })
  })

  test('I1: nobody appends to a session that nobody holds, or that is of another account', async () => {
    await runner.ask('release', { sid, epoch: lease.epoch, status: 'idle' })
    expect(await runner.refused('append', append(3))).toBe('lease-lost')
    const stranger = await RawPeer.signIn(relay)
    expect(await stranger.refused('append', append(3))).toBe('no-session')
    expect(await stranger.refused('read', { sid, from: 1 })).toBe('no-session')
  })

  test('I2, J1: entries are numbered 1, 2, 3 …, and what does not follow the end is refused whole', async () => {
    await runner.ask('append', append(2, entries(3)))
    for (const first of [1, 3, 4, 6, 7, 1000]) {
      expect(await runner.refused('append', append(first, entries(2, 'bmV3')))).toBe('wrong-seq')
    }
    expect(await seqsOf()).toEqual([1, 2, 3, 4])
    expect(await runner.ask('append', append(5, entries(64)))).toMatchObject({ seq: 68 })
    expect(await seqsOf()).toEqual(Array.from({ length: 68 }, (_, i) => i + 1))
  })

  test('J1: one bad entry, and none of them is written', async () => {
    const missing = entry('snapshot', { blobs: ['0'.repeat(64)] })
    expect(await runner.refused('append', append(2, [entry(), missing]))).toBe('no-blob')
    const gone = entry('received', { consumes: { n: 7, id: 'no-such-command' } })
    expect(await runner.refused('append', append(2, [entry(), gone]))).toBe('already-consumed')
    expect(await seqsOf()).toEqual([1])
  })

  test('J2, I4: an append whose answer was lost may be sent again, and is written once', async () => {
    const first = await runner.ask('append', append(2, entries(3)))
    await runner.ask('append', append(5))
    expect(await runner.ask('append', append(2, entries(3)))).toEqual(first)
    expect(await runner.refused('append', append(2, entries(3, 'b3RoZXI')))).toBe('wrong-seq')
    expect(await runner.refused('append', append(4, entries(3)))).toBe('wrong-seq')
    expect(await seqsOf()).toEqual([1, 2, 3, 4, 5])
  })

  test('J3: every blob that an entry refers to is stored in this very session', async () => {
    const hash = await putBlob(runner, sid, 'sealed bytes')
    const elsewhere = await putBlob(runner, await runner.session(), 'other sealed bytes')
    expect(await runner.refused('append', append(2, [entry('snapshot', { blobs: [elsewhere] })]))).toBe(
      'no-blob',
    )
    await runner.ask('append', append(2, [entry('snapshot', { blobs: [hash] })]))
    expect((await runner.ask('read', { sid, from: 2 })).entries[0]?.blobs).toEqual([hash])
  })

  test('J13: blobs of superseded snapshots are collected, those of the newest two and of outcomes are not (F61)', async () => {
    const put = (name: string): Promise<string> => putBlob(runner, sid, name)
    const [bundle, outcome] = [await put('bundle'), await put('outcome')]
    const snapshots = [await put('one'), await put('two'), await put('three'), await put('four')]
    const look = lookInto(redis)
    const exists = (hash: string): Promise<number> => look.exists(blobKey(sid, hash))
    await runner.ask('append', append(2, [entry('outcome', { blobs: [outcome] })]))
    for (const [i, hash] of snapshots.entries()) {
      await runner.ask('append', append(3 + i, [entry('snapshot', { blobs: [bundle, hash] })]))
      // One after the other, as they come from a runner.
      await until(
        async () => (await look.hget(sessionKeys(sid).state, 'snapshot_collected')) === String(3 + i),
        'it was looked at',
      )
    }
    await until(async () => (await exists(snapshots[1] ?? '')) === 0, 'the second is gone')
    expect(await Promise.all([...snapshots, bundle, outcome].map(exists))).toEqual([0, 0, 1, 1, 1, 1])
    // What is gone can't be referred to any more.
    expect(
      await runner.refused('append', append(7, [entry('snapshot', { blobs: [snapshots[0] ?? ''] })])),
    ).toBe('no-blob')
  })

  test('J13: what an entry keeps of earlier ones lives as long as its own, and is not read (F28, F61)', async () => {
    const put = (name: string): Promise<string> => putBlob(runner, sid, name)
    const [base, a] = [await put('base'), await put('a')]
    const [b, c, d] = [await put('b'), await put('c'), await put('d')]
    const look = lookInto(redis)
    const exists = (hash: string): Promise<number> => look.exists(blobKey(sid, hash))
    // Each names all that it keeps; the last one is of a session that rests, and keeps nothing of what was before.
    const written = [
      [[base], []],
      [[a], [base]],
      [[b], [base, a]],
      [[c], [base, b]],
      [[d], [base]],
    ]
    for (const [i, [blobs = [], keeps = []]] of written.entries()) {
      await runner.ask('append', append(2 + i, [entry('snapshot', { blobs, keeps })]))
      await until(
        async () => (await look.hget(sessionKeys(sid).state, 'snapshot_collected')) === String(2 + i),
        'it was looked at',
      )
      const alive = [...blobs, ...keeps]
      const gone = [base, a, b, c, d].slice(0, i + 1).filter((hash) => !alive.includes(hash))
      expect([i, ...(await Promise.all(alive.map(exists)))]).toEqual([i, ...alive.map(() => 1)])
      for (const hash of gone) await until(async () => (await exists(hash)) === 0, 'it is gone')
    }
    const { entries: read } = await runner.ask('read', { sid, from: 2 })
    expect(read.map(({ blobs }) => blobs)).toEqual(written.map(([blobs]) => blobs))
    expect(read.some((one) => 'keeps' in one)).toBe(false)
    expect(await runner.refused('append', append(7, [entry('snapshot', { keeps: [b] })]))).toBe('no-blob')
  })

  test('J13: of one write all is looked at, whatever its entries are of', async () => {
    const put = (name: string): Promise<string> => putBlob(runner, sid, name)
    const [bundle, files, one, two] = [
      await put('bundle'),
      await put('files'),
      await put('one'),
      await put('two'),
    ]
    const look = lookInto(redis)
    const checkpoint = entry('checkpoint', { blobs: [files] })
    await runner.ask('append', append(2, [entry('snapshot', { blobs: [bundle] })]))
    await runner.ask('append', append(3, [entry('snapshot', { blobs: [one], keeps: [bundle] })]))
    const lean = entry('snapshot', { blobs: [two], keeps: [bundle] })
    await runner.ask('append', append(4, [checkpoint, lean]))
    await until(async () => (await look.exists(blobKey(sid, one))) === 0, 'it is gone')
    expect(await look.exists(...[bundle, files, two].map((hash) => blobKey(sid, hash)))).toBe(3)
  })

  test('I8: a snapshot is in the journal only after the relay has confirmed its bytes by their hash', async () => {
    const bytes = 'a snapshot, sealed'
    const hash = sha256Hex(bytes)
    const token = runner.of('welcome')[0]?.token ?? ''
    const torn = await fetch(`${relay.url}/blobs/${sid}/${hash}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/octet-stream' },
      body: bytes.slice(0, -1),
    })
    expect(torn.status).toBe(422)
    const snapshot = append(2, [entry('snapshot', { blobs: [hash] })])
    expect(await runner.refused('append', snapshot)).toBe('no-blob')
    await putBlob(runner, sid, bytes)
    await runner.ask('append', snapshot)
    await runner.ask('release', { sid, epoch: lease.epoch, status: 'idle' })
    expect(await runner.ask('claim', { sid })).toMatchObject({ snapshot: 2, checkpoint: 0 })
  })

  test('J4: a command leaves the inbox with the entry that consumes it, once', async () => {
    const { n } = await runner.command(sid, { id: 'command-1' })
    await runner.command(sid, { id: 'command-2' })
    const consume = (id: string) => entry('received', { consumes: { n, id } })
    expect(await runner.refused('append', append(2, [consume('command-2')]))).toBe('already-consumed')
    const twice = append(2, [consume('command-1'), consume('command-1')])
    expect(await runner.refused('append', twice)).toBe('already-consumed')
    expect((await runner.ask('inbox', { sid })).commands).toHaveLength(2)
    await runner.ask('append', append(2, [consume('command-1')]))
    expect((await runner.ask('inbox', { sid })).commands.map(({ id }) => id)).toEqual(['command-2'])
    expect(await runner.refused('append', append(3, [consume('command-1')]))).toBe('already-consumed')
    expect((await runner.ask('read', { sid, from: 2 })).entries[0]?.consumes).toEqual({ n, id: 'command-1' })
    expect(
      await runner.refused('append', append(3, [entry('event', { consumes: { n: 2, id: 'command-2' } })])),
    ).toBe('bad-frame')
  })

  test('J5: what was written is read as it was written, by pages that fit a frame', async () => {
    const list = [
      entry('intent', { body: 'aW50ZW50' }),
      entry('outcome', { hint: { status: 'waiting', notify: true } }),
    ]
    const { at } = await runner.ask('append', append(2, list))
    const page = await runner.ask('read', { sid, from: 2 })
    expect(page).toEqual({
      tail: 3,
      entries: [
        { seq: 2, epoch: 1, kind: 'intent', at, size: 6, body: 'aW50ZW50', blobs: [] },
        { seq: 3, epoch: 1, kind: 'outcome', at, size: 4, body: 'Ym9keQ', blobs: [], hint: list[1]?.hint },
      ],
    })
    const large = 'A'.repeat(200_000)
    for (let first = 4; first < 12; first++) await runner.ask('append', append(first, entries(1, large)))
    const read: number[] = []
    while (read.length < 11) {
      const next = await runner.ask('read', { sid, from: read.length + 1 })
      expect(JSON.stringify(next).length).toBeLessThan(1 << 20)
      expect(next.entries.length).toBeGreaterThan(0)
      read.push(...next.entries.map(({ seq }) => seq))
    }
    expect(read).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11])
    expect((await runner.ask('read', { sid, from: 2, limit: 3 })).entries).toHaveLength(3)
    expect(await runner.ask('read', { sid, from: 99 })).toEqual({ entries: [], tail: 11 })
  })

  test('J6: the hint of an entry becomes the status of the session', async () => {
    await runner.ask('list', {})
    const hints = [
      entry('event', { hint: { status: 'waiting' } }),
      entry('event', { hint: { status: 'running' } }),
      entry(),
    ]
    await runner.ask('append', append(2, hints))
    await runner.notice('session', ({ session }) => session.sid === sid && session.status === 'running')
    const listed = (await runner.ask('list', {})).sessions.find((session) => session.sid === sid)
    expect(listed).toMatchObject({ status: 'running', seq: 4, epoch: 1, holder: runner.id })
  })

  test('J6: that a journal grew is told to the list of sessions, not with each entry', async () => {
    await runner.ask('list', {})
    let told = 0
    const listener = lookInto(redis)
    listener.on('message', (_channel, text: string) => (told += Number(text === `session ${sid}`)))
    await listener.subscribe(accountChannel(runner.member.account.id))
    let seq = 1
    await until(async () => {
      ;({ seq } = await runner.ask('append', append(seq + 1)))
      return runner.of('session').some(({ session }) => session.seq > 20)
    }, 'the list hears of it')
    expect(told).toBeGreaterThan(0)
    expect(told).toBeLessThan(seq / 4)
  })

  test('F26: pages read while others write lack nothing and repeat nothing', async () => {
    const reader = await RawPeer.signIn(relay, newMember(runner.member.account))
    const total = 600
    const writing = (async () => {
      for (let first = 2; first <= total; first += 10) {
        await runner.ask('append', append(first, entries(Math.min(10, total + 1 - first))))
      }
    })()
    const read: number[] = []
    while (read.length < total) {
      const page = await reader.ask('read', { sid, from: read.length + 1, limit: 7 })
      read.push(...page.entries.map(({ seq }) => seq))
    }
    await writing
    expect(read).toEqual(Array.from({ length: total }, (_, i) => i + 1))
  })

  test('J5: bodies are stored as bytes, whichever, and read as they were written; so are those stored as text before', async () => {
    const bytes = [
      Buffer.from(Uint8Array.from({ length: 256 }, (_, i) => i)),
      Buffer.from('box'),
      Buffer.from('body'),
      Buffer.alloc(0),
    ]
    const bodies = bytes.map((box) => box.toString('base64url'))
    await runner.ask(
      'append',
      append(
        2,
        bodies.map((body) => entry('event', { body })),
      ),
    )
    const look = lookInto(redis)
    const { state, journal } = sessionKeys(sid)
    const earlier = 'epoch 1 kind event at 1 size 4 body Ym9keQ'.split(' ')
    const rest = ['blobs', '', 'hint', '', 'consumes', '', 'lease', '']
    await look.xadd(journal, '6-0', ...earlier, ...rest)
    await look.hset(state, 'seq', 6)
    const { entries: read } = await runner.ask('read', { sid, from: 2 })
    expect(read.map(({ body }) => body)).toEqual([...bodies, 'Ym9keQ'])
    expect(read.map(({ size }) => size)).toEqual([...bytes.map((box) => box.length), 4])
    const [[, stored]] = (await look.xrangeBuffer(journal, '2-0', '2-0')) as [[Buffer, Buffer[]]]
    expect(stored).toContainEqual(bytes[0])
  })

  test('J5: what would be read back as another text is refused', async () => {
    for (const body of ['A', 'AB', 'ABCDE', 'Ym9keR']) {
      expect([body, await runner.refused('append', append(2, entries(1, body)))]).toEqual([body, 'bad-frame'])
    }
    expect((await runner.ask('read', { sid, from: 2 })).entries).toEqual([])
  })

  test('I2: Redis itself refuses a number that was used', async () => {
    await expect(lookInto(redis).xadd(sessionKeys(sid).journal, '1-0', 'kind', 'event')).rejects.toThrow(
      /equal or smaller/,
    )
  })
})

test('I2: every kind of entry and every status is kept as it was sent', async () => {
  const list = SealedKind.options.flatMap((kind) =>
    Status.options.map((status) => entry(kind, { hint: { status } })),
  )
  await runner.ask('append', append(2, list))
  const { entries: read } = await runner.ask('read', { sid, from: 2 })
  expect(read.map(({ kind, hint }) => ({ kind, hint }))).toEqual(
    list.map(({ kind, hint }) => ({ kind, hint })),
  )
})
