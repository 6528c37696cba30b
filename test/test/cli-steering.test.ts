/** Commands that decide, move and begin, on a laptop and a pool. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Cluster, type ClusterRunner } from '../src/cluster.ts'
import { until } from '../src/until.ts'

let cluster: Cluster
let laptop: ClusterRunner
let cloud: ClusterRunner
beforeAll(async () => {
  cluster = await Cluster.open({ script: 'task' })
  // The pool first: what is listed first is not what was meant.
  cloud = await cluster.runner('cloud-2', { args: ['--pool', 'cloud'] })
  laptop = await cluster.runner('laptop')
})
afterAll(() => cluster[Symbol.asyncDispose]())

async function baton(...args: string[]) {
  const started = await cluster.ground.baton([...args, '--data', laptop.data])
  const { code } = await started.exit
  return { code, output: started.output }
}

/** A session that waits for an approval. */
async function waiting(where = laptop): Promise<string> {
  const sid = await cluster.session(where)
  await cluster.client.command(sid, 'prompt', { text: 'go' })
  await until('an approval is asked for', async () => (await cluster.client.pending(sid)).length > 0)
  return sid
}

describe('handoff', () => {
  it('V3: to the pool where it is already says so and ends', async () => {
    const sid = await waiting(cloud)
    const { code, output } = await baton('handoff', sid, '--to', 'cloud', '--json')
    expect(code).toBe(0)
    const steps = output.trim().split('\n')
    expect(steps.map((line) => JSON.parse(line) as unknown)).toMatchObject([
      { step: 'asked' },
      { step: 'stays', to: 'cloud-2' },
    ])
  })
})
