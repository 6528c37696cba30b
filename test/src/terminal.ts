/**
 * A terminal for tests: a program on a real pseudo-terminal (`script` of util-linux makes it), what it writes read by a real terminal
 * emulator. Size changes go through the kernel, as they do when a person drags a window.
 */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { readlinkSync, readdirSync, readFileSync } from 'node:fs'
import xterm from '@xterm/headless'
import { until } from './until.ts'

export interface TerminalOptions {
  command: string
  args: string[]
  cwd: string
  env: NodeJS.ProcessEnv
  columns?: number
  rows?: number
}

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`

export class Terminal implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #emulator: InstanceType<typeof xterm.Terminal>
  /** Everything that the program wrote, as it came. */
  raw = ''
  exited: { code: number | null } | undefined

  private constructor(child: ChildProcess, columns: number, rows: number) {
    this.#child = child
    this.#emulator = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true, scrollback: 0 })
    child.stdout?.setEncoding('utf8')
    child.stdout?.on('data', (text: string) => {
      this.raw += text
      this.#emulator.write(text)
    })
    child.on('close', (code) => (this.exited = { code }))
  }

  /** Starts a program in it. The shell's word after it tells the modes that the program left behind. */
  static start({ command, args, cwd, env, columns = 80, rows = 24 }: TerminalOptions): Terminal {
    const line = [command, ...args].map(quoted).join(' ')
    const inside = `stty rows ${rows} cols ${columns}; ${line}; code=$?; stty -a | grep -o -- '-\\?icanon\\|-\\?echo ' | tr '\\n' ' '; echo "ended $code"; exit $code`
    const child = spawn('script', ['-q', '-e', '-f', '-c', inside, '/dev/null'], {
      ...{ cwd, env: { ...env, TERM: env['TERM'] ?? 'xterm-256color' } },
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    return new Terminal(child, columns, rows)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    await until('the terminal has ended', () => this.exited)
    this.#emulator.dispose()
  }

  type(text: string): void {
    this.#child.stdin?.write(text)
  }

  /** The rows of the screen as they show. */
  get rows(): string[] {
    const { active } = this.#emulator.buffer
    return Array.from(
      { length: this.#emulator.rows },
      (_, row) => active.getLine(active.baseY + row)?.translateToString(true) ?? '',
    )
  }

  get screen(): string {
    return this.rows.join('\n')
  }

  /** Has the program the whole screen (true), or the shell (false)? */
  get isAlternate(): boolean {
    return this.#emulator.buffer.active.type === 'alternate'
  }

  get isBracketed(): boolean {
    return this.#emulator.modes.bracketedPasteMode
  }

  get wraps(): boolean {
    return this.#emulator.modes.wraparoundMode
  }

  async shows(pattern: RegExp | string): Promise<void> {
    await until(`the terminal shows ${String(pattern)}`, () => {
      if (this.exited && !this.#matches(pattern)) throw new Error(`it ended:\n${this.screen}`)
      return this.#matches(pattern)
    }).catch((error: unknown) => {
      throw new Error(`${error instanceof Error ? error.message : String(error)}\n${this.screen}`)
    })
  }

  async hides(pattern: RegExp | string): Promise<void> {
    await until(`the terminal no longer shows ${String(pattern)}`, () => !this.#matches(pattern)).catch(
      (error: unknown) => {
        throw new Error(`${error instanceof Error ? error.message : String(error)}\n${this.screen}`)
      },
    )
  }

  #matches(pattern: RegExp | string): boolean {
    return typeof pattern === 'string' ? this.screen.includes(pattern) : pattern.test(this.screen)
  }

  /** As when a window is dragged: the kernel tells the program. */
  resize(columns: number, rows: number): void {
    this.#emulator.resize(columns, rows)
    execFileSync('stty', ['-F', this.#device(), 'rows', String(rows), 'cols', String(columns)])
  }

  /** Pid of the program that has the terminal, by a part of its command line. */
  pid(command: RegExp): number {
    const device = this.#device()
    const found = readdirSync('/proc').find((name) => {
      if (!/^\d+$/.test(name)) return false
      try {
        return (
          readlinkSync(`/proc/${name}/fd/0`) === device &&
          command.test(readFileSync(`/proc/${name}/cmdline`, 'utf8'))
        )
      } catch {
        return false
      }
    })
    if (found === undefined) throw new Error(`no process of ${device} matches ${String(command)}`)
    return Number(found)
  }

  /** The pseudo-terminal that the children of `script` have. */
  #device(): string {
    const [child] = readFileSync(`/proc/${this.#child.pid}/task/${this.#child.pid}/children`, 'utf8')
      .trim()
      .split(' ')
    return readlinkSync(`/proc/${child}/fd/0`)
  }
}
