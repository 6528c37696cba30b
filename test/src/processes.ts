/**
 * The ground that end-to-end and fault tests stand on: relays, runners and model servers as real processes with folders of
 * their own, and nothing left behind. Whatever is started carries a mark in its environment, which its own children inherit;
 * closing the ground ends exactly the processes with that mark, whoever their parent is by then.
 *
 *   await using ground = await Ground.open()
 *   const model = await ground.model('task')
 *   const up = await ground.up({ workspace: repo, model })
 */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ModelState } from './model-server.ts'
import { Process } from './process.ts'
import { until } from './until.ts'

const ROOT = join(import.meta.dirname, '../..')
const CLI = join(ROOT, 'runner/bin/baton.mjs')
const RELAY = join(ROOT, 'relay/src/cli.mjs')
/** Not BATON_…: a runner takes those away from the commands that it runs. */
const MARK = 'TEST_GROUND'
const FOLDER = /^baton-ground-(\d+)-/

/** Of the test's surroundings, what the product must not see. */
const HIDDEN = /^(ANTHROPIC_|BATON_|REDIS_|VITEST|NODE_OPTIONS$|INIT_CWD$|npm_)/

export interface Model {
  url: string
  state: () => Promise<ModelState>
  open: (gate: string) => Promise<void>
  process: Process
}

interface CliOptions {
  /** Instead of this Node: program and first arguments. */
  node?: string[]
  cwd?: string
  env?: NodeJS.ProcessEnv
  model?: { url: string }
}

export interface Relay {
  url: string
  port: number
  data: string
  process: Process
}

