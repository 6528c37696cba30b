/** Handoff of a busy session between two runners on one machine, through a relay with a real Redis, each its own process. */
import { join } from 'node:path'
import { bundleAgent } from '@baton/guest/bundle.ts'
import { Pair } from './parts/pair.ts'
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
  const bundle = await bundleAgent(join(import.meta.dirname, '../agents/busy.ts'))
  await using pair = await Pair.open({ files: 30, bundle })
  const sid = await pair.session('busy')
  const samples = (await pair.moves(sid, MOVES + WARM_UP)).slice(WARM_UP)
  const options = { unit: 'ms', samples: samples.length }
  yield result('handoff blackout, p50', quantile(samples, 0.5), { ...options, budget: 50 })
  yield result('handoff blackout, p99', quantile(samples, 0.99), { ...options, budget: 150 })
}
