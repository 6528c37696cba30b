/** Handoff of a busy session between two runners on one machine, through a relay with a real Redis, each its own process. */
import { join } from 'node:path'
import { newAccount, newDevice } from '@baton/shared/keys.ts'
import { bundleAgent } from '@baton/guest/bundle.ts'
import { createHands } from '@baton/runner/daemon/hands.ts'
import { Runner } from '@baton/runner/daemon/runner.ts'
import type { Harness } from '@baton/runner/harness.ts'
import { TestClient } from '../client.ts'
import { Ground } from '../processes.ts'
import { makeRepo } from '../repo.ts'
import { until } from '../until.ts'
import { quantile, result, type BenchAbout, type BenchResult } from './result.ts'

export const about: BenchAbout = {
  measures:
    'the time in which a session that never stops computing runs nowhere: from its pause on one runner to its continuation on the other; both runners in this process, relay and Redis in their own; the workspace is a git work tree of 30 files',
  leavesOut:
    'the time from pressing move to the pause (see guest: stop), networks, and unpacking files on a machine that has none of them',
}

const MOVES = 100
const WARM_UP = 5

export async function* handoffBench(): AsyncGenerator<BenchResult> {
  const ground = await Ground.open()
  await using _ = ground
  const [relay, repo] = [await ground.relay(), await ground.newFolder('repo')]
  makeRepo(repo, { files: 30 })
  const account = newAccount()
  await using client = await TestClient.open(relay.url, account)
  const bundle = await bundleAgent(join(import.meta.dirname, '../agents/busy.ts'))

  let stopped_at = 0
  const blackouts: number[] = []
  /** Takes the times at the seam between session loop and guest. */
  const timed = (harness: Harness): Harness => {
    let restored = false
    const pausing = async (pause: ReturnType<Harness['run']>): ReturnType<Harness['run']> => {
      const result = await pause
      stopped_at = performance.now()
      return result
    }
    return {
      open: () => harness.open(),
      restore: (chain) => {
        restored = true
        return harness.restore(chain)
      },
      deliver: (message) => pausing(harness.deliver(message)),
      run: () => {
        if (restored) blackouts.push(performance.now() - stopped_at)
        restored = false
        return pausing(harness.run())
      },
      interrupt: () => harness.interrupt(),
      snapshot: (options) => harness.snapshot(options),
      close: () => harness.close(),
    }
  }

  const runners: { runner: Runner; id: string }[] = []
  for (const name of ['one', 'two']) {
    const device = newDevice(account)
    const data = await ground.newFolder(name)
    const hands = await createHands({
      ...{ data, folders: [repo], env: {}, park_after_ms: 60_000, finish_within_ms: 60_000 },
    })
    const { harness } = hands
    const runner = new Runner({
      ...{
        origin: relay.url,
        account,
        device,
        name,
        pools: [],
        capacity: 4,
        workspaces: [{ path: repo, name: 'repo' }],
      },
      hands: { ...hands, agent: async () => bundle, harness: (code) => timed(harness(code)) },
      log: () => undefined,
    })
    await runner.start()
    runners.push({ runner, id: device.id })
  }
  await client.online(2)

  const sid = await client.start({ prefer: runners[0]?.id ?? '' }, { agent: 'busy', workspace: repo })
  await client.untilEntries(sid, 'the workspace is stored', (entries) =>
    entries.some(({ kind }) => kind === 'checkpoint'),
  )
  for (let move = 1; move <= MOVES + WARM_UP; move++) {
    const to = runners[move % 2]?.id ?? ''
    const before = blackouts.length
    await client.command(sid, 'move', { label: 'other' }, { place: { prefer: to } })
    await until('it runs there', () => blackouts.length > before, { every_ms: 2 })
  }
  for (const { runner } of runners) await runner.drain(0)
  const samples = blackouts.slice(WARM_UP)
  const options = { unit: 'ms', samples: samples.length }
  yield result('handoff blackout, p50', quantile(samples, 0.5), { ...options, budget: 50 })
  yield result('handoff blackout, p99', quantile(samples, 0.99), { ...options, budget: 150 })
}
