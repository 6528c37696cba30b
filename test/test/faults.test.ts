/** Processes that die, stop, or lose their store, at bad moments: real ones, by real signals. */
import { describe, expect, it } from 'vitest'
import type { Opened } from '@baton/shared/entries.ts'
import { newId } from '@baton/shared/keys.ts'
import { transcriptOf } from '@baton/shared/transcript.ts'
import { TestClient } from '../src/client.ts'
import { Cluster } from '../src/cluster.ts'
import { Counters } from '../src/counters.ts'
import { Ground, signal } from '../src/processes.ts'
import { treeOf } from '../src/repo.ts'
import { until } from '../src/until.ts'

const count = (entries: Opened[], kind: Opened['kind']): number =>
  entries.filter((entry) => entry.kind === kind).length
/** The agent waits for the next prompt, having said something. */
const turnEnded = (entries: Opened[]): boolean =>
  entries.filter(
    (entry) => entry.kind === 'intent' && entry.body.kind === 'prompt' && entry.body.prompt?.steer !== true,
  ).length >= 2
const stored = (entries: Opened[]): boolean => count(entries, 'checkpoint') > 0
const begun =
  (kind: string) =>
  (entries: Opened[]): boolean =>
    stored(entries) && entries.some((entry) => entry.kind === 'intent' && entry.body.kind === kind)

/** Every entry once, in order, and no effect with two outcomes. */
function expectWhole(entries: Opened[]): void {
  expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_entry, i) => i + 1))
  const ended = entries.flatMap((entry) => (entry.kind === 'outcome' ? [entry.body.effect] : []))
  expect(new Set(ended).size).toBe(ended.length)
}

describe('a runner is killed', () => {
  it('during a model call: the other asks again, once, and finished calls are not repeated (I4)', async () => {
    await using cluster = await Cluster.open({ script: 'task-held' })
    const { client, model } = cluster
    const one = await cluster.runner('one')
    const sid = await cluster.session(one, 'full')
    await client.command(sid, 'prompt', { text: 'Count the lines.' })
    await client.untilEntries(sid, 'the workspace is stored', stored)
    await until('the second answer has begun', async () => (await model.state()).count === 2)
    await cluster.runner('two')
    await cluster.kill(one)
    await model.open('middle')
    const entries = await client.untilEntries(sid, 'the turn has ended', turnEnded)
    expectWhole(entries)
    // Three answers, and the one that was cut off.
    expect((await model.state()).count).toBe(4)
    const repeated = entries.flatMap((entry) => (entry.kind === 'outcome' ? [entry.body.repeated ?? 0] : []))
    expect(repeated.reduce((sum, n) => sum + n, 0)).toBe(1)
  })

  it('F18: during a safe tool it runs again on the other, counted outside, and has one outcome', async () => {
    const { entries, runs, requests } = await killedDuring('probe', true)
    expectWhole(entries)
    expect(runs).toBe(2)
    expect(requests).toHaveLength(2)
    expect(JSON.stringify(transcriptOf(entries))).toContain('probe done')
  })

  it('I5: during a never tool: it ran once, and the model was told that it may have run', async () => {
    const { entries, runs, requests } = await killedDuring('launch', false)
    expectWhole(entries)
    expect(runs).toBe(1)
    expect(JSON.stringify(requests.at(-1))).toContain('may have run')
  })

  async function killedDuring(name: 'probe' | 'launch', openAfter: boolean) {
    const ground = await Ground.open()
    await using _ground = ground
    const counters = new Counters(await ground.newFolder('counters'))
    await using cluster = await Cluster.open({
      script: name,
      repo: { extra: { 'baton.config.ts': counters.config() } },
    })
    const { client } = cluster
    const one = await cluster.runner('one')
    const sid = await cluster.session(one, 'full')
    await client.command(sid, 'prompt', { text: 'Do it.' })
    await until(`${name} has begun`, () => counters.runs(name) === 1)
    await client.untilEntries(sid, 'the workspace is stored', begun('tool'))
    await cluster.runner('two')
    await cluster.kill(one)
    if (openAfter) counters.open(name)
    const entries = await client.untilEntries(sid, 'the turn has ended', turnEnded)
    const { requests } = await cluster.model.state()
    return { entries, runs: counters.runs(name), requests }
  }
})

