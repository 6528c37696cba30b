/** Commands that decide, move and begin, on a laptop and a pool. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Cluster, type ClusterRunner } from '../src/cluster.ts'
import { Terminal } from '../src/terminal.ts'
import { until } from '../src/until.ts'

const CLI = join(import.meta.dirname, '../../runner/bin/baton.mjs')

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

interface Waits {
  error?: { code: string }
  waits: { effect: number; name: string; input: { command: string } }[]
}

describe('approve', () => {
  it('I10: decides nothing that was not named: it lists what waits, whole, and ends with 2', async () => {
    const sid = await waiting()
    const listed = await baton('approve', sid, '--json')
    expect(listed.code).toBe(2)
    const { error, waits } = JSON.parse(listed.output) as Waits
    expect(error).toMatchObject({ code: 'usage' })
    const [call] = await cluster.client.pending(sid)
    expect(waits).toMatchObject([{ effect: call?.effect, name: 'bash' }])
    const { code, output } = await baton('approve', sid)
    expect(code).toBe(2)
    expect(output).toContain(waits[0]?.input.command)
    expect(output).toContain(`effect ${call?.effect}: `)
    expect(output).toMatch(/--effect N.*--yes/)
    expect(await cluster.client.pending(sid)).toHaveLength(1)

    const other = await baton('approve', sid, '--effect', '9999')
    expect(other).toMatchObject({ code: 1, output: expect.stringContaining('No such call waits') as string })
    const given = await baton('approve', sid, '--effect', String(call?.effect), '--json')
    expect(JSON.parse(given.output)).toMatchObject([{ effect: call?.effect, approved: true }])
    await until('it is decided', async () =>
      (await cluster.client.pending(sid)).every(({ effect }) => effect !== call?.effect),
    )
  })

  it('V6, I10: on a terminal shows each call and asks; what is no yes leaves it as it is', async () => {
    const sid = await waiting()
    const ask = (): Terminal =>
      Terminal.start({
        ...{ command: process.execPath, cwd: cluster.repo, env: cluster.ground.environment() },
        args: [CLI, 'approve', sid, '--data', laptop.data],
        ...{ columns: 100, rows: 30 },
      })
    const [call] = await cluster.client.pending(sid)
    {
      await using terminal = ask()
      await terminal.shows('Approve it? [y/N]')
      expect(terminal.screen).toMatch(/^effect \d+: .*\n {4}\S/m)
      terminal.type('\r')
      await terminal.shows(/Nothing was decided\.[^]*ended 0/)
    }
    expect((await cluster.client.pending(sid)).map(({ effect }) => effect)).toContain(call?.effect)
    await using terminal = ask()
    await terminal.shows('Approve it? [y/N]')
    terminal.type('y\r')
    await terminal.shows(/Approved: bash[^]*ended 0/)
  })
})

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

describe('new', () => {
  it('V8: begins on the runner of this machine, whichever is listed first', async () => {
    const { output } = await baton('new', '--workspace', cluster.repo, '--json', 'go')
    expect(JSON.parse(output)).toMatchObject({ runner: 'laptop', started: true })
  })
})

describe('attach', () => {
  it('V4: in lines ends with the session, of which nothing more can come', async () => {
    const sid = await cluster.client.start({ prefer: laptop.id }, { agent: 'toy', workspace: cluster.repo })
    const during = await cluster.ground.baton(['attach', sid, '--plain', '--data', laptop.data])
    expect(await during.exit).toMatchObject({ code: 0 })
    expect(during.output).toContain('The agent has ended.')
    const { code, output } = await baton('attach', sid, '--json')
    expect(code).toBe(0)
    const last = JSON.parse(output.trim().split('\n').at(-1) ?? '') as unknown
    expect(last).toMatchObject({ kind: 'lease', lease: { change: 'released' } })
  })
})
