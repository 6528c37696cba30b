/** `baton attach` on a real terminal, against real processes: what a person sees and does there. */
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { transcriptOf } from '@baton/shared/transcript.ts'
import { Cluster, type ClusterRunner } from '../src/cluster.ts'
import { signal } from '../src/processes.ts'
import { Terminal, type TerminalOptions } from '../src/terminal.ts'
import { until } from '../src/until.ts'

const CLI = join(import.meta.dirname, '../../runner/bin/baton.mjs')

let cluster: Cluster
let laptop: ClusterRunner
beforeAll(async () => {
  cluster = await Cluster.open({ script: 'task-held' })
  const runners = await Promise.all([
    cluster.runner('laptop'),
    cluster.runner('cloud-2', { args: ['--pool', 'cloud'] }),
  ])
  laptop = runners[0]
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
  it('V4, F37: prompt, live text, a decision and its result; both ends see all of it at once', async () => {
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

    // Moved from here: the line of the handoff shows, and the head says where it runs now.
    terminal.type('\x14')
    await terminal.shows('› cloud-2')
    terminal.type('\r')
    await terminal.shows(/moved to cloud-2/)
    terminal.type('Once more\r')
    await terminal.shows('> Once more')
    terminal.type('\x03')
    await expectRestored(terminal)
  })
})

