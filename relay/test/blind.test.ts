import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { sha256Hex, toBase64, toHex, utf8 } from '@baton/shared/bytes.ts'
import { accountKey, newPairing, sessionKey } from '@baton/shared/keys.ts'
import { place, seal, sealJson } from '@baton/shared/seal.ts'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { startRedis } from '../src/redis-server.ts'
import {
  atEnd,
  entry,
  lookInto,
  newMember,
  RawPeer,
  relayForTest,
  temporaryFolder,
  until,
} from './helpers.ts'

const CANARIES = [
  'prompt-canary',
  'code-canary',
  'file-name-canary',
  'output-canary',
  'device-canary',
  'title-canary',
]

async function everyByte(dir: string): Promise<string> {
  const texts: string[] = []
  for (const file of await readdir(dir, { recursive: true, withFileTypes: true })) {
    if (file.isFile()) texts.push((await readFile(join(file.parentPath, file.name))).toString('latin1'))
  }
  return texts.join('\n')
}

test('I9: nothing that people or agents wrote, and no secret, is in Redis, in its files or in the log', async () => {
  const lines: string[] = []
  const sink = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(chunk.toString())
      done()
    },
  })
  const log = pino({ level: 'trace' }, sink)
  const dataDir = await temporaryFolder()
  const redis = await startRedis({ dataDir, log })
  atEnd(() => redis.close())
  const relay = await relayForTest(redis, { log })

  const member = newMember()
  const { account, device } = member
  const about = (name: string) => sealJson(accountKey(account), { name }, place.device(device.id))
  const laptop = new RawPeer(relay, member, about('device-canary'))
  await laptop.signIn()
  const sid = await laptop.session()
  const key = sessionKey(account, sid)
  await laptop.ask('describe', { sid, meta: sealJson(key, { title: 'title-canary' }, place.meta(sid)) })
  await laptop.ask('serve', { capacity: 1, tags: [], body: about('device-canary') })
  const command = {
    id: 'command-1',
    kind: 'prompt',
    body: sealJson(key, { text: 'prompt-canary' }, 'x'),
  } as const
  await laptop.command(sid, command)
  const bytes = seal(key, utf8('file-name-canary: code-canary'), place.blob(sid))
  const hash = sha256Hex(bytes)
  const token = laptop.of('welcome')[0]?.token ?? ''
  const response = await fetch(`${relay.url}/blobs/${sid}/${hash}`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/octet-stream' },
    body: bytes as Uint8Array<ArrayBuffer>,
  })
  expect(response.status).toBe(201)
  const { epoch, seq } = await laptop.ask('claim', { sid })
  const outcome = sealJson(key, { output: 'output-canary' }, 'x')
  laptop.sendFrame({ t: 'delta', sid, epoch, effect: 1, body: outcome })
  await laptop.ask('append', {
    sid,
    epoch,
    first: seq + 1,
    entries: [
      entry('received', { body: command.body, consumes: { n: 1, id: command.id } }),
      entry('outcome', { body: outcome, blobs: [hash] }),
    ],
  })
  const pairing = newPairing(account)
  await laptop.ask('pairing', { offer: pairing.offer, box: pairing.box })
  await laptop.refused('append', { sid, epoch, first: 99, entries: [entry('event', { body: outcome })] })
  await laptop.refused('command', { sid, id: 'x', kind: 'prompt-canary', body: 'output-canary' })
  await laptop.ask('release', { sid, epoch, status: 'idle' })
  const quick = await RawPeer.signIn(await relayForTest(redis, { log, lease_ms: 100 }), member)
  await quick.ask('claim', { sid })
  await until(async () => (await laptop.ask('read', { sid, from: 1 })).tail === 6, 'a lease ran out too')

  // The means work: what is there under plain names is found.
  const look = lookInto(redis)
  const dump: string[] = []
  for (const name of await look.keys('*'))
    dump.push(name, (await look.dumpBuffer(name))?.toString('latin1') ?? '')
  const files = await everyByte(dataDir)
  for (const text of [dump.join('\n'), files]) {
    expect(text).toContain(sid)
    expect(text).toContain(laptop.id)
  }
  expect(lines.join('')).toContain(laptop.id)

  const secrets = [
    toBase64(account.root),
    toHex(account.root),
    toBase64(laptop.member.device.secret),
    toBase64(key),
    toBase64(pairing.key),
    token,
  ]
  const forms = [...CANARIES, ...CANARIES.map((word) => toBase64(utf8(word))), ...secrets]
  for (const word of forms) {
    for (const [where, text] of [
      ['keys', dump.join('\n')],
      ['files', files],
      ['log', lines.join('')],
    ] as const) {
      expect(text.includes(word), `${word} in ${where}`).toBe(false)
    }
  }
  for (const body of [command.body, outcome, pairing.box, laptop.member.device.certificate]) {
    expect(lines.join('').includes(body)).toBe(false)
  }
})
