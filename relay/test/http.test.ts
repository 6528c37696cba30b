import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { sha256Hex } from '@baton/shared/bytes.ts'
import { newAccount, newPairing, openPairing } from '@baton/shared/keys.ts'
import { LIMITS } from '@baton/shared/protocol.ts'
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { accountKeys, pairingKey } from '../src/keys.ts'
import { startRelay, type RunningRelay } from '../src/main.ts'
import type { RedisServer } from '../src/redis-server.ts'
import {
  lookInto,
  newMember,
  RawPeer,
  redisForTest,
  relayForTest,
  silent,
  temporaryFolder,
  until,
} from './helpers.ts'

let redis: RedisServer
let relay: RunningRelay
let peer: RawPeer
let sid: string

beforeAll(async () => {
  redis = await redisForTest()
  const clientDir = await temporaryFolder()
  await mkdir(join(clientDir, 'assets'))
  await writeFile(join(clientDir, 'index.html'), '<!doctype html><title>Baton</title>')
  await writeFile(join(clientDir, 'sw.js'), 'self')
  await writeFile(join(clientDir, 'assets', 'main-abc123.js'), 'export {}')
  relay = await relayForTest(redis, { clientDir })
})
beforeEach(async () => {
  peer = await RawPeer.signIn(relay)
  sid = await peer.session()
})

const tokenOf = (member: RawPeer) => member.of('welcome')[0]?.token ?? ''
const blob = (
  method: string,
  bytes: string | Uint8Array,
  more: { hash?: string; token?: string; sid?: string } = {},
) =>
  fetch(`${relay.url}/blobs/${more.sid ?? sid}/${more.hash ?? sha256Hex(bytes)}`, {
    method,
    headers: {
      authorization: `Bearer ${more.token ?? tokenOf(peer)}`,
      'content-type': 'application/octet-stream',
    },
    ...(method === 'PUT' ? { body: bytes } : {}),
  })
const codeOf = async (response: Response) => {
  const { code } = (await response.json()) as { code: string }
  return [response.status, code]
}

describe('engines', () => {
  const name = (n: number) => n.toString(16).padStart(64, '0')
  const engine = (method: string, which: string, member: RawPeer, body?: string) =>
    fetch(`${relay.url}/engines/${which}`, {
      method,
      headers: { authorization: `Bearer ${tokenOf(member)}`, 'content-type': 'application/octet-stream' },
      ...(body === undefined ? {} : { body }),
    })

  test('J14: are stored once for an account, and exist for it only', async () => {
    expect(await codeOf(await engine('GET', name(1), peer))).toEqual([404, 'no-blob'])
    expect((await engine('HEAD', name(1), peer)).status).toBe(404)
    expect((await engine('PUT', name(1), peer, 'first')).status).toBe(201)
    expect((await engine('PUT', name(1), peer, 'second')).status).toBe(201)
    expect((await engine('HEAD', name(1), peer)).status).toBe(200)
    expect(await (await engine('GET', name(1), peer)).text()).toBe('first')
    const stranger = await RawPeer.signIn(relay)
    expect(await codeOf(await engine('GET', name(1), stranger))).toEqual([404, 'no-blob'])
  })

  test('J14: are few, of bounded size, and need a signed-in device', async () => {
    const member = await RawPeer.signIn(relay)
    for (let n = 0; n < LIMITS.engines; n++) {
      expect((await engine('PUT', name(n), member, 'x')).status).toBe(201)
    }
    expect((await codeOf(await engine('PUT', name(99), member, 'x')))[1]).toBe('storage-limit')
    expect((await engine('PUT', name(3), member, 'x')).status).toBe(201)
    const large = await engine('PUT', name(1), peer, 'x'.repeat(LIMITS.engine_bytes + 1))
    expect((await codeOf(large))[1]).toBe('too-large')
    expect((await codeOf(await engine('GET', 'short', peer)))[1]).toBe('bad-frame')
    expect((await fetch(`${relay.url}/engines/${name(1)}`)).status).toBe(401)
  })
})

