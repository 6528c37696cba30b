/** The examples, as their comments say to call them, each with a handoff in the middle of a model call. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import type { Opened } from '@baton/shared/entries.ts'
import type { Json } from '@baton/shared/guest.ts'
import { Cluster, type ClusterRunner } from '../src/cluster.ts'
import { until } from '../src/until.ts'

const EXAMPLES = join(import.meta.dirname, '../../examples')
const repo = { extra: { 'src/middle.txt': 'the one in the middle\n' } }

async function json(
  cluster: Cluster,
  args: string[],
): Promise<{ code: number | null; said: unknown; output: string }> {
  const process = await cluster.ground.baton([...args, '--json'])
  const { code } = await process.exit
  const line = process.output.trim().split('\n').at(-1) ?? 'null'
  return {
    code,
    output: process.output,
    said: line.startsWith('{') || line.startsWith('[') ? JSON.parse(line) : undefined,
  }
}

/** `baton new --agent …` in mode full; gives the session. */
async function begin(cluster: Cluster, on: ClusterRunner, agent: string, prompt: string): Promise<string> {
  const where = ['--workspace', cluster.repo, '--on', on.name, '--data', on.data, '--mode', 'full']
  const ran = await json(cluster, ['new', '--agent', join(EXAMPLES, agent), ...where, prompt])
  expect(ran.code, ran.output).toBe(0)
  return (ran.said as { sid: string }).sid
}

/** Moves the session while the model holds its answer back, then lets it go on. */
async function moveInTheMiddle(cluster: Cluster, sid: string, to: ClusterRunner): Promise<void> {
  const { client, model } = cluster
  await until('the model holds', async () => ((await model.state()).gates['middle']?.waiting ?? 0) > 0)
  await client.untilEntries(sid, 'its files are stored', (all) =>
    all.some(({ kind }) => kind === 'checkpoint'),
  )
  await client.command(sid, 'move', { label: to.name }, { place: { prefer: to.id } })
  await client.untilEntries(sid, 'it waits for the answer', (all) =>
    all.some((entry) => entry.kind === 'event' && entry.body.type === 'moving'),
  )
  await model.open('middle')
  await client.untilEntries(sid, 'it is there', (all) =>
    all.some(
      (entry) => entry.kind === 'lease' && entry.lease.change === 'claimed' && entry.lease.holder === to.id,
    ),
  )
}

const told = (entries: Opened[], type: string): Json[] =>
  entries.flatMap((entry) => (entry.kind === 'event' && entry.body.type === type ? [entry.body.data] : []))
const isDone = (entries: Opened[]): boolean => told(entries, 'done').length > 0

describe('examples', () => {
  it.each([
    ['loop-sync.ts', 'src/*.txt', ['note', 'summary']],
    ['fan-out.ts', 'Cache the list of users for an hour.', ['summary']],
  ])(
    'I7, I8: %s says the same, moved or not, with the same number of model calls',
    async (agent, prompt, types) => {
      await using cluster = await Cluster.open({ script: 'echo', repo })
      const { client, model } = cluster
      const one = await cluster.runner('one')
      const two = await cluster.runner('two')
      const moved = await begin(cluster, one, agent, prompt)
      await moveInTheMiddle(cluster, moved, two)
      const there = await client.untilEntries(moved, 'it has ended', isDone)
      const asked = (await model.state()).count

      const still = await begin(cluster, one, agent, prompt)
      const here = await client.untilEntries(still, 'it has ended', isDone)
      expect((await model.state()).count - asked, 'model calls').toBe(asked)
      for (const type of types) expect(told(there, type), type).toEqual(told(here, type))
      expect(JSON.stringify(told(here, 'summary'))).toContain('Heard:')
      expect(there.some((entry) => entry.kind === 'event' && entry.body.type === 'failed')).toBe(false)
    },
  )

  it('fork-compare.ts: two answers from one beginning, and a comparison', async () => {
    await using cluster = await Cluster.open({ script: 'echo', repo })
    const { client } = cluster
    const one = await cluster.runner('one')
    const two = await cluster.runner('two')
    const sid = await begin(cluster, one, 'fork-compare.ts', 'How to hold the middle?')
    await moveInTheMiddle(cluster, sid, two)
    const answers = (entries: Opened[]): string[] =>
      told(entries, 'document').map((data) => JSON.stringify(data))
    const waits = (n: number) => (all: Opened[]) =>
      all.filter((entry) => entry.kind === 'intent' && entry.body.kind === 'prompt').length === n
    await client.untilEntries(sid, 'it waits', waits(2))

    const data = ['--data', one.data]
    const forked = await json(cluster, ['fork', sid, 'Answer for a beginner.', ...data])
    expect(forked.code, forked.output).toBe(0)
    const fork = (forked.said as { sid: string }).sid
    expect((await json(cluster, ['prompt', sid, 'Answer for an expert.', ...data])).code).toBe(0)
    await client.untilEntries(fork, 'the fork answered', waits(3))
    await client.untilEntries(sid, 'it answered', waits(3))
    const docs = await json(cluster, ['docs', fork, 'answer', ...data])
    expect(docs.output).toContain('Heard: Answer for a beginner.')
    await json(cluster, ['prompt', sid, 'Compare with: Heard: Answer for a beginner.', ...data])
    const last = answers(await client.untilEntries(sid, 'it compared', waits(4)))
    expect(last.at(-2)).toContain('Answer for an expert.')
    expect(last.at(-1)).toContain('Heard: Compare with: Heard: Answer for a beginner.')
  })
})

describe('baton new --agent', () => {
  it('says in words why a file is no agent, and makes no session', async () => {
    await using cluster = await Cluster.open({ script: 'echo', repo })
    const one = await cluster.runner('one')
    const folder = join(cluster.ground.folder, 'agents')
    mkdirSync(folder)
    for (const [source, words] of [
      [
        `import { readFileSync } from 'fs'\nexport default () => readFileSync('x')`,
        /imports \\"fs\\".*tools/,
      ],
      [`import 'no-such-package'\nexport default () => 1`, /no-such-package.*npm install/],
      [`export const main = 1`, /exports its main function as default/],
      [`export default 1`, /must export its main function/],
    ] as const) {
      const file = join(folder, 'agent.ts')
      writeFileSync(file, source)
      const where = ['--workspace', cluster.repo, '--data', one.data]
      const ran = await json(cluster, ['new', '--agent', file, ...where, 'go'])
      expect(ran.output).toMatch(words)
      expect(ran.code).toBe(1)
    }
    expect(
      (await json(cluster, ['new', '--agent', join(folder, 'none.ts'), '--data', one.data, 'go'])).output,
    ).toMatch(/there is no file/)
    expect((await cluster.client.link.ask('list', {})).sessions).toEqual([])
  })
})
