import { spawn } from 'node:child_process'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { BatonError } from '@baton/shared/errors.ts'
import { newId } from '@baton/shared/keys.ts'
import { describe, expect, test } from 'vitest'
import { startRedis, type RedisOptions } from '../src/redis-server.ts'
import {
  atEnd,
  entries,
  lookInto,
  newMember,
  RawPeer,
  redisForTest,
  relayForTest,
  silent,
  temporaryFolder,
  until,
} from './helpers.ts'

const start = async (options: Partial<RedisOptions> = {}) => {
  const server = await startRedis({ dataDir: await temporaryFolder(), log: silent, ...options })
  atEnd(() => server.close())
  return server
}

const codeOf = async (starting: Promise<unknown>): Promise<string> => {
  const error = await starting.then(
    () => new Error('it started'),
    (reason: unknown) => reason,
  )
  if (error instanceof BatonError) return error.code
  throw error
}

const isAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

describe('the private Redis', () => {
  test('D1: syncs every write to the disk, listens on nothing but its socket, throws nothing away', async () => {
    const look = lookInto(await start())
    const setting = async (name: string) => (await look.config('GET', name))[1]
    expect(await setting('appendonly')).toBe('yes')
    expect(await setting('appendfsync')).toBe('always')
    expect(await setting('port')).toBe('0')
    expect(await setting('maxmemory-policy')).toBe('noeviction')
  })

  test('D2: when it dies it is started again, with its data', async () => {
    const server = await start()
    const look = lookInto(server)
    for (let round = 1; round <= 3; round++) {
      await look.set('key', round)
      const pid = server.pid() as number
      process.kill(pid, 'SIGKILL')
      await until(() => server.pid() !== pid && look.ping().catch(() => false), 'it is back')
      expect(await look.get('key')).toBe(String(round))
    }
  })

  test('D3: what a crashed relay left behind does not hinder the next one, and loses nothing', async () => {
    const dataDir = await temporaryFolder()
    const main = new URL('../src/redis-server.ts', import.meta.url)
    const script = `
      import { pino } from 'pino'
      const { startRedis } = await import(${JSON.stringify(main.href)})
      const server = await startRedis({ dataDir: ${JSON.stringify(dataDir)}, log: pino({ level: 'silent' }) })
      console.log(JSON.stringify({ pid: server.pid(), path: server.path }))
      setInterval(() => {}, 1000)`
    const owner = spawn(process.execPath, ['--input-type=module', '-e', script], {
      cwd: new URL('..', import.meta.url).pathname,
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    atEnd(async () => owner.kill('SIGKILL'))
    let said = ''
    owner.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
    await until(() => said.includes('\n'), 'it runs')
    const { pid, path } = JSON.parse(said) as { pid: number; path: string }
    atEnd(async () => isAlive(pid) && process.kill(pid, 'SIGKILL'))
    expect(await codeOf(start({ dataDir }))).toBe('data-in-use')
    await lookInto(path).set('key', 'kept')
    owner.kill('SIGKILL')
    await until(() => owner.signalCode !== null, 'its owner is gone')
    expect(isAlive(pid)).toBe(true)
    const next = await start({ dataDir })
    expect(isAlive(pid)).toBe(false)
    expect(await lookInto(next).get('key')).toBe('kept')
  })

  test('D3, F49: stale files of a run that was cut off do not hinder, a torn last write is dropped', async () => {
    const dataDir = await temporaryFolder()
    const first = await startRedis({ dataDir, log: silent })
    const look = lookInto(first)
    await look.set('key', 'whole')
    await look.set('torn', 'x'.repeat(1000))
    await first.close()
    const dir = join(dataDir, 'redis', 'appendonlydir')
    const file = join(dir, 'appendonly.aof.1.incr.aof')
    const bytes = await readFile(file)
    await writeFile(file, bytes.subarray(0, -500))
    await writeFile(join(dataDir, 'redis', 'owner'), '')
    await writeFile(join(dataDir, 'redis', 'redis.sock'), '')
    const second = lookInto(await start({ dataDir }))
    expect(await second.get('key')).toBe('whole')
    expect(await second.get('torn')).toBeNull()
  })

  test('D4: each thing that is in the way has its own code', async () => {
    expect(await codeOf(start({ program: 'no-such-redis-server' }))).toBe('no-redis')
    const dataDir = await temporaryFolder()
    await writeFile(join(dataDir, 'file'), '')
    expect(await codeOf(start({ dataDir: join(dataDir, 'file') }))).toBe('data-folder')
    expect(await codeOf(start({ disk_reserve_bytes: Number.MAX_SAFE_INTEGER }))).toBe('disk-full')
    expect(await codeOf(start({ program: 'false' }))).toBe('data-folder')
    const broken = join(await temporaryFolder(), 'data')
    await mkdir(join(broken, 'redis', 'appendonlydir'), { recursive: true })
    await writeFile(join(broken, 'redis', 'appendonlydir', 'appendonly.aof.manifest'), 'nonsense\n')
    expect(await codeOf(start({ dataDir: broken }))).toBe('data-folder')
    await rm(join(broken, 'redis'), { recursive: true })
    await start({ dataDir: broken })
  })

  test('D4: a data folder with a long path works', async () => {
    const dataDir = join(await temporaryFolder(), 'd'.repeat(100), 'e'.repeat(100))
    const server = await start({ dataDir })
    expect(await lookInto(server).ping()).toBe('PONG')
  })

  test('D5: close ends it, and its folder can be used again', async () => {
    const dataDir = await temporaryFolder()
    const server = await startRedis({ dataDir, log: silent })
    const pid = server.pid() as number
    await server.close()
    expect(isAlive(pid)).toBe(false)
    await start({ dataDir })
  })
})

describe('while Redis is away', () => {
  test('J11: killed again and again in the middle of writing, it loses nothing that was acknowledged', async () => {
    const redis = await redisForTest()
    const relay = await relayForTest(redis)
    const runner = await RawPeer.signIn(relay)
    const phone = await RawPeer.signIn(relay, newMember(runner.member.account))
    const sid = await runner.session()
    const { epoch } = await runner.ask('claim', { sid })
    await phone.ask('watch', { sid, from: 1 })
    let acknowledged = 1
    const commands: string[] = []
    let refused = 0
    let kills = 0
    const killer = (async () => {
      while (kills < 4) {
        const before = acknowledged
        await until(() => acknowledged > before + 30, 'some more is written')
        process.kill(redis.pid() as number, 'SIGKILL')
        kills++
      }
    })()
    const writer = (async () => {
      while (kills < 4 || acknowledged < 200) {
        const id = newId()
        // The same again until it is answered: whether the first one landed is not known.
        const list = entries(1, Buffer.from(`entry ${acknowledged + 1}`).toString('base64url'))
        await until(async () => {
          try {
            await runner.ask('append', { sid, epoch, first: acknowledged + 1, entries: list })
            return true
          } catch (error) {
            if (!(error instanceof BatonError && error.code === 'store-down')) throw error
            refused++
            return false
          }
        }, 'the append is acknowledged')
        acknowledged++
        if (acknowledged % 10 === 0 && commands.length < 100) {
          const answer = await phone.command(sid, { id }).catch(() => undefined)
          if (answer) commands.push(id)
        }
      }
    })()
    await Promise.all([killer, writer])
    expect(refused).toBeGreaterThan(0)
    await until(() => phone.seqs(sid).at(-1) === acknowledged, 'the watcher is up to date')
    expect(phone.seqs(sid)).toEqual(Array.from({ length: acknowledged }, (_, i) => i + 1))
    const bodies = phone.of('entries').flatMap((frame) => frame.entries.map(({ body }) => body))
    expect(bodies.slice(1)).toEqual(
      Array.from({ length: acknowledged - 1 }, (_, i) => Buffer.from(`entry ${i + 2}`).toString('base64url')),
    )
    const waiting = (await phone.ask('inbox', { sid })).commands.map(({ id }) => id)
    expect(waiting).toEqual(expect.arrayContaining(commands))
    for (const id of commands) expect((await phone.command(sid, { id })).repeated).toBe(true)
    for (const peer of [runner, phone]) expect(peer.socket.readyState).toBe(peer.socket.OPEN)
  })

  test('P10: asks are refused at once with store-down, connections stay, and all goes on by itself', async () => {
    const redis = await redisForTest()
    const relay = await relayForTest(redis, { poll_ms: 3_600_000 })
    const phone = await RawPeer.signIn(relay)
    const runner = await RawPeer.signIn(relay, newMember(phone.member.account))
    await phone.ask('list', {})
    const sid = await phone.session()
    await phone.ask('watch', { sid, from: 1 })
    const { epoch } = await runner.ask('claim', { sid })
    const pid = redis.pid() as number
    process.kill(pid, 'SIGKILL')
    await until(() => redis.pid() !== pid || undefined, 'Redis is being started again')
    await until(() => phone.ask('inbox', { sid }).catch(() => undefined), 'asks work again')
    await runner.ask('append', { sid, epoch, first: 2, entries: entries(1) })
    await until(() => phone.seqs(sid).includes(2), 'notices work again')
    await phone.ask('describe', { sid, meta: 'bmV3' })
    await phone.notice('session', ({ session }) => session.meta === 'bmV3')
  })

  test('P10: with Redis gone for good, every ask is refused and health says so', async () => {
    const redis = await redisForTest()
    const relay = await relayForTest(redis)
    const peer = await RawPeer.signIn(relay)
    const sid = await peer.session()
    await redis.close()
    const asks: [string, unknown][] = [
      ['list', {}],
      ['command', { sid, id: newId(), kind: 'prompt', body: '' }],
      ['watch', { sid, from: 1 }],
      ['claim', { sid }],
      ['read', { sid, from: 1 }],
      ['serve', { capacity: 1, tags: [], body: '' }],
    ]
    for (const [what, input] of asks) expect(await peer.refused(what, input)).toBe('store-down')
    expect((await fetch(`${relay.url}/healthz`)).status).toBe(503)
    peer.sendFrame({ t: 'ping', n: 5 })
    expect((await peer.notice('pong')).n).toBe(5)
    const late = new RawPeer(relay)
    await expect(late.signIn()).rejects.toThrow()
    expect((await late.closed).reason).toMatch(/^store-down/)
  })

  test('D6: a disk without room refuses writes and goes on reading; nothing is half written', async () => {
    const redis = await redisForTest()
    const roomy = await relayForTest(redis)
    const before = await RawPeer.signIn(roomy)
    const sid = await before.session()
    const { epoch } = await before.ask('claim', { sid })
    await before.command(sid, { id: 'known-command' })
    const full = await relayForTest(redis, {
      dataDir: await temporaryFolder(),
      disk_reserve_bytes: Number.MAX_SAFE_INTEGER,
    })
    const peer = await RawPeer.signIn(full, before.member)
    const writes: [string, unknown][] = [
      ['create', { sid: newId(), meta: '', place: {} }],
      ['describe', { sid, meta: '' }],
      ['command', { sid, id: newId(), kind: 'prompt', body: '' }],
      ['append', { sid, epoch, first: 2, entries: entries(1) }],
      ['pairing', { offer: 'A'.repeat(22), box: '' }],
    ]
    for (const [what, input] of writes) expect(await peer.refused(what, input)).toBe('disk-full')
    expect(await peer.command(sid, { id: 'known-command' })).toEqual({ n: 1, repeated: true })
    expect(await peer.ask('read', { sid, from: 1 })).toMatchObject({ tail: 1 })
    expect(await peer.ask('renew', { leases: [{ sid, epoch }] })).toEqual({ lost: [] })
    await peer.ask('release', { sid, epoch, status: 'idle' })
    expect((await peer.ask('list', {})).sessions).toHaveLength(1)
  })
})
