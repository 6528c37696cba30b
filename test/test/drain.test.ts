/** How a runner of a pool ends: with many sessions in hand, told once, told twice. And what it tells of itself meanwhile. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import type { Opened } from '@baton/shared/entries.ts'
import { Cluster } from '../src/cluster.ts'
import { Counters } from '../src/counters.ts'
import { alive, Ground } from '../src/processes.ts'
import { makeRepo } from '../src/repo.ts'
import { until } from '../src/until.ts'

const SESSIONS = 6

/** Outcomes of tools: `ran` when it was run to its end. */
function toolsOf(entries: Opened[]): { seq: number; ran: boolean }[] {
  const asked = new Set<number>()
  for (const entry of entries)
    if (entry.kind === 'intent' && entry.body.kind === 'tool') asked.add(entry.body.effect)
  return entries.flatMap((entry) =>
    entry.kind === 'outcome' && asked.has(entry.body.effect)
      ? [{ seq: entry.seq, ran: entry.body.error === undefined }]
      : [],
  )
}

it('H4: a runner that is told to end hands over all it holds, and the next one finishes without one more model request', async () => {
  await using cluster = await Cluster.open({ script: 'task-held' })
  const { client, model } = cluster
  const args = ['--pool', 'cloud', '--capacity', '8', '--metrics', '0']
  const one = await cluster.runner('one', { args })
  const sids: string[] = []
  for (let i = 0; i < SESSIONS; i++) {
    const sid = await cluster.session(one, 'full')
    await client.command(sid, 'prompt', { text: `number ${i}` })
    sids.push(sid)
  }
  await until(
    'all stand in the middle of an answer',
    async () => (await model.state()).gates['middle']?.waiting === SESSIONS,
  )
  const two = await cluster.runner('two', { args })
  one.process.kill('SIGTERM')
  await until('the relay knows, after which they go', async () => {
    const { runners } = await client.link.ask('list', {})
    return !runners.some(({ device, online, capacity }) => device === one.id && online && capacity > 0)
  })
  await model.open('middle')
  expect(await one.process.exit).toEqual({ code: 0, signal: null })
  await until('the other one has finished all', async () => {
    const { sessions } = await client.link.ask('list', {})
    return sessions.every(({ status, pending }) => status === 'idle' && pending === 0)
  })
  const tools = { all: 0, there: 0 }
  for (const sid of sids) {
    const entries = await client.untilEntries(sid, 'it finished', (all) =>
      JSON.stringify(all.map((entry) => (entry.kind === 'outcome' ? entry.body : null))).includes(
        'was counted',
      ),
    )
    expect(entries.some((entry) => entry.kind === 'lease' && entry.lease.change === 'expired')).toBe(false)
    const outcomes = toolsOf(entries)
    tools.all += outcomes.length
    const came = entries.find((entry) => entry.kind === 'lease' && entry.lease.holder === two.id)
    tools.there += outcomes.filter(({ seq, ran }) => ran && seq > (came?.seq ?? Infinity)).length
  }
  // An answer may arrive between the word and the deed: then the first one still runs what it asked for.
  expect(tools.all).toBe(2 * SESSIONS)
  expect(tools.there).toBeGreaterThan(0)
  const { requests } = await model.state()
  // Each request once; what was cut off in the hurry, at most one each, once more.
  expect(requests.filter(({ end }) => end === 'answered')).toHaveLength(3 * SESSIONS)
  expect(requests.length).toBeLessThanOrEqual(4 * SESSIONS)

  const [, url = ''] = await two.process.waitForOutput(/metrics at (\S+)/)
  const text = await (await fetch(url)).text()
  const value = (line: string): number =>
    Number(
      text
        .split('\n')
        .find((candidate) => candidate.startsWith(`${line} `))
        ?.slice(line.length + 1),
    )
  expect(value('baton_runner_capacity')).toBe(8)
  expect(value('baton_runner_effects_total{kind="tool",result="ok"}')).toBe(tools.there)
  expect(value('baton_runner_model_tokens_total{type="output_tokens"}')).toBeGreaterThan(0)
  expect(value('baton_runner_slices_total')).toBeGreaterThan(SESSIONS)
  for (const sid of sids) expect(text).not.toContain(sid)
})

it('Z8: a fault that nothing caught lets all sessions go before the runner ends', async () => {
  await using cluster = await Cluster.open({ script: 'task-held' })
  const { client } = cluster
  const fault = `process.on('SIGUSR2', () => void Promise.reject(new Error('a fault in the works')))`
  const env = { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(fault)}` }
  const one = await cluster.runner('one', { env })
  const sid = await cluster.session(one, 'full')
  await client.untilEntries(sid, 'it waits for a prompt', (all) =>
    all.some((entry) => entry.kind === 'intent' && entry.body.kind === 'prompt'),
  )
  one.process.kill('SIGUSR2')
  expect(await one.process.exit).toEqual({ code: 1, signal: null })
  expect(one.process.output).toContain('a fault in the works')
  expect(one.process.output).toContain('all 1 sessions are let go')
  const entries = await client.entries(sid)
  const leases = entries.flatMap((entry) => (entry.kind === 'lease' ? [entry.lease.change] : []))
  expect(leases).toEqual(['claimed', 'released'])
})

it('H4: what runs it all passes on that it was told twice', async () => {
  await using ground = await Ground.open()
  const workspace = await ground.newFolder('workspace')
  makeRepo(workspace)
  const model = await ground.model('task-held')
  const up = await ground.up({ workspace, model, env: { BATON_DRAIN_WITHIN_MS: '600000' } })
  const sent = await ground.baton([
    'new',
    '--mode',
    'full',
    '--workspace',
    workspace,
    '--data',
    up.data,
    'go',
  ])
  expect((await sent.exit).code, sent.output).toBe(0)
  await until(
    'it is in the middle of an answer',
    async () => (await model.state()).gates['middle']?.waiting === 1,
  )
  up.process.kill('SIGTERM')
  await up.process.waitForOutput(/letting all sessions go/)
  await until('it has ended', () => {
    up.process.kill('SIGTERM')
    return !alive(up.process.pid)
  })
  expect(up.process.output).toContain('SIGTERM again: ends at once')
  expect(ground.find(/cli\.ts runner/)).toEqual([])
})

it('H4: told twice it ends at once, and loses nothing: another one goes on when the lease has run out', async () => {
  await using cluster = await Cluster.open({ script: 'launch', env: { BATON_DRAIN_WITHIN_MS: '600000' } })
  const { client } = cluster
  const counters = new Counters(await cluster.ground.newFolder('counters'))
  writeFileSync(join(cluster.repo, 'baton.config.ts'), counters.config())
  const one = await cluster.runner('one')
  const sid = await cluster.session(one, 'full')
  await client.command(sid, 'prompt', { text: 'launch it' })
  await until('the tool runs', () => counters.runs('launch') === 1)
  one.process.kill('SIGTERM')
  await one.process.waitForOutput(/letting all sessions go/)
  await until('it has ended', () => {
    // The first ones may count as one with the one before.
    one.process.kill('SIGTERM')
    return !alive(one.process.pid)
  })
  expect((await one.process.exit).code).toBe(1)
  await cluster.runner('two')
  await client.untilEntries(sid, 'the other one went on', (all) =>
    all.some((entry) => entry.kind === 'outcome' && entry.body.error?.code === 'interrupted'),
  )
  expect(counters.runs('launch')).toBe(1)
})
