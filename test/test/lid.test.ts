/** The lid shuts: real processes, a real bus, and a login manager that waits no longer than it says. */
import { describe, expect, it } from 'vitest'
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
  entries.filter((entry) => entry.kind === 'intent' && entry.body.kind === 'prompt').length >= 2
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

describe('a laptop with four busy sessions goes to sleep', () => {
  it('Z1: all are handed over before its delay ends, go on elsewhere, and are offered and brought home after waking', async () => {
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

    await until('all go on in the cloud', async () =>
      (await Promise.all(sids.map((sid) => client.info(sid)))).every(({ holder }) => holder === cloud.id),
    )
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
})
