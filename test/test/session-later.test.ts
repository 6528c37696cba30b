/** What stands in the way of a session on its only runner, and passes. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { BatonError } from '@baton/shared/errors.ts'
import type { Opened } from '@baton/shared/entries.ts'
import { Cluster } from '../src/cluster.ts'
import { Loop } from '../src/loop.ts'
import { prompt } from '../src/script-asks.ts'
import type { Program } from '../src/script-harness.ts'
import { until } from '../src/until.ts'

const listens: Program = function* () {
  yield {}
  for (let effect = 1; ; effect++) yield { ask: [prompt(effect)] }
}

const noticesOf = (entries: Opened[]): string[] =>
  entries.flatMap((entry) =>
    entry.kind === 'event' && entry.body.type === 'notice' ? [JSON.stringify(entry.body.data)] : [],
  )
const claimsOf = (entries: Opened[]): number =>
  entries.filter((entry) => entry.kind === 'lease' && entry.lease.change === 'claimed').length
const parked = (client: Loop['client'], sid: string) => async (): Promise<boolean> => {
  const { holder, status, pending } = await client.info(sid)
  return holder === undefined && status === 'idle' && pending === 0
}

it('F20: what fails once while a session is restored is tried again by its only runner, and told once', async () => {
  let isBroken = false
  const hands = {
    tools: async () => {
      if (isBroken) throw new BatonError('disk-full', '(for a moment)')
      return []
    },
  }
  await using loop = await Loop.open({ program: listens, park_after_ms: 100 })
  const { client } = loop
  const one = await loop.runner('one', hands)
  const sid = await loop.start(one.id)
  await client.untilEntries(sid, 'it is stored', (all) => all.some(({ kind }) => kind === 'checkpoint'))
  await until('it is parked', parked(client, sid))
  isBroken = true
  await client.command(sid, 'prompt', { text: 'a' })
  await client.untilEntries(sid, 'it was tried twice', (all) => claimsOf(all) >= 3)
  isBroken = false
  await until('it goes on, and is parked', parked(client, sid))
  const entries = await client.entries(sid)
  expect(noticesOf(entries).filter((text) => text.includes('can not continue the session now'))).toHaveLength(
    1,
  )
  expect(entries.some((entry) => entry.kind === 'received' && entry.body.kind === 'prompt')).toBe(true)
  expect(loop.logs.filter((line) => line.includes('    at '))).toEqual([])
})

it('F20: a config that is broken when a session arrives keeps its tools away, not the session', async () => {
  await using cluster = await Cluster.open({ script: 'hello', env: { BATON_PARK_AFTER_MS: '100' } })
  const { client, repo } = cluster
  const one = await cluster.runner('one')
  const sid = await cluster.session(one, 'full')
  await client.untilEntries(sid, 'it is stored', (all) => all.some(({ kind }) => kind === 'checkpoint'))
  await until('it is parked', parked(client, sid))
  writeFileSync(join(repo, 'baton.config.ts'), 'export default {{{')
  await client.command(sid, 'prompt', { text: 'go on' })
  const entries = await client.untilEntries(
    sid,
    'the model answered, and the config was told of',
    (all) =>
      all.some(
        (entry) =>
          entry.kind === 'event' &&
          entry.body.type === 'turn' &&
          JSON.stringify(entry.body.data).includes('"end"'),
      ) && noticesOf(all).some((text) => text.includes('baton.config.ts')),
  )
  expect(claimsOf(entries)).toBe(2)
  expect(noticesOf(entries).join()).not.toContain('can not continue')
})
