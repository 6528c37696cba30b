/** What a copy of a session brings along. */
import { describe, expect, it } from 'vitest'
import { readCopy } from '@baton/shared/copy-read.ts'
import type { ImageRef, Json, Message } from '@baton/shared/guest.ts'
import { transcriptOf } from '@baton/shared/transcript.ts'
import { copyPlace, startCopy } from '@baton/runner/cli/copying.ts'
import { untilStarted } from '@baton/runner/cli/started.ts'
import type { SnapshotHeader } from '@baton/runner/harness.ts'
import type { Workspace } from '@baton/runner/workspace/workspace.ts'
import { echo, fork, hasIntent, hasOutcome, isStored, META } from '../src/copies.ts'
import { Loop } from '../src/loop.ts'
import { approve, emit, llm, prompt, resultOf, said, tool } from '../src/script-asks.ts'
import { ScriptHarness, type Program } from '../src/script-harness.ts'
import { until } from '../src/until.ts'

const scratch: Workspace = {
  root: '/scratch',
  checkpoint: async () => undefined,
  pack: () => Promise.reject(new Error('nothing is stored')),
  about: async () => ({ path: '/scratch', branch: '', platform: 'test' }),
  close: async () => undefined,
}

describe('what a copy brings along', () => {
  it('X6: no files of a scratch workspace, which are never stored', async () => {
    await using loop = await Loop.open({ program: echo })
    const openWorkspace = async (): Promise<Workspace> => scratch
    const { id } = await loop.runner('one', { openWorkspace })
    const sid = await loop.client.start({ prefer: id }, { agent: 'script', workspace: 'scratch' })
    await loop.client.untilEntries(sid, 'it waits', hasIntent(1))
    const from = copyPlace(loop.client, sid)
    const meta = { ...META, workspace: 'scratch' }
    const { sid: copy } = await startCopy(loop.client, { prefer: id }, () => readCopy(from, meta))
    expect(await untilStarted(loop.client, copy)).toBe(true)
    await loop.client.command(copy, 'prompt', { text: 'go on' })
    await loop.client.untilEntries(copy, 'it went on', hasIntent(3))
  })

  it('X1: the same as its origin has, whenever it is taken from a session at work', async () => {
    const steps = 10
    const program: Program = function* () {
      yield {}
      for (let step = 0; step < steps; step++) {
        const first = step * 4 + 1
        const one = yield { ask: [tool(first, 'read', { step }), llm(first + 1, said(`step ${step}`))] }
        const other = yield {}
        // Whichever came first.
        const both = [one, other].map((message) => JSON.stringify(resultOf(message))).toSorted()
        yield { ask: [emit(first + 2, both), approve(first + 3, 'change', { step })] }
      }
      yield { ask: [prompt(steps * 4 + 1)] }
      return null
    }
    const usage = { input_tokens: 1, output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0 }
    await using loop = await Loop.open({
      program,
      tools: {
        read: { access: 'read', run: async ({ step }) => `read ${JSON.stringify(step)}` },
        change: { access: 'edit', run: async () => 'never called' },
      },
      model: async () => ({ content: [], stop_reason: 'end_turn', model: 'm', usage }),
    })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    const end = hasIntent(steps * 4 + 1)
    const decided = new Set<string>()
    const isThrough = async (session: string): Promise<boolean> => {
      for (const { effect, digest } of await loop.client.pending(session)) {
        if (decided.has(`${session} ${effect}`)) continue
        decided.add(`${session} ${effect}`)
        await loop.client.decide(session, effect, digest)
      }
      return end(await loop.client.entries(session))
    }
    await loop.client.untilEntries(sid, 'its files are stored', isStored)
    const copies: string[] = []
    await until('the origin is through', async () => {
      if (copies.length < 6) copies.push(await fork(loop, sid, id))
      return isThrough(sid)
    })
    const origin = transcriptOf(await loop.client.entries(sid))
    const taken = new Set<number>()
    for (const copy of copies) {
      await until('the copy is through', () => isThrough(copy))
      const entries = await loop.client.entries(copy)
      for (const entry of entries) {
        if (entry.kind === 'received' && entry.body.kind === 'start' && entry.body.command.copy)
          taken.add(entry.body.command.copy.seq)
      }
      expect(transcriptOf(entries)).toEqual(origin)
    }
    expect(taken.size, 'places in the journal').toBeGreaterThan(2)
  })

  it('X9: pictures, under the name that the guest has for them, also in a copy of a copy; and long results', async () => {
    const picture = { media_type: 'image/png', bytes: new Uint8Array([137, 80, 78, 71, 7]) } as const
    const long = 'long '.repeat(20_000)
    const program: Program = function* () {
      yield {}
      const seen = yield { ask: [tool(1, 'photo'), tool(2, 'read')] }
      const read = yield {}
      const results = [seen, read].map(resultOf) as unknown as { text: string; images?: ImageRef[] }[]
      const image = results.flatMap(({ images }) => images ?? [])[0]
      const text = results.map((result) => result.text).join('')
      for (let effect = 3; ; effect += 2) {
        yield { ask: [prompt(effect)] }
        const source = { type: 'blob', ...(image as unknown as Record<string, Json>) }
        const message: Message = {
          role: 'user',
          content: [
            { type: 'image', source },
            { type: 'text', text },
          ],
        }
        yield { ask: [llm(effect + 1, message)] }
      }
    }
    const asked: string[] = []
    await using loop = await Loop.open({
      program,
      tools: {
        photo: { access: 'read', run: async () => ({ text: '', is_error: false, images: [picture] }) },
        read: { access: 'read', run: async () => long },
      },
      model: async ({ messages }) => {
        asked.push(JSON.stringify(messages))
        const usage = { input_tokens: 1, output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0 }
        return { content: [], stop_reason: 'end_turn', model: 'm', usage }
      },
    })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    await loop.client.untilEntries(sid, 'it waits', (all) => hasIntent(3)(all) && isStored(all))
    const copy = await fork(loop, sid, id)
    await loop.client.untilEntries(copy, 'the copy waits', isStored)
    const twin = await fork(loop, copy, id)
    for (const session of [sid, copy, twin]) {
      await loop.client.untilEntries(session, 'it waits', (all) => hasIntent(3)(all) && isStored(all))
      await loop.client.command(session, 'prompt', { text: 'look' })
      await loop.client.untilEntries(session, 'it looked', hasOutcome(4))
    }
    expect(asked).toHaveLength(3)
    expect(new Set(asked).size).toBe(1)
    expect(asked[0]).toContain(Buffer.from(picture.bytes).toString('base64'))
    expect(asked[0]).toContain(long)
  })

  it('X10, F60: a runner with another engine refuses it, naming both, and starts nothing', async () => {
    class Other extends ScriptHarness {
      override async open(): Promise<SnapshotHeader> {
        return { ...(await super.open()), engine: 'b'.repeat(64) }
      }
    }
    await using loop = await Loop.open({ program: echo })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    await loop.client.untilEntries(sid, 'it waits', (all) => hasIntent(1)(all) && isStored(all))
    const other = await loop.runner('two', { harness: () => new Other(echo) })
    const copy = await fork(loop, sid, other.id)
    await expect(untilStarted(loop.client, copy)).rejects.toThrow(
      new RegExp(`needs engine ${'a'.repeat(64)}, this runner has ${'b'.repeat(64)}`),
    )
    expect((await loop.client.info(copy)).status).toBe('failed')
    expect(await untilStarted(loop.client, await fork(loop, sid, id))).toBe(true)
  })
})
