/** A command in a process group of its own, which ends as a whole (F52). */
import { spawn } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { platform } from 'node:os'
import { setTimeout as delay } from 'node:timers/promises'
import { keep, release } from './keeper.ts'

const TERM_GRACE_MS = 2_000
const KILL_GRACE_MS = 1_000
const POLL_MS = 10
/** How long output may still come after the group is gone: only a process that left the group can hold the pipe. */
const DRAIN_MS = 200

export interface GroupEnd {
  /** Null when a signal ended the command. */
  code: number | null
  signal: NodeJS.Signals | null
  /** `exit`: by itself. Otherwise what ended it. */
  by: 'exit' | 'timeout' | 'abort' | 'flood'
}

export interface GroupOptions {
  cwd: string
  env: Record<string, string>
  timeout_ms: number
  /** Bytes after which the command is ended. */
  flood_bytes: number
  signal: AbortSignal
  onBytes: (chunk: Buffer) => void
}

/**
 * Runs a program to its end, then ends whatever it left behind in its group: TERM, and KILL after two seconds. Resolves when
 * all are gone; a daemon that left the group does not delay it. Rejects only when the program can't be started.
 */
export function runGroup(program: string, args: string[], options: GroupOptions): Promise<GroupEnd> {
  const child = spawn(program, args, {
    cwd: options.cwd,
    env: options.env,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const { pid } = child
  if (pid !== undefined) keep(pid)
  return new Promise((resolve, reject) => {
    let by: GroupEnd['by'] = 'exit'
    let bytes = 0
    let ending: Promise<void> | undefined
    const end = (why: GroupEnd['by']): void => {
      if (ending) return
      by = why
      ending = endGroup(pid)
    }
    const onData = (chunk: Buffer): void => {
      bytes += chunk.length
      if (bytes - chunk.length > options.flood_bytes) return end('flood')
      options.onBytes(chunk)
    }
    const onAbort = (): void => end('abort')
    const timer = setTimeout(() => end('timeout'), options.timeout_ms)
    const closed = new Promise<void>((done) => child.once('close', () => done()))
    options.signal.addEventListener('abort', onAbort)
    if (options.signal.aborted) end('abort')
    child.stdout.on('data', onData)
    child.stderr.on('data', onData)

    const settle = (): void => {
      clearTimeout(timer)
      options.signal.removeEventListener('abort', onAbort)
    }
    child.once('error', (error) => {
      settle()
      if (pid === undefined) reject(error)
    })
    child.once('exit', (code, signal) => {
      settle()
      ending ??= endGroup(pid)
      void ending
        .then(() => Promise.race([closed, delay(DRAIN_MS)]))
        .then(() => {
          if (pid !== undefined) release(pid)
          child.stdout.destroy()
          child.stderr.destroy()
          resolve({ code, signal, by })
        })
    })
  })
}

async function endGroup(pid: number | undefined): Promise<void> {
  if (pid === undefined) return
  if (!signalGroup(pid, 'SIGTERM')) return
  if (await gone(pid, TERM_GRACE_MS)) return
  signalGroup(pid, 'SIGKILL')
  await gone(pid, KILL_GRACE_MS)
}

async function gone(pid: number, within_ms: number): Promise<boolean> {
  for (let waited = 0; ; waited += POLL_MS) {
    if (!(await isAlive(pid))) return true
    if (waited >= within_ms) return false
    await delay(POLL_MS)
  }
}

/** Dead processes that nobody has collected yet count as members for kill(2); on Linux they are told apart. */
async function isAlive(pid: number): Promise<boolean> {
  if (!signalGroup(pid, 0)) return false
  if (platform() !== 'linux') return true
  const names = (await readdir('/proc')).filter((name) => /^\d+$/.test(name))
  const states = await Promise.all(
    names.map((name) => readFile(`/proc/${name}/stat`, 'latin1').catch(() => '')),
  )
  // pid (name) state parent group …, proc_pid_stat(5); the name may hold anything.
  return states.some((line) => {
    const [state, , group] = line.slice(line.lastIndexOf(')') + 2).split(' ')
    return group === String(pid) && state !== 'Z' && state !== 'X'
  })
}

/** False when nobody is in the group any more. */
function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