describe('attach, when things go wrong', () => {
  let hostile: Cluster
  let runner: ClusterRunner
  let sid: string
  beforeAll(async () => {
    hostile = await Cluster.open({ script: 'hostile' })
    runner = await hostile.runner('laptop')
    sid = await hostile.session(runner, 'full')
  })
  afterAll(() => hostile[Symbol.asyncDispose]())

  const open = (size: Partial<TerminalOptions> = {}, flags: string[] = [], session = sid): Terminal =>
    Terminal.start({
      ...{ command: process.execPath, args: [CLI, 'attach', session, '--data', runner.data, ...flags] },
      ...{ cwd: hostile.ground.folder, env: { ...hostile.ground.environment(), LANG: 'C.UTF-8' } },
      ...size,
    })
  const promptsOf = async (session = sid): Promise<string[]> =>
    transcriptOf(await hostile.client.entries(session)).flatMap((item) =>
      item.t === 'prompt' ? [item.text] : [],
    )

  it('V6, C12: what a model says and a command prints reaches no terminal as an escape sequence', async () => {
    await using terminal = open()
    await terminal.shows('Write a prompt')
    terminal.type('Try\r')
    await terminal.shows('Both were harmless.')
    terminal.type('\x0f')
    await terminal.shows('FAKED output')
    await terminal.shows('FAKED prose')
    expect(terminal.raw).not.toContain('\x1b[HFAKED')
    expect(terminal.raw).not.toContain('\x1b]')
    expect(terminal.raw).not.toContain('\x07')
    terminal.type('\x03')
    await expectRestored(terminal)
  })

  it('C16: from 40 columns to 120 nothing is lost, nothing stands beside the screen; the draft has several lines', async () => {
    await using terminal = open({ columns: 80, rows: 24 })
    await terminal.shows('Both were harmless.')
    terminal.type('\x1b[200~first line\rsecond \x1b[31mline\x1b[201~\nthird line')
    await terminal.shows(/> first line\n {2}second line\n {2}third line/)
    for (const [columns, rows] of [
      [40, 15],
      [120, 40],
      [20, 8],
    ] as const) {
      terminal.resize(columns, rows)
      await until(
        `the picture fits ${columns} columns`,
        () => terminal.rows[0]?.trimEnd().length === columns && terminal.rows.length === rows,
      )
      await terminal.shows(/third line/)
    }
    terminal.type('\x03')
    await expectRestored(terminal)
  })

  it('V5, F15: whatever ends it, the terminal is as before, and the draft is there again', async () => {
    for (const [name, code] of [
      ['SIGTERM', 143],
      ['SIGHUP', 129],
      ['SIGINT', 130],
    ] as const) {
      await using terminal = open()
      await terminal.shows('third line')
      signal(terminal.pid(/^[^\0]*node\0/), name)
      await expectRestored(terminal)
      expect(terminal.exited).toEqual({ code })
    }
  })

  it('V5, F2, F10, F14: while the relay is away it says so, keeps what is sent, and sends it once', async () => {
    await using terminal = open()
    await terminal.shows('third line')
    terminal.type('\x15\x7f\x15\x7f\x15')
    await terminal.shows(/Write a prompt/)
    await hostile.relay.process.stop('SIGTERM')
    await terminal.shows('No connection to the relay')
    terminal.type('Sent while away\r')
    await terminal.shows('sending: Sent while away')
    await hostile.ground.relay({
      data: hostile.relay.data,
      port: hostile.relay.port,
      env: { BATON_LEASE_MS: '1500' },
    })
    await terminal.hides('No connection to the relay')
    await terminal.shows('> Sent while away')
    await hostile.client.link.ready()
    expect(await promptsOf()).toEqual(['Try', 'Sent while away'])

    // The answer to it ends only by a stop.
    await terminal.shows('This answer')
    terminal.type('\x13Turn left\r')
    await terminal.shows('Turn left')
    terminal.type('\x18')
    await terminal.shows('Stopped from')
    await terminal.shows('> Turn left')
    terminal.type('\x03')
    await expectRestored(terminal)
  })

  it('V6, C11: a call that is longer than its room can be denied at once, and approved when all of it was seen', async () => {
    const other = await hostile.session(runner, 'ask')
    await using terminal = open({ columns: 24, rows: 9 }, [], other)
    await terminal.shows('Write a prompt')
    terminal.type('Go\r')
    await terminal.shows('Run this command?')
    await terminal.shows(/\d more lines/)
    terminal.type('\ty')
    await terminal.shows('See all of it first')
    expect((await hostile.client.pending(other)).length).toBe(1)
    await until(
      'the end of the call shows',
      () => {
        if (/^y approve/m.test(terminal.screen)) return true
        terminal.type('\x1b[B')
        return false
      },
      { every_ms: 200 },
    )
    terminal.type('y')
    await until('it is decided', async () => (await hostile.client.pending(other)).length === 0)
    terminal.type('\x03')
    await expectRestored(terminal)
  })

  it('without a screen it is lines: what is typed is a prompt, what begins with a slash a command', async () => {
    const other = await hostile.session(runner, 'ask')
    await using terminal = open({ env: { ...hostile.ground.environment(), TERM: 'dumb' } }, [], other)
    terminal.type('Do it in lines\n')
    await terminal.shows('? Run this command?')
    expect(terminal.isAlternate).toBe(false)
    terminal.type('/approve looks fine\n')
    await terminal.shows('Both were harmless.')
    expect(terminal.raw).not.toContain('\x1b')
    terminal.type('/dance\n')
    await terminal.shows('There is no /dance here')
    terminal.type('/quit\n')
    await until('it has ended', () => terminal.exited)
    expect(await promptsOf(other)).toEqual(['Do it in lines'])
  })

  it('--json gives each entry of the journal once, as a line', async () => {
    const out = await hostile.ground.baton(['attach', sid, '--json', '--data', runner.data])
    const { seq } = await hostile.client.info(sid)
    await out.waitForOutput(new RegExp(`"seq":${seq}\\b`))
    await out.stop('SIGINT')
    const seqs = out.output
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { seq: number }).seq)
    expect(seqs.slice(0, seq)).toEqual(Array.from({ length: seq }, (_, i) => i + 1))
    expect(out.exited?.code).toBe(130)
  })

  it('goes to another session and back, each with its own draft', async () => {
    const other = await hostile.client.start(
      { prefer: runner.id },
      { agent: 'coder', workspace: hostile.repo, mode: 'full' },
      'The other one',
    )
    await using terminal = open()
    await terminal.shows('> Turn left')
    terminal.type('a draft')
    await terminal.shows('> a draft')
    terminal.type('\x07')
    await terminal.shows('Which session?')
    await until(
      'the other one is selected',
      () => {
        if (/› The other one/.test(terminal.screen)) return true
        terminal.type('\x1b[B')
        return false
      },
      { every_ms: 300 },
    )
    terminal.type('\r')
    await terminal.shows(/^The other one/)
    await terminal.hides('a draft')
    expect(await promptsOf(other)).toEqual([])
    terminal.type('\x03')
    await expectRestored(terminal)
    await using again = open()
    await again.shows('> a draft')
    again.type('\x03')
    await expectRestored(again)
  })
})