it('I1: a runner stopped past its lease finds that it has lost it, writes nothing, and the journal is whole (F17)', async () => {
  await using cluster = await Cluster.open({ script: 'task-held' })
  const { client, model } = cluster
  const one = await cluster.runner('one')
  const sid = await cluster.session(one, 'full')
  await client.command(sid, 'prompt', { text: 'Count the lines.' })
  await client.untilEntries(sid, 'the workspace is stored', stored)
  await until('the second answer has begun', async () => (await model.state()).count === 2)
  signal(one.process.pid, 'SIGSTOP')
  const two = await cluster.runner('two')
  await until('two has taken over', async () => (await client.info(sid)).holder === two.id)
  // Both get their answer now: the one that was stopped tries to go on with it.
  await model.open('middle')
  signal(one.process.pid, 'SIGCONT')
  await one.process.waitForOutput(/lease lost|lost$/m)
  const entries = await client.untilEntries(sid, 'the turn has ended', turnEnded)
  expectWhole(entries)
  const { holder } = await client.info(sid)
  expect(holder).toBe(two.id)
})

it('F23: Redis is killed and started again: nothing acknowledged is lost, all reconnect by themselves', async () => {
  await using cluster = await Cluster.open({ script: 'task', lease_ms: 20_000 })
  const { client, ground } = cluster
  const one = await cluster.runner('one')
  const sid = await cluster.session(one, 'ask')
  await client.command(sid, 'prompt', { text: 'Count the lines.' })
  await until('an approval is asked for', async () => (await client.pending(sid)).length === 1)
  const before = await client.entries(sid)
  const [redis] = ground.find(/redis-server/)
  if (redis === undefined) throw new Error('no redis-server')
  signal(redis, 'SIGKILL')
  await until('Redis is back', () => ground.find(/redis-server/).some((pid) => pid !== redis))
  const after = await until('the journal can be read', () => client.entries(sid))
  expect(after.slice(0, before.length)).toEqual(before)
  await client.approveNext(sid)
  const entries = await client.untilEntries(sid, 'the turn has ended', turnEnded)
  expectWhole(entries)
})

it('I6: one prompt, sent three times with one id over two devices, is applied once (F12)', async () => {
  await using cluster = await Cluster.open({ script: 'hello' })
  const { client } = cluster
  const one = await cluster.runner('one')
  const sid = await cluster.session(one)
  await using other = await TestClient.open(cluster.relay.url, cluster.account)
  const id = newId()
  const text = 'Say hello.'
  await Promise.all([
    client.command(sid, 'prompt', { text }, { id }),
    other.command(sid, 'prompt', { text }, { id }),
    client.command(sid, 'prompt', { text }, { id }),
  ])
  const entries = await client.untilEntries(sid, 'the turn has ended', turnEnded)
  await other.command(sid, 'prompt', { text }, { id })
  expect((await client.info(sid)).pending).toBe(0)
  expect(entries.filter((entry) => entry.kind === 'received' && entry.body.kind === 'prompt')).toHaveLength(1)
  expect((await cluster.model.state()).count).toBe(1)
})

describe('handoff', () => {
  async function play(move: boolean) {
    await using cluster = await Cluster.open({ script: 'edit' })
    const { client, model } = cluster
    const [one, two] = [await cluster.runner('one'), await cluster.runner('two')]
    const sid = await cluster.session(one)
    await client.command(sid, 'prompt', { text: 'Make a plan.' })
    await client.approveNext(sid)
    await client.untilEntries(sid, 'two more approvals are asked for', (entries) => approvals(entries) >= 2)
    const asked = (await model.state()).count
    if (move) {
      await client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
      await until('two has taken over', async () => (await client.info(sid)).holder === two.id)
      expect((await model.state()).count).toBe(asked)
    }
    let entries: Opened[] = []
    await until('the turn has ended', async () => {
      for (const { effect, digest } of await client.pending(sid)) await client.decide(sid, effect, digest)
      return turnEnded((entries = await client.entries(sid)))
    })
    expectWhole(entries)
    const tree = treeOf(cluster.worktree(move ? two : one, sid))
    return { transcript: transcriptOf(entries), tree, requests: (await model.state()).count }
  }
  const approvals = (entries: Opened[]): number =>
    entries.filter((entry) => entry.kind === 'intent' && entry.body.kind === 'approve').length

  it('I8: a move while a decision is pending asks the model nothing; transcript and files equal the unmoved run (I7)', async () => {
    const [moved, unmoved] = [await play(true), await play(false)]
    expect(moved.transcript).toEqual(unmoved.transcript)
    expect(moved.tree).toEqual(unmoved.tree)
    expect(moved.tree).toHaveProperty(['notes/plan.md'])
    expect(moved.tree).toHaveProperty(['size.txt'])
    expect(moved.requests).toBe(unmoved.requests)
  })
})
