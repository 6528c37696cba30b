/** Files that exist on one runner only: nobody else goes on without them, unless a person says so, and then it is told. */
import type { Opened } from '@baton/shared/entries.ts'
import { packOf } from '@baton/runner/workspace/pack-file.ts'
import type { Workspace } from '@baton/runner/workspace/workspace.ts'
import { describe, expect, it } from 'vitest'
import { Loop } from '../src/loop.ts'
import { emit, prompt, resultOf, tool } from '../src/script-asks.ts'
import type { Program } from '../src/script-harness.ts'
import { until } from '../src/until.ts'

/** A disk that takes so many checkpoints. */
function diskFor(stores: number): Workspace {
  const oid = 'c'.repeat(40)
  let stored = 0
  return {
    root: '/w',
    checkpoint: async () => {
      if (++stored > stores) throw new Error('the disk is full')
      return { kind: 'git', commit: oid, tree: oid, head: oid, branch: 'main' }
    },
    pack: async () => packOf(new Uint8Array([1])),
    about: async () => ({ path: '/w', branch: 'main', platform: 'test' }),
    close: async () => undefined,
  }
}

/** Edits once, then once more after a prompt. */
const program: Program = function* () {
  yield {}
  const first = yield { ask: [tool(1, 'edit')] }
  const asked = yield { ask: [emit(2, resultOf(first)), prompt(3)] }
  const second = yield { ask: [emit(4, resultOf(asked)), tool(5, 'edit')] }
  yield { ask: [emit(6, resultOf(second)), prompt(7)] }
  for (;;) yield {}
}
const tools = { edit: { access: 'edit', run: async () => 'edited' } } as const
const texts = (entries: Opened[]): string[] =>
  entries.flatMap((entry) =>
    entry.kind === 'event' && entry.body.type === 'notice' ? [JSON.stringify(entry.body.data)] : [],
  )
const notes = (entries: Opened[]): unknown[] =>
  entries.flatMap((entry) => (entry.kind === 'event' && entry.body.type === 'note' ? [entry.body.data] : []))

describe.each([
  ['older ones are stored', 1, /newer files, which it could not store/],
  ['none are stored', 0, /has stored no files/],
])('F46, L7: a runner dies with the newest files, %s', (_, stores, sentence) => {
  it('so others leave the session alone until a person moves it, and the agent and the person are told', async () => {
    await using loop = await Loop.open({ program, tools, lease_ms: 1000 })
    const { client } = loop
    const one = await loop.runner('one', { openWorkspace: async () => diskFor(stores) })
    const sid = await client.start(
      { pool: 'p'.repeat(22) },
      { agent: 'script', workspace: '/w', mode: 'full' },
    )
    await client.untilEntries(sid, 'it has edited', (entries) => notes(entries).length === 1)
    const two = await loop.runner('two')
    one.runner.close()
    await client.command(sid, 'prompt', { text: 'again' })
    await until('the lease has ended', async () => (await client.info(sid)).holder === undefined)
    // It is offered to whoever may take it; nobody else may, also when asking.
    await expect(client.link.ask('claim', { sid })).rejects.toMatchObject({ code: 'placed-elsewhere' })

    await client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
    const entries = await client.untilEntries(sid, 'it edits there', (all) => notes(all).length === 3)
    expect(texts(entries)).toContainEqual(expect.stringMatching(sentence))
    expect(notes(entries)[2]).toEqual({ text: expect.stringMatching(sentence), is_error: false })
  })
})

it('L7: once they are stored the session may go anywhere again', async () => {
  await using loop = await Loop.open({ program, tools, lease_ms: 1000 })
  const { client } = loop
  let stores = 0
  const oid = 'c'.repeat(40)
  const recovering: Workspace = {
    ...diskFor(0),
    checkpoint: async () => {
      if (++stores <= 2) throw new Error('the disk is full')
      return { kind: 'git', commit: oid, tree: oid, head: oid, branch: 'main' }
    },
  }
  const one = await loop.runner('one', { openWorkspace: async () => recovering })
  const sid = await client.start({ prefer: one.id }, { agent: 'script', workspace: '/w', mode: 'full' })
  await client.untilEntries(sid, 'it has edited', (entries) => notes(entries).length === 1)
  await client.command(sid, 'prompt', { text: 'again' })
  await client.untilEntries(sid, 'it is stored', (entries) =>
    entries.some(({ kind }) => kind === 'checkpoint'),
  )
  const two = await loop.runner('two')
  one.runner.close()
  await client.command(sid, 'prompt', { text: 'go on' })
  await until('the other took it over', async () => (await client.info(sid)).holder === two.id)
})

it.each([
  ['has let go', true],
  ['was cut off', false],
])('I7, K12: the agent hears of what lay where it goes on if the runner before %s', async (_, hasLetGo) => {
  await using loop = await Loop.open({ program, tools, lease_ms: 1000 })
  const { client } = loop
  const one = await loop.runner('one')
  const sid = await client.start({ prefer: one.id }, { agent: 'script', workspace: '/w', mode: 'full' })
  await client.untilEntries(
    sid,
    'it has edited and is stored',
    (entries) => notes(entries).length === 1 && entries.some(({ kind }) => kind === 'checkpoint'),
  )
  await client.untilEntries(sid, 'it waits', (entries) =>
    entries.some((entry) => entry.kind === 'intent' && entry.body.effect === 3),
  )
  await loop.runner('two', {
    restoreWorkspace: async () => ({ workspace: diskFor(9), notices: ['Something lay here.'] }),
  })
  if (hasLetGo) await one.runner.drain(0)
  else one.runner.close()
  await client.command(sid, 'prompt', { text: 'again' })
  const entries = await client.untilEntries(sid, 'it edits there', (all) => notes(all).length === 3)
  expect(texts(entries)).toContainEqual(expect.stringContaining('Something lay here.'))
  const text = hasLetGo ? 'edited\n\n[Baton: Something lay here.]' : 'edited'
  expect(notes(entries)[2]).toEqual({ text, is_error: false })
})
