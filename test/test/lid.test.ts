/** The lid shuts: real processes, a real bus, and a login manager that waits no longer than it says. */
import { expect, it } from 'vitest'
import type { Opened } from '@baton/shared/entries.ts'
import { RunnerAbout } from '@baton/shared/journal.ts'
import { accountKey } from '@baton/shared/keys.ts'
import { openJson, place } from '@baton/shared/seal.ts'
import * as v from 'valibot'
import { Cluster, type ClusterRunner } from '../src/cluster.ts'
import { Counters } from '../src/counters.ts'
import { Logind } from '../src/logind.ts'
import { Ground, signal } from '../src/processes.ts'
import { treeOf } from '../src/repo.ts'
import { until } from '../src/until.ts'

const turnEnded = (entries: Opened[]): boolean =>
  entries.some(
    (entry) =>
      entry.kind === 'event' &&
      entry.body.type === 'turn' &&
      JSON.stringify(entry.body.data).includes('"end"'),
  )
const stored = (entries: Opened[]): boolean => entries.some(({ kind }) => kind === 'checkpoint')
const repeatedIn = (entries: Opened[]): number =>
  entries.reduce((sum, entry) => sum + (entry.kind === 'outcome' ? (entry.body.repeated ?? 0) : 0), 0)

function expectWhole(entries: Opened[]): void {
  expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_entry, i) => i + 1))
  const ended = entries.flatMap((entry) => (entry.kind === 'outcome' ? [entry.body.effect] : []))
  expect(new Set(ended).size).toBe(ended.length)
}

async function runnerInfo({ client, account }: Cluster, runner: ClusterRunner) {
  const { runners } = await client.link.ask('list', {})
  const info = runners.find(({ device }) => device === runner.id)
  if (!info) throw new Error(`no runner ${runner.name}`)
  return {
    ...info,
    about: v.parse(RunnerAbout, openJson(accountKey(account), info.body, place.runner(runner.id))),
  }
}

it('Z1: four busy sessions are handed over before its delay ends, go on elsewhere, and are offered and brought home after waking', async () => {
  const ground = await Ground.open()
  await using _ground = ground
  const counters = new Counters(await ground.newFolder('counters'))
  const logind = await Logind.start(ground)
  await using cluster = await Cluster.open({
    script: 'lid',
    lease_ms: 10_000,
    repo: { extra: { 'baton.config.ts': counters.config() } },
  })
  const { client, model } = cluster
  const laptop = await cluster.runner('laptop', { env: logind.env })
  await logind.until('inhibited', 'the laptop holds sleep back')
  const sids: string[] = []
  for (const prompt of ['think long', 'think briefly', 'probe', 'launch']) {
    const sid = await cluster.session(laptop, 'full')
    await client.command(sid, 'prompt', { text: `Please ${prompt}.` })
    sids.push(sid)
  }
  const [long = '', brief = '', probe = '', launch = ''] = sids
  for (const sid of sids) await client.untilEntries(sid, 'its files are stored', stored)
  await until('all are busy', async () => {
    const { count } = await model.state()
    return count === 4 && counters.runs('probe') === 1 && counters.runs('launch') === 1
  })
  const cloud = await cluster.runner('cloud')

  logind.sleep()
  await logind.until('going', 'sleep was announced')
  // What ends in time is not asked again.
  await model.open('soon')
  const asleep = await logind.until('asleep', 'the laptop sleeps')
  signal(laptop.process.pid, 'SIGSTOP')
  expect(logind.all('inhibited')).toEqual([
    { t: 'inhibited', what: 'sleep:shutdown', who: 'Baton', mode: 'delay' },
  ])
  expect(asleep.held).toBe(0)
  await until('it is known to be offline', async () => !(await runnerInfo(cluster, laptop)).online)

  // One that has ended its turn may rest there already.
  for (const sid of sids) {
    await client.untilEntries(sid, 'it goes on in the cloud', (entries) =>
      entries.some((entry) => entry.kind === 'lease' && entry.lease.holder === cloud.id),
    )
  }
  counters.open('probe')
  await model.open('long')
  const journals = new Map<string, Opened[]>()
  for (const sid of sids) journals.set(sid, await client.untilEntries(sid, 'its turn has ended', turnEnded))
  for (const entries of journals.values()) expectWhole(entries)
  const repeated = (sid: string): number => repeatedIn(journals.get(sid) ?? [])
  // Six answers, and the one that was in flight: counted at the model, and in the journal.
  expect((await model.state()).count).toBe(7)
  expect([long, brief, probe, launch].map(repeated)).toEqual([1, 0, 1, 0])
  expect([counters.runs('probe'), counters.runs('launch')]).toEqual([2, 1])
  expect(JSON.stringify((await model.state()).requests)).toContain('may have run')

  signal(laptop.process.pid, 'SIGCONT')
  logind.wake()
  await logind.until('inhibited', 'it holds the next sleep back', 2)
  await until('it says what is away', async () => {
    const { about, online } = await runnerInfo(cluster, laptop)
    return online && about.away?.length === sids.length
  })
  expect((await runnerInfo(cluster, laptop)).about.away?.toSorted()).toEqual(sids.toSorted())
  const home = await cluster.ground.baton(['home', '--all', '--json', '--data', laptop.data])
  expect((await home.exit).code, home.output).toBe(0)
  await until('all are home', async () =>
    (await Promise.all(sids.map((sid) => client.info(sid)))).every(({ holder }) => holder === laptop.id),
  )
  await until('nothing is away', async () => (await runnerInfo(cluster, laptop)).about.away === undefined)
  expect((await model.state()).count).toBe(7)
  for (const sid of sids)
    expect(treeOf(cluster.worktree(laptop, sid))).toEqual(treeOf(cluster.worktree(cloud, sid)))
})

