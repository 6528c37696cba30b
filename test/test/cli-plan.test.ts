/** A plan that is approved from the terminal, as a command and in lines. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { Cluster, type ClusterRunner } from '../src/cluster.ts'
import { until } from '../src/until.ts'

let cluster: Cluster
let laptop: ClusterRunner
beforeAll(async () => {
  cluster = await Cluster.open({ script: 'plan' })
  laptop = await cluster.runner('laptop')
})
afterAll(() => cluster[Symbol.asyncDispose]())

async function baton(...args: string[]) {
  const started = await cluster.ground.baton([...args, '--data', laptop.data])
  const { code } = await started.exit
  return { code, output: started.output }
}

/** A session whose plan waits for a decision. */
async function planned(): Promise<string> {
  const sid = await cluster.session(laptop, 'plan')
  await cluster.client.command(sid, 'prompt', { text: 'go' })
  await until('the plan waits', async () => (await cluster.client.pending(sid)).length > 0)
  return sid
}

const modeIs = (sid: string, mode: string): Promise<unknown> =>
  until(`the mode is ${mode}`, async () => (await baton('mode', sid)).output.includes(mode))

it('F38: a plan that is approved ends the planning: the session asks first, or may edit, as was chosen', async () => {
  const sid = await planned()
  const approved = await baton('approve', sid, '--yes')
  expect(approved).toMatchObject({ code: 0, output: expect.stringMatching(/then: Ask first/) as string })
  await modeIs(sid, 'ask')
  const none = await baton('approve', sid, '--mode', 'edit')
  expect(none).toMatchObject({ code: 1, output: expect.stringMatching(/belongs to a plan/) as string })

  const other = await planned()
  expect((await baton('deny', other)).code).toBe(0)
  expect((await baton('mode', other)).output).toContain('plan')

  const edits = await planned()
  expect((await baton('approve', edits, '--mode', 'edit', '--yes')).output).toMatch(/then: Edit files/)
  await modeIs(edits, 'edit')
})
