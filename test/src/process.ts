/** One real process of a test: started, watched, signalled by its pid, and its output kept. */
import { spawn } from 'node:child_process'
import type { ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { until } from './until.ts'

export interface Exit {
  code: number | null
  signal: NodeJS.Signals | null
}

export interface Launch {
  /** For messages. */
  name: string
  command: string
  args: string[]
  cwd: string
  env: NodeJS.ProcessEnv
}

const GRACE_MS = 20_000
const TOLD_LINES = 30

export class Process {
  readonly name: string
  readonly pid: number
  /** Resolves when it has ended and all of its output is here. */
  readonly exit: Promise<Exit>
  /** Set once it has ended. */
  exited: Exit | undefined
  /** stdout and stderr so far. */
  output = ''
  readonly #child: ChildProcess

  private constructor(name: string, pid: number, child: ChildProcess) {
    this.name = name
    this.pid = pid
    this.#child = child
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8')
      stream?.on('data', (text: string) => {
        this.output += text
      })
    }
    this.exit = new Promise((resolve) => {
      child.on('close', (code, signal) => {
        this.exited = { code, signal }
        resolve(this.exited)
      })
    })
  }

  /** @throws Error when the program can't be started */
  static async start({ name, command, args, cwd, env }: Launch): Promise<Process> {
    const child = spawn(command, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] })
    await once(child, 'spawn')
    return new Process(name, child.pid as number, child)
  }

  /** Waits for something in the output. Throws at once, with the output, when the process ends without it. */
  async waitForOutput(pattern: RegExp): Promise<RegExpExecArray> {
    const match = await until(
      `${this.name} prints ${pattern}`,
      () => pattern.exec(this.output) ?? this.#ended(),
    ).catch((error: unknown) => this.#explain(error))
    return match === 'ended'
      ? this.#explain(new Error(`${this.name} ended before it printed ${pattern}`))
      : match
  }

  /** Waits for a condition that this process should bring about. Throws at once, with the output, when it ends. */
  async waitFor(awaited: string, probe: () => boolean | Promise<boolean>): Promise<void> {
    const how = await until(awaited, async () => this.#ended() ?? (await probe())).catch((error: unknown) =>
      this.#explain(error),
    )
    if (how === 'ended') this.#explain(new Error(`${this.name} ended while a test waited until ${awaited}`))
  }

  kill(signal: NodeJS.Signals): void {
    this.#child.kill(signal)
  }

  /** Asks it to end and waits; kills it when it does not. */
  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<Exit> {
    this.kill(signal)
    this.kill('SIGCONT')
    const timer = setTimeout(() => this.kill('SIGKILL'), GRACE_MS)
    try {
      return await this.exit
    } finally {
      clearTimeout(timer)
    }
  }

  #ended(): 'ended' | undefined {
    return this.exited === undefined ? undefined : 'ended'
  }

  #explain(error: unknown): never {
    const tail = this.output.trimEnd().split('\n').slice(-TOLD_LINES).join('\n')
    const how = this.exited === undefined ? 'still runs' : `ended with ${JSON.stringify(this.exited)}`
    throw new Error(
      `${error instanceof Error ? error.message : String(error)}\n${this.name} ${how}; it printed:\n${tail}`,
    )
  }
}