it('Z1: what can not be saved in time does not hold the machine back; its lease runs out, others go on, and it is offered home', async () => {
  await using cluster = await Cluster.open({ script: 'task-held', lease_ms: 4_000 })
  const { client, model, ground } = cluster
  const logind = await Logind.start(ground, { delay_ms: 2_000 })
  const laptop = await cluster.runner('laptop', { env: logind.env })
  await logind.until('inhibited', 'the laptop holds sleep back')
  const sid = await cluster.session(laptop, 'full')
  await client.command(sid, 'prompt', { text: 'Count the lines.' })
  await client.untilEntries(sid, 'its files are stored', stored)
  await until('the second answer has begun', async () => (await model.state()).count === 2)
  const cloud = await cluster.runner('cloud')
  const [relay] = ground.find(/relay\/src\/cli/)
  if (relay === undefined) throw new Error('no relay')
  signal(relay, 'SIGSTOP')
  logind.sleep()
  const asleep = await logind.until('asleep', 'the laptop sleeps')
  expect(asleep.held).toBe(0)
  signal(laptop.process.pid, 'SIGSTOP')
  signal(relay, 'SIGCONT')
  await until('the cloud has it', async () => (await client.info(sid)).holder === cloud.id)
  signal(laptop.process.pid, 'SIGCONT')
  logind.wake()
  await model.open('middle')
  const entries = await client.untilEntries(sid, 'the turn has ended', turnEnded)
  expectWhole(entries)
  expect(repeatedIn(entries)).toBe(1)
  const changes = entries.flatMap((entry) => (entry.kind === 'lease' ? [entry.lease.change] : []))
  expect(changes).toEqual(['claimed', 'expired', 'claimed'])
  await until('it is away', async () => (await runnerInfo(cluster, laptop)).about.away?.includes(sid))
  expect((await client.info(sid)).holder).toBe(cloud.id)
})

it('Z7: without a login manager it says so, and SIGHUP hands everything over as well', async () => {
  await using cluster = await Cluster.open({ script: 'task-held', lease_ms: 10_000 })
  const { client, model } = cluster
  const env = { DBUS_SYSTEM_BUS_ADDRESS: `unix:path=${cluster.ground.folder}/no-bus` }
  const laptop = await cluster.runner('laptop', { env })
  await laptop.process.waitForOutput(/no notice of sleep on this machine/)
  const sids = [await cluster.session(laptop, 'full'), await cluster.session(laptop, 'full')]
  for (const sid of sids) {
    await client.command(sid, 'prompt', { text: 'Count the lines.' })
    await client.untilEntries(sid, 'its files are stored', stored)
  }
  await until('both second answers have begun', async () => (await model.state()).count === 4)
  const cloud = await cluster.runner('cloud')
  expect(await laptop.process.stop('SIGHUP')).toEqual({ code: 0, signal: null })
  // Given back, not run out: no lease was left behind.
  for (const sid of sids) {
    await until('the cloud has it', async () => (await client.info(sid)).holder === cloud.id)
    const changes = (await client.entries(sid)).flatMap((entry) =>
      entry.kind === 'lease' ? [entry.lease.change] : [],
    )
    expect(changes).toEqual(['claimed', 'released', 'claimed'])
  }
  await model.open('middle')
  for (const sid of sids) expectWhole(await client.untilEntries(sid, 'the turn has ended', turnEnded))
  expect((await model.state()).count).toBe(8)
})

it('Z1: a shutdown is held back like sleep, and a runner that is killed holds nothing back', async () => {
  await using cluster = await Cluster.open({ script: 'hello' })
  const logind = await Logind.start(cluster.ground)
  const laptop = await cluster.runner('laptop', { env: logind.env })
  await logind.until('inhibited', 'the laptop holds sleep back')
  await cluster.kill(laptop)
  expect((await logind.until('released', 'nothing is held')).left).toBe(0)
  const other = await cluster.runner('other', { env: logind.env })
  await logind.until('inhibited', 'the other holds sleep back', 2)
  logind.shutDown()
  expect((await logind.until('asleep', 'the machine is off')).held).toBe(0)
  await other.process.waitForOutput(/shutdown is near/)
})

it('F47: parked sessions survive the restart of the relay, and go on with the next prompt', async () => {
  await using cluster = await Cluster.open({ script: 'hello', env: { BATON_PARK_AFTER_MS: '50' } })
  const { client, relay, ground } = cluster
  const one = await cluster.runner('one')
  const sids = [await cluster.session(one), await cluster.session(one)]
  for (const sid of sids) {
    await client.untilEntries(sid, 'its files are stored', stored)
    await until('it is parked', async () => (await client.info(sid)).holder === undefined)
  }
  const before = await Promise.all(sids.map((sid) => client.info(sid)))
  await relay.process.stop()
  await ground.relay({ data: relay.data, port: relay.port })
  const after = await until('the relay is back', () => Promise.all(sids.map((sid) => client.info(sid))))
  expect(after).toEqual(before)
  for (const sid of sids) {
    await client.command(sid, 'prompt', { text: 'Hello again.' })
    await client.untilEntries(sid, 'it answered', turnEnded)
  }
})
