/** The sandbox that a session began with, known to every runner that it comes to. */
import { expect, it } from 'vitest'
import type { SandboxWish } from '@baton/shared/journal.ts'
import { packOf } from '@baton/runner/workspace/pack-file.ts'
import type { Workspace } from '@baton/runner/workspace/workspace.ts'
import { Loop } from '../src/loop.ts'
import { prompt } from '../src/script-asks.ts'
import type { Program } from '../src/script-harness.ts'

const program: Program = function* () {
  yield {}
  yield { ask: [prompt(1)] }
  yield { ask: [prompt(2)] }
  return null
}

const oid = 'd'.repeat(40)
const workspace = (sandbox?: SandboxWish): Workspace => ({
  root: '/w',
  checkpoint: async () => ({ kind: 'git', commit: oid, tree: oid, head: oid, branch: 'main' }),
  pack: async () => packOf(new Uint8Array([1])),
  about: async () => ({ path: '/w', branch: 'main', platform: 'test' }),
  close: async () => undefined,
  stay: { ...(sandbox ? { sandbox } : {}), end: async () => undefined },
})

it('T10: a runner that a session comes to is told of the sandbox that it began with', async () => {
  const wish = { network: true }
  const { promise: told, resolve: tell } = Promise.withResolvers<SandboxWish | undefined>()
  await using loop = await Loop.open({ program })
  const { client } = loop
  const one = await loop.runner('one', { openWorkspace: async () => workspace(wish) })
  const two = await loop.runner('two', {
    restoreWorkspace: async (_sid, _folder, _checkpoint, _packs, sandbox) => {
      tell(sandbox)
      return { workspace: workspace() }
    },
  })
  const sid = await loop.start(one.id)
  await client.untilEntries(sid, 'its files are stored', (all) =>
    all.some(({ kind }) => kind === 'checkpoint'),
  )
  await client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
  expect(await told).toEqual(wish)
})
