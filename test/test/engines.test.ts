/** Runners of two versions in one account: a session goes on with the engine that it began with. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { bundleAgent } from '@baton/guest/bundle.ts'
import { sha256Hex } from '@baton/shared/bytes.ts'
import { readCopy } from '@baton/shared/copy-read.ts'
import type { Opened } from '@baton/shared/entries.ts'
import { BatonError } from '@baton/shared/errors.ts'
import { engineName } from '@baton/shared/keys.ts'
import { copyPlace, startCopy } from '@baton/runner/cli/copying.ts'
import { untilStarted } from '@baton/runner/cli/started.ts'
import type { RunnerOptions } from '@baton/runner/daemon/runner.ts'
import { GuestHarness } from '@baton/runner/vm/guest-harness.ts'
import { Redis } from 'ioredis'
import { Loop } from '../src/loop.ts'
import type { Program } from '../src/script-harness.ts'
import { until } from '../src/until.ts'

const ECHO = `import { emit, prompt } from 'baton'
export default async function main() {
  for (let turn = 1; ; turn++) emit('said', [turn, (await prompt()).text])
}`

const present = new Uint8Array(readFileSync(join(import.meta.dirname, '../../guest/dist/engine.wasm')))
/** The same in all but its hash: a custom section that nobody reads. */
const older = Buffer.concat([present, Buffer.from([0, 5, 4]), Buffer.from('note')])

const said = (entries: Opened[]): string[] =>
  entries.flatMap((entry) =>
    entry.kind === 'event' && entry.body.type === 'said' ? [JSON.stringify(entry.body.data)] : [],
  )
const isStored = (entries: Opened[]): boolean => entries.some(({ kind }) => kind === 'checkpoint')

async function handsOf(loop: Loop, engine: Uint8Array): Promise<Partial<RunnerOptions['hands']>> {
  const file = join(loop.folder, 'agent.ts')
  writeFileSync(file, ECHO)
  const bundle = await bundleAgent(file)
  return {
    agent: async () => bundle,
    engine: { hash: sha256Hex(engine), bytes: engine },
    harness: (code, other = engine) => new GuestHarness({ engine: other, bundle: code }),
  }
}

/** A session that an older runner has begun, and that runner's end. The engine's key in the store is given back. */
async function begunOnOlder(loop: Loop, redis: Redis): Promise<{ sid: string; key: string }> {
  const one = await loop.runner('one', await handsOf(loop, older))
  const key = `{${loop.account.id}}:engine:${engineName(loop.account, sha256Hex(older))}`
  await until('its engine is stored', () => redis.exists(key))
  const sid = await loop.start(one.id)
  await loop.client.command(sid, 'prompt', { text: 'first' })
  await loop.client.untilEntries(sid, 'it answered', (all) => said(all).length === 1 && isStored(all))
  one.runner.close()
  return { sid, key }
}

const program: Program = function* () {
  yield {}
  return null
}

describe('a newer runner', () => {
  it('J14, F60: goes on with an older session, by the engine that the account has stored, and copies it', async () => {
    await using loop = await Loop.open({ program, lease_ms: 1000 })
    const redis = new Redis(loop.redis.path)
    const { sid, key } = await begunOnOlder(loop, redis)
    const two = await loop.runner('two', await handsOf(loop, present))
    await loop.client.command(sid, 'prompt', { text: 'second' })
    const entries = await loop.client.untilEntries(sid, 'it went on', (all) => said(all).length === 2)
    expect(said(entries)).toEqual(['[1,"first"]', '[2,"second"]'])
    const engines = entries.flatMap((entry) =>
      entry.kind === 'snapshot' ? (entry.body.agent ? [entry.body.agent.engine] : []) : [],
    )
    expect(new Set(engines)).toEqual(new Set([sha256Hex(older)]))

    const meta = { title: 'test', agent: 'script', mode: 'ask', workspace: '/w' } as const
    const from = copyPlace(loop.client, sid)
    const copy = await startCopy(loop.client, { prefer: two.id }, () => readCopy(from, meta))
    expect(await untilStarted(loop.client, copy.sid)).toBe(true)
    await loop.client.command(copy.sid, 'prompt', { text: 'third' })
    await loop.client.untilEntries(copy.sid, 'the copy went on', (all) => said(all).length === 3)

    // The relay learns nothing of it (I9).
    const box = await redis.getBuffer(key)
    expect(key).not.toContain(sha256Hex(older))
    expect(box?.includes('memory')).toBe(false)
    redis.disconnect()
  })

  it('J14: does not take another engine in its place', async () => {
    await using loop = await Loop.open({ program })
    const { engines } = loop.client.link
    await engines.put(older)
    await engines.put(present)
    expect(sha256Hex(await engines.get(sha256Hex(older)))).toBe(sha256Hex(older))
    const keyOf = (engine: Uint8Array): string =>
      `{${loop.account.id}}:engine:${engineName(loop.account, sha256Hex(engine))}`
    const redis = new Redis(loop.redis.path)
    await redis.copy(keyOf(present), keyOf(older), 'REPLACE')
    redis.disconnect()
    await expect(engines.get(sha256Hex(older))).rejects.toThrow(/could not be decrypted/)
    await expect(engines.get('0'.repeat(64))).rejects.toThrow(BatonError)
  })
})