describe('blobs', () => {
  test('J12: what was stored is given back byte by byte, and storing it again changes nothing', async () => {
    const bytes = Uint8Array.from({ length: 300_000 }, (_, i) => (i * 7919) % 256)
    for (let i = 0; i < 2; i++) expect((await blob('PUT', bytes)).status).toBe(201)
    const response = await blob('GET', bytes)
    expect(response.headers.get('cache-control')).toContain('immutable')
    expect(new Uint8Array(await response.arrayBuffer())).toEqual(bytes)
  })

  test('J12: bytes that do not have the hash that names them are refused, and not kept', async () => {
    const hash = sha256Hex('what was meant')
    expect(await codeOf(await blob('PUT', 'what came', { hash }))).toEqual([422, 'bad-blob'])
    expect(await codeOf(await blob('GET', '', { hash }))).toEqual([404, 'no-blob'])
  })

  test('J12: another account sees nothing of it, not even whether it is there', async () => {
    await blob('PUT', 'sealed')
    const stranger = await RawPeer.signIn(relay)
    const token = tokenOf(stranger)
    for (const method of ['GET', 'PUT']) {
      expect(await codeOf(await blob(method, 'sealed', { token }))).toEqual([404, 'no-session'])
      expect(await codeOf(await blob(method, 'x', { token, sid: 'no-such-session' }))).toEqual([
        404,
        'no-session',
      ])
    }
  })

  test('N5: without a token, or with one that has ended or is of a revoked device, nothing is given', async () => {
    const response = await fetch(`${relay.url}/blobs/${sid}/${sha256Hex('x')}`)
    expect(await codeOf(response)).toEqual([401, 'not-signed-in'])
    expect(await codeOf(await blob('PUT', 'x', { token: 'A'.repeat(43) }))).toEqual([401, 'not-signed-in'])
    const brief = await relayForTest(redis, { token_ms: 50 })
    const token = tokenOf(await RawPeer.signIn(brief, peer.member))
    await until(async () => (await blob('GET', 'x', { token })).status === 401, 'the token has ended')
    const stolen = await RawPeer.signIn(relay, newMember(peer.member.account))
    await peer.ask('revoke', { device: stolen.id })
    expect(await codeOf(await blob('GET', 'x', { token: tokenOf(stolen) }))).toEqual([403, 'device-revoked'])
  })

  test('P4: a blob that is too large, and a path that is none, are refused', async () => {
    const small = await relayForTest(redis, { limits: { blob_bytes: 1000 } })
    const at = (path: string, body: string) =>
      fetch(`${small.url}${path}`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${tokenOf(peer)}`, 'content-type': 'application/octet-stream' },
        body,
      })
    const large = 'A'.repeat(1001)
    expect(await codeOf(await at(`/blobs/${sid}/${sha256Hex(large)}`, large))).toEqual([413, 'too-large'])
    for (const path of [`/blobs/${sid}/abc`, `/blobs/a%7Bb%7Dcdefgh/${sha256Hex('x')}`]) {
      expect(await codeOf(await at(path, 'x'))).toEqual([400, 'bad-frame'])
    }
    expect((await at(`/blobs/${sid}/${sha256Hex('A'.repeat(1000))}`, 'A'.repeat(1000))).status).toBe(201)
  })

  test('P12: blobs count for the account', async () => {
    const small = await relayForTest(redis, { limits: { bytes_per_account: 1000 } })
    const token = tokenOf(await RawPeer.signIn(small, peer.member))
    const put = (bytes: string) =>
      fetch(`${small.url}/blobs/${sid}/${sha256Hex(bytes)}`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/octet-stream' },
        body: bytes,
      })
    expect((await put('A'.repeat(1000))).status).toBe(201)
    expect(await codeOf(await put('B'))).toEqual([507, 'storage-limit'])
    const elsewhere = await relayForTest(redis)
    const response = await fetch(`${elsewhere.url}/blobs/${sid}/${sha256Hex('C')}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/octet-stream' },
      body: 'C',
    })
    expect(response.status).toBe(201)
    const { usage } = accountKeys(peer.member.account.id)
    await until(
      async () => Number(await lookInto(redis).get(usage)) === 1001,
      'it is counted, also where the account is not connected',
    )
  })
})

