/** Commands that look at sessions and steer them, as programs and people call them. */
import { execFile } from 'node:child_process'
import { chmod, mkdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newAccount, newDevice } from '@baton/shared/keys.ts'
import { saveIdentity, saveRelay } from '@baton/runner/daemon/identity.ts'
import { Cluster, type ClusterRunner } from '../src/cluster.ts'
import { command } from '../src/command.ts'
import { until } from '../src/until.ts'

const CLI = join(import.meta.dirname, '../../runner/bin/baton.mjs')

let cluster: Cluster
let laptop: ClusterRunner
let cloud: ClusterRunner
beforeAll(async () => {
  cluster = await Cluster.open({ script: 'task' })
  ;[laptop, cloud] = await Promise.all([
    cluster.runner('laptop'),
    cluster.runner('cloud-2', { args: ['--pool', 'cloud'] }),
  ])
})
afterAll(() => cluster[Symbol.asyncDispose]())

async function baton(...args: string[]) {
  const started = await cluster.ground.baton([...args, '--data', laptop.data])
  const { code } = await started.exit
  return { code, output: started.output }
}

/** What a command prints with --json. */
async function json<T>(...args: string[]): Promise<T> {
  const { code, output } = await baton(...args, '--json')
  if (code !== 0) throw new Error(output)
  return JSON.parse(output) as T
}

/** A session that waits for an approval. */
async function waiting(title: string): Promise<string> {
  const sid = await cluster.client.start(
    { prefer: laptop.id },
    { agent: 'coder', workspace: cluster.repo },
    title,
  )
  await cluster.client.command(sid, 'prompt', { text: 'go' })
  await until('an approval is asked for', async () => (await cluster.client.pending(sid)).length > 0)
  return sid
}

describe('naming a session', () => {
  it('V1: is never guessed: several that fit are listed with their titles; words of a title do as well', async () => {
    const sid = await waiting('Mend the roof')
    await cluster.client.start(
      { prefer: laptop.id },
      { agent: 'coder', workspace: cluster.repo },
      'Mend the fence',
    )
    const two = await baton('log', 'mend')
    expect(two.code).toBe(1)
    expect(two.output).toMatch(/"mend" fits 2:\n.*Mend the .*\n.*Mend the /)
    expect((await baton('log', 'ROOF')).output).toMatch(/^> go/m)
    expect((await json<{ sid: string }>('stop', sid.slice(0, 12))).sid).toBe(sid)
    const none = await baton('log', 'nothing like it')
    expect(none.code).toBe(1)
    expect(none.output).toMatch(/no such session.*baton ls/)
  })
})

describe('steering', () => {
  it('F38: shows and changes the mode, signed; approves with a note; --always names the rule', async () => {
    const sid = await waiting('Modes')
    const mode = async (...to: string[]): Promise<unknown> =>
      JSON.parse(await command('mode', sid, ...to, '--json', '--data', laptop.data))
    const isIn = (name: string) => async (): Promise<boolean> =>
      JSON.stringify(await mode()) === JSON.stringify({ sid, mode: name })
    expect(await json('mode', sid)).toEqual({ sid, mode: 'ask' })
    await json('mode', sid, 'edit')
    await until('the mode is changed', isIn('edit'))
    await mode('ask')
    const [refused, allowed] = [
      await baton('approve', sid, '--yes', '--always'),
      await json<unknown[]>('approve', sid, '--yes', '--note', 'fine'),
    ]
    // A command line that writes into a file is no safe pattern for a rule.
    expect(refused).toMatchObject({ code: 2, output: expect.stringMatching(/without --always/) as string })
    expect(allowed).toMatchObject([{ name: 'bash', approved: true }])
    await mode('plan')
    await until('the mode is changed again', isIn('plan'))
  })
})

