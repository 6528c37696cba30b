/** Another CPU: Node for ARM64, emulated. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { Opened } from '@baton/shared/entries.ts'
import { Cluster } from '../src/cluster.ts'
import { armNode } from '../src/other-nodes.ts'
import { until } from '../src/until.ts'

const turnEnded = (entries: Opened[]): boolean =>
  entries.some(
    (entry) =>
      entry.kind === 'event' && entry.body.type === 'turn' && /"end"/.test(JSON.stringify(entry.body.data)),
  )

it('I7, I8: a pending test command moves from an x86-64 runner to an ARM64 one and back, and each runs what it approves', async () => {
  // Emulated, everything takes its time.
  await using cluster = await Cluster.open({ script: 'two-tests', lease_ms: 60_000 })
  const { client, model } = cluster
  const [x86, arm] = [await cluster.runner('x86'), await cluster.runner('arm', { node: armNode() })]
  const { runners } = await client.link.ask('list', {})
  expect(runners).toHaveLength(2)
  const sid = await cluster.session(x86)
  await client.command(sid, 'prompt', { text: 'Run the tests.' })

  for (const to of [arm, x86]) {
    await until('a command waits', async () => (await client.pending(sid)).length > 0)
    const before = (await model.state()).count
    await client.command(sid, 'move', { label: to.name }, { place: { prefer: to.id } })
    await until(`${to.name} has it`, async () => (await client.info(sid)).holder === to.id)
    expect((await model.state()).count).toBe(before)
    await client.approveNext(sid)
    await until('its command has run', async () => (await client.pending(sid)).length === 0)
  }
  const entries = await client.untilEntries(sid, 'the turn is over', turnEnded)
  // Each command wrote down where it ran.
  const places = readFileSync(join(cluster.worktree(x86, sid), 'places.txt'), 'utf8')
    .trim()
    .split('\n')
  expect(places).toEqual([cluster.worktree(arm, sid), cluster.worktree(x86, sid)])
  // Three answers were asked for, once each.
  expect((await model.state()).count).toBe(3)
  const repeated = entries.flatMap((entry) => (entry.kind === 'outcome' ? [entry.body.repeated ?? 0] : []))
  expect(repeated.every((n) => n === 0)).toBe(true)
}, 300_000)
