/** Sessions that begin with much: many tools, long instructions. What they begin with goes wherever they go. */
import { expect, it } from 'vitest'
import { copyPlace, startCopy } from '@baton/runner/cli/copying.ts'
import type { Tool } from '@baton/runner/tools/tool.ts'
import { readCopy } from '@baton/shared/copy-read.ts'
import type { Opened } from '@baton/shared/entries.ts'
import { requestDigest } from '@baton/shared/digest.ts'
import type { Json } from '@baton/shared/guest.ts'
import { EMPTY, reduce } from '@baton/shared/view/transcript.ts'
import { Loop } from '../src/loop.ts'
import { emit, prompt } from '../src/script-asks.ts'
import type { Program } from '../src/script-harness.ts'

const manyTools = (count: number, chars: number): Tool[] =>
  Array.from({ length: count }, (_, n) => ({
    spec: {
      name: `mcp__big__t${n}`,
      description: `number ${n}`,
      schema: { type: 'object', properties: { a: { type: 'string', description: 'x'.repeat(chars) } } },
      replay: 'never',
      access: n % 2 === 0 ? 'run' : 'read',
    },
    execute: async () => ({ text: '', is_error: false }),
  }))

/** Tells what it was started with, with each prompt. */
const tellStart: Program = function* () {
  const start = yield {}
  const told: Json =
    start.type === 'start'
      ? { tools: start.tools.length, digest: requestDigest('tools', start.tools as unknown as Json) }
      : start.type
  yield { ask: [prompt(1)] }
  for (let effect = 2; ; effect += 2) yield { ask: [emit(effect, told), prompt(effect + 1)] }
}

const notes = (entries: Opened[], type = 'note'): Json[] =>
  entries.flatMap((entry) => (entry.kind === 'event' && entry.body.type === type ? [entry.body.data] : []))

it('H15: a session with 200 tools of 2 KB starts, moves, is copied, and has all of them everywhere', async () => {
  await using loop = await Loop.open({ program: tellStart })
  const { client } = loop
  const all = manyTools(200, 2000)
  const hands = { tools: async () => all }
  const [one, two] = [await loop.runner('one', hands), await loop.runner('two', hands)]
  const sid = await loop.start(one.id)
  await client.command(sid, 'prompt', { text: 'here' })
  const told = { tools: 200, digest: requestDigest('tools', all.map(({ spec }) => spec) as unknown as Json) }
  await client.untilEntries(
    sid,
    'it told',
    (entries) => notes(entries).length === 1 && entries.some(({ kind }) => kind === 'checkpoint'),
  )
  await client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
  await client.command(sid, 'prompt', { text: 'there' })
  const moved = await client.untilEntries(sid, 'it told there', (entries) => notes(entries).length === 2)
  expect(notes(moved)).toEqual([told, told])
  expect((await client.info(sid)).holder).toBe(two.id)
  const { access } = reduce(EMPTY, moved)
  expect(access.size).toBe(200)
  expect([access.get('mcp__big__t0'), access.get('mcp__big__t1')]).toEqual(['run', 'read'])

  const meta = { title: 'test', agent: 'script', mode: 'ask', workspace: '/w' } as const
  const copy = await startCopy(client, { prefer: one.id }, () => readCopy(copyPlace(client, sid), meta))
  await client.command(copy.sid, 'prompt', { text: 'in the copy' })
  const copied = await client.untilEntries(
    copy.sid,
    'the copy told',
    (entries) => notes(entries).length === 3,
  )
  expect(notes(copied)).toEqual([told, told, told])
  const again = await startCopy(client, { prefer: two.id }, () => readCopy(copyPlace(client, copy.sid), meta))
  await client.command(again.sid, 'prompt', { text: 'in its copy' })
  await client.untilEntries(again.sid, 'its copy told', (entries) => notes(entries).length === 4)
})

it('H15: tools that are too large or too many are left out, and that is told', async () => {
  await using loop = await Loop.open({ program: tellStart })
  const { client } = loop
  const all = [
    ...manyTools(600, 10),
    ...manyTools(1, 40_000).map((tool) => ({ ...tool, spec: { ...tool.spec, name: 'huge' } })),
  ]
  const one = await loop.runner('one', { tools: async () => all })
  const sid = await loop.start(one.id)
  await client.command(sid, 'prompt', { text: 'here' })
  const entries = await client.untilEntries(
    sid,
    'it told',
    (found) => notes(found).length === 1 && JSON.stringify(notes(found, 'notice')).includes('missing'),
  )
  expect(notes(entries)).toMatchObject([{ tools: 512 }])
  expect(JSON.stringify(notes(entries, 'notice'))).toContain('huge, mcp__big__t512')
})