describe('handoff', () => {
  interface Step {
    step: string
    at_ms: number
    to?: string
  }
  const stepsOf = (output: string): Step[] =>
    output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Step)

  it('V3, F45: shows how it gets there, and ends when the target has the session', async () => {
    const sid = await waiting('On the move')
    const { code, output } = await baton('handoff', sid, '--to', 'cloud-2', '--json')
    expect(code).toBe(0)
    const steps = stepsOf(output)
    expect(steps[0]).toMatchObject({ step: 'asked', to: 'cloud-2', online: true })
    expect(steps.map(({ step }) => step)).toContain('saved')
    expect(steps.at(-1)).toMatchObject({ step: 'moved', to: 'cloud-2' })
    const holders = (await cluster.client.entries(sid)).flatMap((entry) =>
      entry.kind === 'lease' && entry.lease.change === 'claimed' ? [entry.lease.holder] : [],
    )
    expect(holders.at(-1)).toBe(cloud.id)

    const back = await baton('handoff', sid, '--to', 'laptop')
    expect(back.output).toMatch(/asked to move to laptop[^]*saved: [^]*moved to laptop/)
    expect(await json('handoff', sid, '--to', 'cloud', '--no-wait')).toEqual({ sid, to: 'cloud' })
  })

  it('a target that is not there is refused with those that are', async () => {
    const sid = await waiting('Nowhere')
    const { code, output } = await baton('handoff', sid, '--to', 'cloud-3')
    expect(code).toBe(1)
    expect(output).toMatch(/no runner or pool cloud-3.*laptop.*Did you mean cloud-2\?/)
  })
})

describe('new', () => {
  it('takes mode, model, effort and place; the place is the relay’s to keep', async () => {
    const flags = ['--workspace', cluster.repo, '--mode', 'plan', '--model', 'm-x', '--effort', 'low']
    const { sid } = await json<{ sid: string }>(
      'new',
      ...flags,
      '--place',
      'pinned',
      '--on',
      'cloud-2',
      'Look around',
    )
    expect((await cluster.client.info(sid)).place).toEqual({ prefer: cloud.id, pin: true })
    const entries = await cluster.client.untilEntries(sid, 'it has begun', (all) =>
      all.some((entry) => entry.kind === 'received' && entry.body.kind === 'start'),
    )
    const start = entries.find((entry) => entry.kind === 'received' && entry.body.kind === 'start')
    expect(start).toMatchObject({
      body: { command: { mode: 'plan', settings: { model: 'm-x', effort: 'low' } } },
    })

    const inPool = await json<{ sid: string }>(
      'new',
      '--workspace',
      cluster.repo,
      '--place',
      'cloud',
      'In the pool',
    )
    expect((await cluster.client.info(inPool.sid)).place).toMatchObject({
      prefer: cloud.id,
      pin: true,
      pool: expect.any(String) as string,
    })
    const none = await baton('new', '--workspace', cluster.repo, '--place', 'cloud', '--on', 'moon', 'x')
    expect(none).toMatchObject({
      code: 1,
      output: expect.stringMatching(/pool moon can not take it/) as string,
    })
  })
})

