/** Lists of the command line against real processes: runners, ended sessions, models that are not there, a runner that is off. */
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { BatonError } from '@baton/shared/errors.ts'
import { Cluster, type ClusterRunner } from '../src/cluster.ts'
import { command } from '../src/command.ts'
import { until } from '../src/until.ts'

let cluster: Cluster
let laptop: ClusterRunner
beforeAll(async () => {
  cluster = await Cluster.open({ script: 'nameless' })
  ;[laptop] = await Promise.all([
    cluster.runner('laptop'),
    cluster.runner('cloud-2', { args: ['--pool', 'cloud', '--capacity', '3'] }),
  ])
})
afterAll(() => cluster[Symbol.asyncDispose]())

const here = (...words: string[]): Promise<string> => command(...words, '--data', laptop.data)
async function json<T>(...words: string[]): Promise<T> {
  return JSON.parse(await here(...words, '--json')) as T
}

/** As a process: exit code, and standard output apart from standard error. */
async function ended(...args: string[]) {
  const started = await cluster.ground.baton([...args, '--data', laptop.data])
  const { code } = await started.exit
  return { code, output: started.output }
}

interface RunnerRow {
  name: string
  here: boolean
  state: string
  pools: string[]
  held: number
  capacity: number
  sessions: { sid: string; title: string }[]
}

describe('runners', () => {
  it('V9: lists what is online, its room and what it holds, and what was seen last', async () => {
    const sid = await cluster.session(laptop)
    const rows = (): Promise<RunnerRow[]> => json('runners')
    await until('the laptop holds it', async () => (await rows())[0]?.sessions[0]?.sid === sid)
    expect(await rows()).toMatchObject([
      { name: 'laptop', here: true, state: 'online', pools: [], held: 1, capacity: 4 },
      { name: 'cloud-2', here: false, state: 'online', pools: ['cloud'], held: 0, capacity: 3, sessions: [] },
    ])
    expect(await here('runners')).toMatch(
      /^laptop \(here\) +online +\w.* 1 of 4 .*\n {2}[\w-]{8} {2}\w+ +test$/m,
    )
    const gone = await cluster.runner('gone')
    await gone.process.stop('SIGTERM')
    await until('it is away', async () =>
      (await rows()).some(({ name, state }) => name === 'gone' && state === 'away'),
    )
  })
})

/** Sessions of a config with a mistake can't start. */
async function failedStart(): Promise<string> {
  const config = join(cluster.repo, 'baton.config.ts')
  await writeFile(config, 'export default { tols: {} }\n')
  try {
    const { code, output } = await ended('new', '--workspace', cluster.repo, '--json', 'x')
    expect(code).toBe(1)
    return output
  } finally {
    await rm(config)
  }
}

type Row = { sid: string; status: string; dismissed?: boolean; trouble?: { code: string; message: string } }

describe('ended sessions', () => {
  it('V11: one whose start failed is told where it was asked for, and is out of the list; --all and --json show it, with why', async () => {
    expect(JSON.parse(await failedStart())).toMatchObject({ error: { code: 'config-invalid' } })
    expect(await here('ls')).toMatch(/\n1 dismissed here: baton ls --all\n$/)
    expect(await here('ls')).not.toContain('failed')
    expect(await here('ls', '--all')).toMatch(/\sfailed\s.*config file can not be used.*tols/)
    const [row] = (await json<Row[]>('ls')).filter(({ status }) => status === 'failed')
    expect(row).toMatchObject({ dismissed: true, trouble: { code: 'config-invalid' } })
  })

  it('V11: one that nobody was told of stays until it is dismissed; what has not ended can not be; --undo puts it back', async () => {
    const sid = await cluster.client.start(
      { prefer: laptop.id },
      { agent: 'coder', workspace: '/nowhere' },
      'Lost',
    )
    const failed = async (): Promise<Row | undefined> =>
      (await json<Row[]>('ls')).find((row) => row.sid === sid)
    await until('it has failed', async () => (await failed())?.status === 'failed')
    expect(await here('ls')).toMatch(
      /\sfailed\s.*not served by this runner.*\(Lost\)\n.*1 ended; .*baton dismiss --all/s,
    )
    expect(await here('dismiss')).toMatch(/ failed +Lost\nDismiss them: baton dismiss --all/)

    const other = await cluster.session(laptop)
    const refused = here('dismiss', other)
    await expect(refused).rejects.toThrow(
      /Only sessions that have ended can be dismissed\. \(\w+ is \w+: test\)/,
    )

    expect(await json('dismiss', 'Lost')).toEqual([{ sid, status: 'failed', title: 'Lost' }])
    expect(await here('ls')).not.toContain('Lost')
    expect(await failed()).toMatchObject({ dismissed: true })
    expect(await here('dismiss', '--undo', sid)).toMatch(/is back: Lost/)
    expect(await here('ls')).toContain('Lost')
    await here('dismiss', '--all')
    expect(await here('ls')).not.toContain('Lost')
    expect(await here('dismiss')).toMatch(/None has ended/)
  })
})

describe('a model that is not there', () => {
  it('V10: is warned of at once, and what the service says is a state to go on from: another name, the next prompt', async () => {
    const sid = await cluster.session(laptop)
    const set = (model: string) => json<{ warnings?: string[] }>('set', sid, '--model', model)
    expect((await set('claude-sonnet-5-5')).warnings).toBeUndefined()
    expect((await set('claude-foo-5-5')).warnings?.[0]).toMatch(/not known here/)
    await here('prompt', sid, 'go')
    const row = async (): Promise<Row | undefined> => (await json<Row[]>('ls')).find((one) => one.sid === sid)
    await until('the turn has ended', async () => (await row())?.trouble !== undefined)
    expect(await row()).toMatchObject({
      status: 'idle',
      trouble: { code: 'model-unknown', message: expect.stringContaining('"claude-foo-5-5"') as string },
    })
    expect(await here('log', sid)).toMatch(
      /-- .*no model of this name\. \("claude-foo-5-5"\) There are: claude-sonnet-5-5, claude-opus-5-5, claude-next-1\. .*baton set SESSION --model/,
    )
    await set('claude-next-1')
    await here('prompt', sid, 'again')
    await until('it goes on', async () => (await here('log', sid)).includes('Hello from claude-next-1.'))
  })
})

describe('home', () => {
  it('Z6: says that the runner of this machine is off, rather than that nothing is away', async () => {
    const other = await cluster.runner('other')
    const at = (...words: string[]): Promise<string> => command(...words, '--data', other.data)
    expect(await at('home')).toBe('Nothing is away.\n')
    await other.process.stop('SIGTERM')
    const off = async (...words: string[]): Promise<string> =>
      at(...words).then(String, (error: unknown) =>
        error instanceof BatonError ? error.code : String(error),
      )
    await until('the relay knows it', async () => (await off('home')) === 'runner-off')
    expect(await off('home', '--all')).toBe('runner-off')
    await expect(at('home')).rejects.toThrow(/does not run\. It is other, last seen just now\./)
  })
})
