import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkHeader, parseHeader, readScript, SCRIPTS } from '../src/scripts.ts'
import {
  atEnd,
  entry,
  lookInto,
  newMember,
  RawPeer,
  redisForTest,
  relayForTest,
  temporaryFolder,
  until,
} from './helpers.ts'

const LUA = new URL('../src/lua/', import.meta.url)
const names = readdirSync(LUA).map((file) => file.replace(/\.lua$/, ''))

describe('scripts', () => {
  test('R2: every file has a binding and the other way round', () => {
    expect(names.filter((name) => name !== 'prelude').toSorted()).toEqual(Object.keys(SCRIPTS).toSorted())
  })

  test.each(Object.entries(SCRIPTS))(
    'R2: the header of %s says what the binding says and what the code does',
    (name, binding) => {
      const source = readScript(name)
      checkHeader(name, source, binding)
      expect(source).toMatch(/^-- [A-Z].*\.\n|^-- [A-Z]/)
      expect(binding.keys.length).toBeLessThanOrEqual(5)
      const code = source.replaceAll(/--.*$/gm, '')
      const returned = new Set([...code.matchAll(/return \{ '([a-z-]+)'/g)].map((match) => match[1]))
      expect(returned).toEqual(new Set(binding.returns))
      const keys = new Set([...code.matchAll(/KEYS\[(\d+)\]/g)].map((match) => Number(match[1])))
      expect(keys).toEqual(new Set(binding.keys.map((_, i) => i + 1)))
      const highest = Math.max(0, ...[...code.matchAll(/ARGV\[(\d+)\]/g)].map((match) => Number(match[1])))
      expect(highest).toBeLessThanOrEqual(binding.args.length)
    },
  )

  test('R2: a header that drifts is refused, naming both sides', () => {
    const source = readScript('renew')
    expect(() => checkHeader('renew', source, { ...SCRIPTS.renew, keys: ['state', 'journal'] })).toThrow(
      /renew\.lua/,
    )
    expect(() => checkHeader('renew', source.replace('lease-lost', 'lease-gone'), SCRIPTS.renew)).toThrow(
      /lease-gone/,
    )
    expect(
      parseHeader(
        '-- Text.\n-- KEYS\n--   a   what\n--                more\n-- ARGV\n-- RETURNS\n--   ok\nx',
      ),
    ).toEqual({
      keys: ['a'],
      args: [],
      returns: ['ok'],
    })
  })

  test('R3: all keys of a script share a hash tag: everything works on a Redis in cluster mode', async () => {
    const dir = await temporaryFolder()
    const path = join(dir, 'cluster.sock')
    const port = String(20_000 + Math.floor(Math.random() * 10_000))
    const child = spawn(
      'redis-server',
      [
        '--port',
        port,
        '--bind',
        '127.0.0.1',
        '--unixsocket',
        path,
        '--dir',
        dir,
        '--save',
        '',
        '--cluster-enabled',
        'yes',
      ],
      { stdio: 'ignore' },
    )
    atEnd(async () => child.kill('SIGKILL'))
    const look = lookInto(path)
    await until(() => look.ping().catch(() => undefined), 'it answers')
    await look.cluster('ADDSLOTSRANGE', 0, 16_383)
    await until(async () => (await look.cluster('INFO')).includes('cluster_state:ok'), 'it is whole')
    await expect(look.mget('{a}', '{b}')).rejects.toThrow('CROSSSLOT')
    const relay = await relayForTest(path)
    const phone = await RawPeer.signIn(relay)
    const runner = await RawPeer.signIn(relay, newMember(phone.member.account))
    await runner.ask('serve', { capacity: 2, tags: [], body: 'AAAA' })
    const sid = await phone.session()
    await phone.ask('watch', { sid, from: 1 })
    await phone.ask('describe', { sid, meta: 'bmV3' })
    await phone.command(sid, { id: 'command-1' })
    await runner.notice('offer')
    const { epoch, seq } = await runner.ask('claim', { sid })
    runner.sendFrame({ t: 'delta', sid, epoch, effect: 1, body: 'cGFydA' })
    await phone.notice('delta')
    await runner.ask('renew', { leases: [{ sid, epoch }] })
    const received = entry('received', { consumes: { n: 1, id: 'command-1' } })
    await runner.ask('append', { sid, epoch, first: seq + 1, entries: [received, entry('outcome')] })
    await runner.ask('release', { sid, epoch, status: 'running' })
    await runner.notice('offer')
    const quick = await RawPeer.signIn(await relayForTest(path, { lease_ms: 100 }), runner.member)
    await quick.ask('claim', { sid })
    await until(() => phone.seqs(sid).length >= 6, 'the lease ran out')
    await runner.close()
    expect((await phone.ask('list', {})).sessions[0]).toMatchObject({ sid, meta: 'bmV3', status: 'running' })
  })

  test('R2: a Redis that has forgotten the scripts gets them again', async () => {
    const redis = await redisForTest()
    const relay = await relayForTest(redis)
    const peer = await RawPeer.signIn(relay)
    const sid = await peer.session()
    await lookInto(redis).script('FLUSH')
    expect(await peer.command(sid)).toEqual({ n: 1, repeated: false })
  })

  test('R4: the relay reads no body: it imports neither the sealed shapes nor the means to open them', () => {
    const src = new URL('../src/', import.meta.url)
    for (const file of readdirSync(src).filter((name) => name.endsWith('.ts'))) {
      const text = readFileSync(new URL(file, src), 'utf8')
      expect(text, file).not.toMatch(/shared\/(journal|seal|guest|digest)\.ts/)
    }
  })
})