describe('new, when it can not begin', () => {
  it('F45: waits for the start, and ends with 1 and the reason; a folder of a repository stands for all of it', async () => {
    const folder = join(cluster.repo, 'packages')
    await mkdir(folder)
    const begun = await json<{ sid: string; started: boolean }>('new', '--workspace', folder, 'Around')
    expect(begun.started).toBe(true)
    expect((await cluster.client.info(begun.sid)).status).not.toBe('failed')

    const failed = async (...flags: string[]): Promise<string> => {
      const { code, output } = await baton('new', '--workspace', cluster.repo, ...flags, 'x')
      expect(code).toBe(1)
      return output
    }
    expect(await failed('--agent', 'codr')).toMatch(/No agent named codr is built in.*Did you mean coder\?/)
    const elsewhere = await baton('new', '--workspace', '/', '--on', 'laptop', 'x')
    expect(elsewhere).toMatchObject({ code: 1, output: expect.stringMatching(/laptop serves \//) as string })
    const config = join(cluster.repo, 'baton.config.ts')
    await writeFile(config, 'export default { tols: {} }\n')
    try {
      expect(await failed()).toMatch(/baton: The baton\.config file can not be used\..*tols/)
    } finally {
      await rm(config)
    }
  })
})

describe('ls', () => {
  it('--watch tells each change until it is ended', async () => {
    const watching = await cluster.ground.baton(['ls', '--watch', '--json', '--data', laptop.data])
    await watching.waitForOutput(/^\[/)
    const sid = await waiting('Watched')
    await watching.waitForOutput(new RegExp(`"sid":"${sid}","status":"waiting"`))
    const { code } = await watching.stop('SIGINT')
    expect(code).toBe(130)
    for (const line of watching.output.trim().split('\n')) expect(Array.isArray(JSON.parse(line))).toBe(true)
  })
})

describe('exit codes', () => {
  it('V2: 0 done, 1 failed, 2 a wrong command line, 3 no relay; with --json what is wrong is JSON, too', async () => {
    const away = await cluster.ground.newFolder('away')
    const account = newAccount()
    await saveIdentity(away, { account, device: newDevice(account) })
    await saveRelay(away, { origin: 'http://127.0.0.1:9' })
    const none = await cluster.ground.newFolder('none')
    for (const [args, data, code, error] of [
      [['ls'], laptop.data, 0, undefined],
      [['log', 'no-such-session'], laptop.data, 1, 'no-session'],
      [['ls'], none, 1, 'no-identity'],
      [['mode', 'x', 'fast'], laptop.data, 2, 'usage'],
      [['ls'], away, 3, 'offline'],
    ] as const) {
      const started = await cluster.ground.baton([...args, '--json', '--data', data])
      expect((await started.exit).code).toBe(code)
      const printed = JSON.parse(started.output) as { error?: { code: string; todo: string } }
      expect(printed.error?.code).toBe(error)
      if (error !== undefined) expect(printed.error?.todo).not.toBe('')
    }
  })
})

describe('completion', () => {
  it('F8: completes in a real bash: flags, ids, names; a relay that is away costs nothing but the names', async () => {
    const sid = await waiting('Completed')
    const folder = await cluster.ground.newFolder('bin')
    await writeFile(join(folder, 'baton'), `#!/bin/sh\nexec ${process.execPath} ${CLI} "$@"\n`)
    await chmod(join(folder, 'baton'), 0o755)
    const complete = async (data: string, ...words: string[]): Promise<string[]> => {
      const script = [
        'eval "$(baton completion bash)"',
        'COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _baton; printf "%s\\n" "${COMPREPLY[@]}"',
      ].join('\n')
      const env = {
        ...cluster.ground.environment(),
        PATH: `${folder}:${process.env['PATH'] ?? ''}`,
        BATON_DATA: data,
      }
      const { stdout } = await promisify(execFile)(
        'bash',
        ['--norc', '-c', script, 'bash', 'baton', ...words],
        { env },
      )
      return stdout.split('\n').filter((line) => line !== '')
    }
    expect(await complete(laptop.data, 'hand')).toEqual(['handoff'])
    // What the relay does not say in time, on a busy machine, comes with the next press of the key.
    const found = async (...words: string[]): Promise<string[]> => {
      let given: string[] = []
      await until('the relay was quick enough', async () => {
        given = await complete(laptop.data, ...words)
        return given.length > 0
      })
      return given
    }
    expect(await found('handoff', sid.slice(0, 8), '--to', 'cl')).toEqual(['cloud-2', 'cloud'])
    const ids = await found('attach', sid.slice(0, 4))
    expect(ids.some((id) => sid.startsWith(id))).toBe(true)
    const none = await cluster.ground.newFolder('none')
    expect(await complete(none, 'attach', '')).toEqual([])
    expect(await complete(none, 'new', '--mode', '')).toEqual(['plan', 'ask', 'edit', 'full'])
  })
})
