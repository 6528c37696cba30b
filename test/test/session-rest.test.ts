/** What a session that rests keeps at the relay, and how it goes on from that. */
import { Redis } from 'ioredis'
import { describe, expect, it } from 'vitest'
import { BatonError } from '@baton/shared/errors.ts'
import type { Opened } from '@baton/shared/entries.ts'
import type { Json } from '@baton/shared/guest.ts'
import { Loop, type LoopOptions } from '../src/loop.ts'
import { prompt, tool } from '../src/script-asks.ts'
import { ScriptHarness, type Program } from '../src/script-harness.ts'
import { until } from '../src/until.ts'

/** Tells every prompt, and looks at something before that. */
const echo: Program = function* () {
  yield {}
  let id = 0
  for (;;) {
    const told = yield { ask: [prompt(++id)] }
    yield { ask: [tool(++id, 'look')] }
    const { result } = told as unknown as { result: { text: string } }
    yield {
      ask: [{ id: ++id, kind: 'emit', input: { type: 'note', data: result.text } }, tool(++id, 'look')],
    }
  }
}

const notes = (entries: Opened[]): Json[] =>
  entries.flatMap((entry) => (entry.kind === 'event' && entry.body.type === 'note' ? [entry.body.data] : []))
const snapshots = (entries: Opened[]) =>
  entries.flatMap((entry) => (entry.kind === 'snapshot' ? [entry] : []))

const open = (options: Partial<LoopOptions> = {}): Promise<Loop> =>
  Loop.open({ program: echo, tools: { look: { run: async () => 'seen' } }, park_after_ms: 1, ...options })

async function parked({ client }: Loop, sid: string): Promise<Opened[]> {
  await until('it is parked', async () => {
    const { holder, pending, seq } = await client.info(sid)
    return holder === undefined && pending === 0 && (await client.entries(sid))[seq - 1]?.kind === 'lease'
  })
  return client.entries(sid)
}

async function told(loop: Loop, sid: string, texts: string[]): Promise<Opened[]> {
  for (const text of texts) {
    await loop.client.command(sid, 'prompt', { text })
    await loop.client.untilEntries(sid, `${text} was told`, (entries) => notes(entries).includes(text))
    await parked(loop, sid)
  }
  return parked(loop, sid)
}

async function blobsOf({ redis }: Loop, sid: string): Promise<string[]> {
  const client = new Redis(redis.path)
  try {
    return await client.hkeys(`{${sid}}:blobs`)
  } finally {
    client.disconnect()
  }
}

describe('a session that rests', () => {
  it('J16: has one snapshot at the relay, which stands on the baseline alone (F61)', async () => {
    await using loop = await open()
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    const entries = await told(loop, sid, ['one', 'two', 'three'])
    const all = snapshots(entries)
    const [baseline, last] = [all[0], all.at(-1)]
    expect(last?.body).toMatchObject({ lean: true, previous: baseline?.seq, chain: [expect.any(String)] })
    // While it went on there were others.
    expect(all.some(({ body }) => body.lean === undefined && body.state !== 'baseline')).toBe(true)
    const files = entries.flatMap((entry) =>
      entry.kind === 'checkpoint' ? entry.body.packs.flatMap(({ blobs }) => blobs) : [],
    )
    const needed = [baseline?.body.agent?.bundle_blob, ...(last?.body.chain ?? []), ...files]
    await until('nothing else is kept', async () => (await blobsOf(loop, sid)).length <= new Set(needed).size)
    expect(new Set(await blobsOf(loop, sid))).toEqual(new Set(needed))
  })

  it('J16: is not saved again where it only came by', async () => {
    await using loop = await open()
    const [one, two] = [await loop.runner('one'), await loop.runner('two')]
    const sid = await loop.start(one.id)
    const before = await told(loop, sid, ['one'])
    await loop.client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
    const moved = (entries: Opened[]): boolean =>
      entries.some((entry) => entry.kind === 'lease' && entry.lease.holder === two.id)
    await loop.client.untilEntries(sid, 'it came to two', moved)
    const after = await parked(loop, sid)
    expect(snapshots(after).map(({ seq }) => seq)).toEqual(snapshots(before).map(({ seq }) => seq))
    expect(notes(await told(loop, sid, ['two']))).toEqual(['one', 'two'])
  })

  it('F28: should that snapshot prove bad, all is replayed from the baseline, and nothing is done twice', async () => {
    let [restores, looks] = [0, 0]
    class Fussy extends ScriptHarness {
      override async restore(chain: Uint8Array[]) {
        if (++restores === 3) throw new BatonError('snapshot-torn')
        return super.restore(chain)
      }
    }
    const look = async (): Promise<string> => `seen ${++looks}`
    await using loop = await open({ harness: () => new Fussy(echo), tools: { look: { run: look } } })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    const entries = await told(loop, sid, ['one', 'two', 'three', 'four'])
    expect(notes(entries)).toEqual(['one', 'two', 'three', 'four'])
    expect(restores).toBeGreaterThanOrEqual(3)
    expect(
      entries.filter((entry) => JSON.stringify(entry).includes('A snapshot could not be used')),
    ).toHaveLength(1)
    expect(looks).toBe(8)
  })
})
