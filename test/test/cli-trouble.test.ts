/** A turn that failed, as the list and the log of the terminal show it. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Cluster, type ClusterRunner } from '../src/cluster.ts'
import { command } from '../src/command.ts'
import { until } from '../src/until.ts'

let cluster: Cluster
let laptop: ClusterRunner
beforeAll(async () => {
  cluster = await Cluster.open({ script: 'keyless' })
  laptop = await cluster.runner('laptop')
})
afterAll(() => cluster[Symbol.asyncDispose]())

async function output(...args: string[]): Promise<string> {
  const started = await cluster.ground.baton([...args, '--data', laptop.data])
  await started.exit
  return started.output
}

it('a session that rests because the model refused its key is no idle one; the log tells it once', async () => {
  const sid = await cluster.session(laptop)
  await cluster.client.command(sid, 'prompt', { text: 'go' })
  await until('the list shows it', async () => /\serror\s/.test(await command('ls', '--data', laptop.data)))
  const [row] = JSON.parse(await output('ls', '--json')) as { trouble?: { code: string } }[]
  expect(row?.trouble?.code).toBe('model-key')
  const log = await output('log', sid)
  expect(log.split('\n').filter((line) => line.startsWith('-- ') && line.includes('key'))).toHaveLength(1)
})
