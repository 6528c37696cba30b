/** `baton attach` on a real terminal, against real processes: what a person sees and does there. */
import { join } from 'node:path'
import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { transcriptOf } from '@baton/shared/transcript.ts'
import { Cluster, type ClusterRunner } from '../src/cluster.ts'
import { signal } from '../src/processes.ts'
import { Terminal, type TerminalOptions } from '../src/terminal.ts'
import { until } from '../src/until.ts'

const CLI = join(import.meta.dirname, '../../runner/src/cli.ts')
const COMMAND = 'wc -l README.md > lines.txt && cat lines.txt'

let cluster: Cluster
let laptop: ClusterRunner
let cloud: ClusterRunner
beforeAll(async () => {
  cluster = await Cluster.open({ script: 'task-held' })
  ;[laptop, cloud] = await Promise.all([
    cluster.runner('laptop'),
    cluster.runner('cloud-2', { args: ['--pool', 'cloud'] }),
  ])
})
afterAll(() => cluster[Symbol.asyncDispose]())

function attach(sid: string, options: Partial<TerminalOptions> = {}, flags: string[] = []): Terminal {
  const { env, ...size } = options
  return Terminal.start({
    ...{ command: process.execPath, args: [CLI, 'attach', sid, '--data', laptop.data, ...flags] },
    ...{ cwd: cluster.ground.folder, env: { ...cluster.ground.environment(), LANG: 'C.UTF-8', ...env } },
    ...size,
  })
}

/** After the program: the terminal as it was. */
async function expectRestored(terminal: Terminal): Promise<void> {
  await until('the program has ended', () => terminal.exited)
  await terminal.shows(/ended \d+/)
  expect(terminal.isAlternate).toBe(false)
  expect(terminal.isBracketed).toBe(false)
  expect(terminal.wraps).toBe(true)
  expect(terminal.screen).toMatch(/(^|\s)icanon .*echo|(^|\s)echo .*icanon/)
}

describe('attach', () => {
  it('F37: prompt, live text, a decision and its result; both ends see all of it at once', async () => {
    const sid = await cluster.session(laptop)
    await using terminal = attach(sid)
    await terminal.shows('Write a prompt')
    terminal.type('Count the lines, please.\r')
    await terminal.shows('> Count the lines, please.')
    // The second answer stops half-way: what there is of it shows.
    await terminal.shows(/I look at the files first\./)
    await terminal.shows(/Now I\s/)
    expect(terminal.screen).toMatch(/working/)
    await cluster.model.open('middle')
    await terminal.shows('Run this command?')
    await terminal.shows('wc -l README.md > lines.txt')
    terminal.type('\t')
    await terminal.shows('y approve')
    terminal.type('y')
    await terminal.shows('The README was counted.')
    await terminal.hides('Run this command?')
    const entries = await cluster.client.entries(sid)
    const approved = transcriptOf(entries).find((item) => item.t === 'approve')
    expect(approved?.result).toMatchObject({ approved: true })
    terminal.type('\x03')
    await expectRestored(terminal)
    expect(terminal.exited).toEqual({ code: 0 })
  })

  it('F37: what another device decides leaves the terminal, too; a denial carries its reason', async () => {
    const sid = await cluster.session(laptop)
    await using terminal = attach(sid)
    await terminal.shows('Write a prompt')
    terminal.type('Go\r')
    await cluster.model.open('middle')
    await terminal.shows('Run this command?')
    const [pending] = await cluster.client.pending(sid)
    if (!pending) throw new Error('nothing waits')
    await cluster.client.decide(sid, pending.effect, pending.digest, false)
    await terminal.hides('Run this command?')
    await terminal.shows('denied')

    terminal.type('Once more\r')
    await terminal.shows('> Once more')
    terminal.type('\x03')
    await expectRestored(terminal)
  })
})
