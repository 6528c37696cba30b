/** A command and whatever it starts, which ends as a whole (F52). */
import { spawn, type ChildProcess } from 'node:child_process'
import { setTimeout as delay } from 'node:timers/promises'
import { keep, release } from './keeper.ts'
import { marked, newMarker, processesOf, signalProcess } from './processes.ts'

const TERM_GRACE_MS = 2_000
const KILL_GRACE_MS = 2_000
const POLL_MS = 10
/** How long output may still come after all are gone: only a process that hides can hold the pipe. */
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
  /** Absent: it may take as long as it likes. */
  timeout_ms?: number
  /** Bytes after which the command is ended. */
  flood_bytes: number
  signal: AbortSignal
  /** Where it throws the command is ended. */
  onBytes: (chunk: Buffer) => void
}

export interface Group {
  child: ChildProcess
  /** Ends all of it: TERM, and KILL after two seconds. Resolves when all are gone. */
  end: () => Promise<void>
}

/** Starts a program in a group of its own that dies with this process. Who starts it must call `end`, also after it has exited. */
export function spawnGroup(
  program: string,
  args: string[],
  options: { cwd: string; env: Record<string, string>; stdin: 'ignore' | 'pipe' },
): Group {
  const marker = newMarker()
  const child = spawn(program, args, {
    cwd: options.cwd,
    env: marked(options.env, marker),
    detached: true,
    stdio: [options.stdin, 'pipe', 'pipe'],
  })
  const { pid } = child
  if (pid === undefined) return { child, end: async () => undefined }
  keep(pid)
  let ending: Promise<void> | undefined
  return { child, end: () => (ending ??= endGroup(pid, marker).finally(() => release(pid))) }
}

/**
 * Runs a program to its end, then ends whatever it left behind. Resolves when all are gone. Rejects when the program can't be
 * started, and with what `onBytes` threw.
 */
export function runGroup(program: string, args: string[], options: GroupOptions): Promise<GroupEnd> {
  const { child, end: endAll } = spawnGroup(program, args, { ...options, stdin: 'ignore' })
  const { stdout, stderr } = child
  return new Promise((resolve, reject) => {
    let by: GroupEnd['by'] | undefined
    let bytes = 0
    let broke: { error: Error } | undefined
    const end = (why: GroupEnd['by']): void => {
      if (by !== undefined) return
      by = why
      endAll().catch(reject)
    }
    const onData = (chunk: Buffer): void => {
      bytes += chunk.length
      if (bytes - chunk.length > options.flood_bytes) return end('flood')
      if (broke) return
      try {
        options.onBytes(chunk)
      } catch (error) {
        broke = { error: error instanceof Error ? error : new Error(String(error)) }
        end('abort')
      }
    }
    const onAbort = (): void => end('abort')
    const { timeout_ms } = options
    const timer = timeout_ms === undefined ? undefined : setTimeout(() => end('timeout'), timeout_ms)
    const closed = new Promise<void>((done) => child.once('close', () => done()))
    options.signal.addEventListener('abort', onAbort)
    if (options.signal.aborted) end('abort')
    stdout?.on('data', onData)
    stderr?.on('data', onData)

    const settle = (): void => {
      clearTimeout(timer)
      options.signal.removeEventListener('abort', onAbort)
    }
    child.on('error', (error) => {
      settle()
      if (child.pid === undefined) reject(error)
    })
    child.once('exit', (code, signal) => {
      settle()
      by ??= 'exit'
      const why = by
      endAll()
        .then(() => Promise.race([closed, delay(DRAIN_MS)]))
        .then(() => {
          stdout?.destroy()
          stderr?.destroy()
          if (broke) reject(broke.error)
          else resolve({ code, signal, by: why })
        })
        .catch(reject)
    })
  })
}

async function endGroup(group: number, marker: string): Promise<void> {
  if (!(await signalAll(group, marker, 'SIGTERM'))) return
  if (await gone(group, marker, TERM_GRACE_MS)) return
  // Who forks while it is being killed is found by the next look.
  for (const until = performance.now() + KILL_GRACE_MS; performance.now() < until;) {
    if (!(await signalAll(group, marker, 'SIGKILL'))) return
    await delay(POLL_MS)
  }
}

/** False when nobody is left. */
async function signalAll(group: number, marker: string, signal: NodeJS.Signals): Promise<boolean> {
  const left = await processesOf(group, marker)
  if (left.length === 0) return false
  signalProcess(-group, signal)
  for (const pid of left) signalProcess(pid, signal)
  return true
}

async function gone(group: number, marker: string, within_ms: number): Promise<boolean> {
  for (const until = performance.now() + within_ms; ;) {
    if ((await processesOf(group, marker)).length === 0) return true
    if (performance.now() >= until) return false
    await delay(POLL_MS)
  }
}