describe('pairing', () => {
  const take = (offer: unknown, at = relay) =>
    fetch(`${at.url}/pair`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ offer }),
    })

  test('N6: a pairing is given out once, to whoever holds the link', async () => {
    const account = newAccount()
    const { key, offer, box } = newPairing(account)
    const before = Date.now()
    const { expires_at } = await peer.ask('pairing', { offer, box })
    expect(expires_at).toBeGreaterThanOrEqual(before + LIMITS.pairing_ms)
    const answers = await Promise.all([take(offer), take(offer), take(offer)])
    expect(answers.map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([200, 410, 410])
    const got = (await answers.find(({ status }) => status === 200)?.json()) as { box: string }
    expect(openPairing(key, got.box).id).toBe(account.id)
    expect(await codeOf(await take(offer))).toEqual([410, 'link-expired'])
  })

  test('N6: it ends after ten minutes', async () => {
    const { offer, box } = newPairing(newAccount())
    await peer.ask('pairing', { offer, box })
    const look = lookInto(redis)
    const lives = await look.pttl(pairingKey(offer))
    expect(lives).toBeGreaterThan(LIMITS.pairing_ms - 60_000)
    expect(lives).toBeLessThanOrEqual(LIMITS.pairing_ms)
    await look.pexpire(pairingKey(offer), 1)
    await until(async () => (await look.exists(pairingKey(offer))) === 0, 'its time is over')
    expect(await codeOf(await take(offer))).toEqual([410, 'link-expired'])
  })

  test('N6: guessing is slow, and nonsense is refused', async () => {
    const strict = await relayForTest(redis, { limits: { pairings_per_min: 3 } })
    for (let i = 0; i < 3; i++) expect((await take('A'.repeat(22), strict)).status).toBe(410)
    expect(await codeOf(await take('A'.repeat(22), strict))).toEqual([429, 'too-fast'])
    for (const offer of ['', 7, null, '*', 'A'.repeat(1000)])
      expect((await take(offer)).status).toBeGreaterThanOrEqual(400)
  })
})

describe('pages', () => {
  const page = (path: string, accept = 'text/html') => fetch(`${relay.url}${path}`, { headers: { accept } })

  test('W1: the first page answers every path of the app, and is asked for anew; hashed files stay', async () => {
    for (const path of ['/', '/index.html', '/session/abc', '/?x=1']) {
      const response = await page(path)
      expect(await response.text()).toContain('<title>Baton')
      expect(response.headers.get('cache-control')).toBe('no-cache')
    }
    expect((await page('/sw.js', '*/*')).headers.get('cache-control')).toBe('no-cache')
    const hashed = await page('/assets/main-abc123.js', '*/*')
    expect(hashed.headers.get('cache-control')).toBe('public, max-age=31536000, immutable')
  })

  test('W1: what is no page is not found, and nothing outside the folder is served', async () => {
    expect((await page('/assets/gone.js', '*/*')).status).toBe(404)
    for (const path of ['/../package.json', '/%2e%2e/package.json', '/..%2fpackage.json']) {
      expect(await (await page(path, '*/*')).text()).not.toContain('"name"')
    }
  })

  test('W2: every answer forbids other origins, frames and sniffing', async () => {
    for (const path of ['/', '/sw.js', '/healthz', '/nothing']) {
      const { headers } = await page(path)
      const policy = headers.get('content-security-policy') ?? ''
      expect(policy).toContain("default-src 'self'")
      expect(policy).toContain("frame-ancestors 'none'")
      expect(policy).not.toContain('unsafe')
      expect(headers.get('x-content-type-options')).toBe('nosniff')
      expect(headers.get('referrer-policy')).toBe('no-referrer')
    }
  })

  test('W3, F6: health is asked of the store, not of memory', async () => {
    const { status, store } = (await (await fetch(`${relay.url}/healthz`)).json()) as Record<string, string>
    expect([status, store]).toEqual(['ok', peer.of('welcome')[0]?.store])
  })

  test('W1: without a built client there are no pages, and all else works', async () => {
    const bare = await relayForTest(redis, { clientDir: '/no/such/folder' })
    expect((await fetch(`${bare.url}/`, { headers: { accept: 'text/html' } })).status).toBe(404)
    await RawPeer.signIn(bare)
  })
})

describe('start', () => {
  test('D4: a port that is taken, and a Redis that is not there, have their codes', async () => {
    const taken = startRelay({ redis: redis.path, port: relay.port, log: silent })
    await expect(taken).rejects.toMatchObject({ code: 'port-taken' })
    const nowhere = startRelay({ redis: '/no/such/redis.sock', port: 0, log: silent })
    await expect(nowhere).rejects.toMatchObject({ code: 'store-down' })
  })
})
