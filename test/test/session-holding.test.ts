/** Who holds a session, and for how long: before its first checkpoint, while a person is awaited, on a runner that can't. */
import { describe, expect, it } from 'vitest'
import { callDigest } from '@baton/shared/digest.ts'
import type { Opened } from '@baton/shared/entries.ts'
import { BatonError } from '@baton/shared/errors.ts'
import type { EffectRequest, Json } from '@baton/shared/guest.ts'
import { packOf } from '@baton/runner/workspace/pack-file.ts'
import type { Workspace } from '@baton/runner/workspace/workspace.ts'
import { Loop } from '../src/loop.ts'
import { prompt, tool } from '../src/script-asks.ts'
import { ScriptHarness, type Program } from '../src/script-harness.ts'

const emit = (id: number, data: Json): EffectRequest => ({ id, kind: 'emit', input: { type: 'note', data } })

const stored = (entries: Opened[]): boolean => entries.some(({ kind }) => kind === 'checkpoint')
const claims = (entries: Opened[]): number =>
  entries.filter((entry) => entry.kind === 'lease' && entry.lease.change === 'claimed').length
const told = (entries: Opened[]): boolean =>
  entries.some((entry) => entry.kind === 'event' && entry.body.type === 'note')

const workspaceWith = (checkpoint: Workspace['checkpoint']): Workspace => ({
  ...{ root: '/w', checkpoint, pack: async () => packOf(new Uint8Array([1])), close: async () => undefined },
  about: async () => ({ path: '/w', branch: 'main', platform: 'test' }),
})
const oid = 'd'.repeat(40)

describe('before the first checkpoint', () => {
  it('I11: a runner that dies and comes back finds the files where they were, and stores them', async () => {
    const program: Program = function* () {
      yield {}
      yield { ask: [prompt(1)] }
      const message = yield { ask: [tool(2, 'look')] }
      yield { ask: [emit(3, message.type === 'outcome' ? (message.error?.code ?? 'fine') : null), prompt(4)] }
      return null
    }
    let opened = 0
    const never = workspaceWith(() => new Promise(() => undefined))
    const good = workspaceWith(async () => ({
      kind: 'git',
      commit: oid,
      tree: oid,
      head: oid,
      branch: 'main',
    }))
    const openWorkspace = async (): Promise<Workspace> => (++opened === 1 ? never : good)
    await using loop = await Loop.open({
      program,
      tools: { look: { run: async () => 'seen' } },
      lease_ms: 2_000,
    })
    const { client } = loop
    const one = await loop.runner('one', { openWorkspace })
    const sid = await loop.start(one.id)
    await client.untilEntries(sid, 'it waits for a prompt', (all) =>
      all.some(({ kind }) => kind === 'intent'),
    )
    one.runner.close()
    await loop.runner('one again', { openWorkspace }, one.device)
    await client.command(sid, 'prompt', { text: 'go' })
    const entries = await client.untilEntries(sid, 'the tool was told', (all) => told(all) && stored(all))
    expect(opened).toBe(2)
    expect(JSON.stringify(entries)).toContain('"fine"')
  })
})

describe('while a person is awaited', () => {
  it('F19: a prompt that is queued behind an open approval does not wake the session again and again', async () => {
    const asking: Program = function* () {
      yield {}
      const message = yield {
        ask: [{ id: 1, kind: 'approve', input: { name: 'x', input: {}, digest: callDigest('x', {}) } }],
      }
      yield { ask: [emit(2, message.type), prompt(3)] }
      return null
    }
    await using loop = await Loop.open({ program: asking, park_after_ms: 50 })
    const { client } = loop
    const one = await loop.runner('one')
    const sid = await loop.start(one.id)
    await client.command(sid, 'prompt', { text: 'later' })
    await client.untilEntries(sid, 'it waits for a decision', stored)
    // Two more sessions come to rest and park one after the other: time enough for the first to have parked, were it to.
    for (let i = 0; i < 2; i++) {
      const other = await loop.start(one.id)
      await client.untilEntries(
        other,
        'another has parked',
        (all) => all.filter(({ kind }) => kind === 'lease').length === 2,
      )
    }
    expect(claims(await client.entries(sid))).toBe(1)
  })
})

describe('a runner that can not', () => {
  it('F60: gives the session back as it was, says why, and leaves it to others', async () => {
    const program: Program = function* () {
      yield {}
      yield { ask: [prompt(1)] }
      yield { ask: [emit(2, 'told'), prompt(3)] }
      return null
    }
    class Foreign extends ScriptHarness {
      override restore(): never {
        throw new BatonError('snapshot-engine', 'It needs engine abc.')
      }
    }
    await using loop = await Loop.open({ program })
    const { client } = loop
    const one = await loop.runner('one')
    const sid = await loop.start(one.id)
    await client.untilEntries(sid, 'it waits for a prompt', stored)
    const two = await loop.runner('two', { harness: () => new Foreign(program) })
    await client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
    await client.command(sid, 'prompt', { text: 'go' })
    const entries = await client.untilEntries(sid, 'somebody went on', told)
    expect(JSON.stringify(entries)).toContain('It needs engine abc.')
    expect((await client.info(sid)).holder).toBe(one.id)
  })
})