export class Ground implements AsyncDisposable {
  readonly folder: string
  readonly #processes: Process[] = []
  #names = 0
  readonly #onExit = (): void => {
    for (const pid of marked(this.folder)) signal(pid, 'SIGKILL')
    rmSync(this.folder, { recursive: true, force: true })
  }

  private constructor(folder: string) {
    this.folder = folder
    process.on('exit', this.#onExit)
  }

  /** Also clears away what a test run left that was itself killed. */
  static async open(): Promise<Ground> {
    for (const name of readdirSync(tmpdir())) {
      const owner = FOLDER.exec(name)?.[1]
      if (owner !== undefined && !alive(Number(owner))) await clear(join(tmpdir(), name))
    }
    return new Ground(mkdtempSync(join(tmpdir(), `baton-ground-${process.pid}-`)))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** Ends every process of this ground and deletes its folder. */
  async close(): Promise<void> {
    await clear(this.folder)
    await Promise.all(this.#processes.map(({ exit }) => exit))
    process.off('exit', this.#onExit)
  }

  /** A fresh folder of this ground. */
  async newFolder(name: string): Promise<string> {
    const path = join(this.folder, `${++this.#names}-${name}`)
    await mkdir(path)
    return path
  }

  /** Starts any program with the ground's mark. */
  async start(
    name: string,
    command: string,
    args: string[],
    { cwd = this.folder, env = {} }: Pick<CliOptions, 'cwd' | 'env'> = {},
  ): Promise<Process> {
    const started = await Process.start({ name, command, args, cwd, env: { ...this.environment(), ...env } })
    this.#processes.push(started)
    return started
  }

  /** Runs `baton …`. */
  baton(args: string[], { cwd, env, model, node = [process.execPath] }: CliOptions = {}): Promise<Process> {
    const forModel =
      model === undefined ? {} : { ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: 'test-key' }
    const [program = '', ...first] = node
    return this.start(`baton ${args[0] ?? ''}`, program, [...first, CLI, ...args], {
      ...(cwd !== undefined && { cwd }),
      env: { ...forModel, ...env },
    })
  }

  /**
   * A relay on a free port, with a Redis of its own unless `redis` is given: the program alone, or as `baton relay` runs it,
   * which is one more process.
   */
  async relay(
    options: Pick<CliOptions, 'env'> & {
      port?: number
      data?: string
      redis?: string
      by?: 'itself' | 'baton'
    } = {},
  ): Promise<Relay> {
    const data = options.data ?? (await this.newFolder('relay'))
    const env = { ...options.env, ...(options.redis !== undefined && { REDIS_URL: options.redis }) }
    const args = ['--port', String(options.port ?? 0), '--data', data]
    const started =
      options.by === 'baton'
        ? await this.baton(['relay', ...args], { env })
        : await this.start('relay', process.execPath, [RELAY, ...args], { env })
    return serving(started, data)
  }

  /** `baton up` on a free port: Redis, relay and a runner for `workspace`. */
  async up(
    options: CliOptions & { workspace: string; port?: number; data?: string; args?: string[] },
  ): Promise<Relay> {
    const data = options.data ?? (await this.newFolder('up'))
    const args = ['up', '--port', String(options.port ?? 0), '--data', data, ...(options.args ?? [])]
    return serving(await this.baton(args, { ...options, cwd: options.workspace }), data)
  }

  /** `baton runner`, ready to be offered sessions. `args`: `--join LINK` the first time, `--workspace DIR`, `--pool LABEL`. */
  async runner(
    options: CliOptions & { name: string; data?: string; args?: string[] },
  ): Promise<{ data: string; process: Process }> {
    const data = options.data ?? (await this.newFolder(`runner-${options.name}`))
    const args = ['runner', '--name', options.name, '--data', data, ...(options.args ?? [])]
    const started = await this.baton(args, options)
    await started.waitForOutput(/: serving\b/)
    return { data, process: started }
  }

  /** A model server (model-scripts.ts) that outlives whatever calls it. */
  async model(script: string): Promise<Model> {
    const record = join(await this.newFolder('model'), 'requests.json')
    const file = join(import.meta.dirname, 'model-server.ts')
    const started = await this.start('model server', process.execPath, [
      file,
      '--script',
      script,
      '--record',
      record,
    ])
    const [, url = ''] = await started.waitForOutput(/model server: (http:\S+)/)
    return {
      url,
      process: started,
      state: async () => (await (await fetch(`${url}/test/state`)).json()) as ModelState,
      open: async (gate) => {
        await fetch(`${url}/test/open/${encodeURIComponent(gate)}`, { method: 'POST' })
      },
    }
  }

  /** Pids of this ground's processes whose command line matches, e.g. `/redis-server/`. */
  find(command: RegExp): number[] {
    return marked(this.folder).filter((pid) => command.test(commandOf(pid)))
  }

  /** For other starters, e.g. a browser: the environment with the ground's mark. */
  environment(): NodeJS.ProcessEnv {
    const kept = Object.entries(process.env).filter(([name]) => !HIDDEN.test(name))
    return { ...Object.fromEntries(kept), [MARK]: this.folder }
  }
}

/** Sends a signal to a process that may be gone by now. */
export function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

export function alive(pid: number): boolean {
  try {
    // A zombie answers to signal 0, but no longer runs.
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

async function serving(started: Process, data: string): Promise<Relay> {
  const [, port = ''] = await started.waitForOutput(/https?:\/\/[^\s/:]+:(\d+)/)
  const url = `http://127.0.0.1:${port}`
  await started.waitFor(`${url}/healthz answers`, async () => (await fetch(`${url}/healthz`)).ok)
  return { url, port: Number(port), data, process: started }
}

/** Living processes that were started with the mark of a ground. Linux: the environment is read from /proc. */
function marked(folder: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        const hasMark = readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(`${MARK}=${folder}`)
        // Redis writes its title over its environment; the title names its socket in the folder.
        return (hasMark || commandOf(pid).includes(`${folder}/`)) && alive(pid)
      } catch {
        return false
      }
    })
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ')
  } catch {
    return ''
  }
}

async function clear(folder: string): Promise<void> {
  // Again and again, because a process may start another while it is being ended.
  await until(`the processes of ${folder} have ended`, () => {
    const left = marked(folder)
    for (const pid of left) signal(pid, 'SIGKILL')
    return left.length === 0
  })
  rmSync(folder, { recursive: true, force: true })
}
