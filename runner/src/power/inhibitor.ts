/**
 * A delay lock of logind: while it is held, the machine waits with sleep and shutdown, for some seconds at most. The lock is an
 * open file that logind hands over, which Node can't receive; `systemd-inhibit`, which comes with logind, holds it for us. It
 * ends, and the lock with it, also when this process is killed: its command reads a pipe that we hold open.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { Backoff } from '@baton/shared/backoff.ts'

/** elogind brings the same under its own name. */
const PROGRAMS = ['systemd-inhibit', 'elogind-inhibit']
const LOCK = ['--what=sleep:shutdown', '--mode=delay', '--who=Baton', '--why=Hand sessions over']
/** Says when the lock is there, then waits for the end of the pipe. */
const COMMAND = ['sh', '-c', 'echo held; exec cat >/dev/null']

export class Inhibitor {
  readonly #env: NodeJS.ProcessEnv
  readonly #log: (message: string) => void
  readonly #backoff = new Backoff({ base_ms: 1_000, cap_ms: 60_000 })
  #child: ChildProcess | undefined
  #again: ReturnType<typeof setTimeout> | undefined
  #isHeld = false
  #isWanted = false

  constructor(env: NodeJS.ProcessEnv, log: (message: string) => void) {
    // It needs no more of ours, the model's key least of all.
    const { PATH, DBUS_SYSTEM_BUS_ADDRESS } = env
    this.#env = { PATH, ...(DBUS_SYSTEM_BUS_ADDRESS === undefined ? {} : { DBUS_SYSTEM_BUS_ADDRESS }) }
    this.#log = log
  }

  get isHeld(): boolean {
    return this.#isHeld
  }

  /** Takes the lock, and again whenever it is lost. */
  take(): void {
    if (this.#isWanted) return
    this.#isWanted = true
    this.#start(0)
  }

  /** Lets the machine go, at once. */
  release(): void {
    this.#isWanted = false
    this.#isHeld = false
    clearTimeout(this.#again)
    const child = this.#child
    this.#child = undefined
    child?.stdin?.destroy()
    child?.kill('SIGKILL')
  }

  #start(at: number): void {
    const program = PROGRAMS[at]
    if (program === undefined) {
      this.#log('no systemd-inhibit: the machine will not wait for sessions to be handed over')
      return
    }
    const child = spawn(program, [...LOCK, ...COMMAND], {
      env: this.#env,
      // In a group of its own: a Ctrl-C in the terminal is for us, and the lock stays until all is safe.
      detached: true,
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    this.#child = child
    let said = ''
    child.on('error', () => {
      if (this.#child === child && child.pid === undefined) this.#start(at + 1)
    })
    // With too many open files there are no pipes.
    child.stdin?.on('error', () => undefined)
    child.stderr?.on('data', (text: Buffer) => (said = (said + String(text)).slice(-500)))
    child.stdout?.once('data', () => {
      if (this.#child !== child) return
      this.#isHeld = true
      this.#backoff.settle()
      this.#log('sleep and shutdown will wait for sessions to be handed over')
    })
    child.once('exit', () => {
      if (this.#child !== child) return
      this.#child = undefined
      this.#isHeld = false
      this.#log(`sleep is not held back any more (${said.trim() || 'ended'}); trying again`)
      this.#again = setTimeout(() => this.#start(at), this.#backoff.next())
      this.#again.unref()
    })
    // A runner that has nothing else to do may end.
    child.unref()
  }
}
