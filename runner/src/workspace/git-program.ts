/**
 * Runs `git` so that nothing of the user's set-up interferes: no hooks, no global or system settings, no file-system monitor,
 * no prompts, no replacement objects, messages in English (they are read). Never through a shell.
 */
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { statfs } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { setTimeout as delay } from 'node:timers/promises'
import { BatonError } from '@baton/shared/errors.ts'
import { diskError } from '../files/replace.ts'

/** A disk with less room than this counts as full. */
const FULL_BYTES = 1 << 20

export interface GitOptions {
  cwd: string
  /** Added to the environment. */
  env?: Record<string, string>
  input?: string | Uint8Array | Readable
  /** Takes the output, piece by piece, each awaited; `stdout` of the result is then empty. What it throws ends git. */
  sink?: (piece: Uint8Array) => Promise<void>
  /** Milliseconds after which git is killed. */
  timeout_ms?: number
  /** Bytes of output after which git is ended and the result is marked `cut`. */
  max_bytes?: number
  /** Ends git. */
  signal?: AbortSignal
  /** Gets git's complaints, also when it succeeded. */
  warned?: (words: string) => void
}

export interface GitResult {
  code: number
  stdout: Buffer
  stderr: string
  cut: boolean
}

const SETTINGS = [
  'core.hooksPath=/dev/null',
  'core.fsmonitor=false',
  'core.untrackedCache=false',
  'core.quotePath=false',
  'core.pager=cat',
  'safe.directory=*',
  'gc.auto=0',
  'maintenance.auto=false',
  // Large files are streamed, never held in memory.
  'core.bigFileThreshold=32m',
  'pack.windowMemory=128m',
].flatMap((setting) => ['-c', setting])

/**
 * For git in a folder where an agent may have made a repository of its own: a lacking object would be fetched from a remote that
 * is a program (`uploadpack`, `ext::`).
 */
export const OFFLINE = { GIT_ALLOW_PROTOCOL: 'none', GIT_NO_LAZY_FETCH: '1', GIT_OPTIONAL_LOCKS: '0' }

const TIMEOUT_MS = 120_000
const STDERR_BYTES = 64 << 10
const LOCK_TRIES = 8
const LOCK_WAIT_MS = 50

/** The runner's environment without what would point git elsewhere. */
export function gitEnvironment(): Record<string, string> {
  const env: Record<string, string> = {}
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && !/^(GIT_|BATON_|ANTHROPIC_)/.test(name)) env[name] = value
  }
  return env
}

function hardenedEnvironment(): Record<string, string> {
  return {
    ...gitEnvironment(),
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_TERMINAL_PROMPT: '0',
    GIT_NO_REPLACE_OBJECTS: '1',
    LC_ALL: 'C',
  }
}

export class GitProgram {
  readonly #program: string

  /** `program`: path or name of the git executable. */
  constructor(program = 'git') {
    this.#program = program
  }

  /**
   * Runs git to its end and returns what it said, whatever its exit code. A lock held by another git is waited for.
   * Throws BatonError `workspace-missing` (no such cwd), `disk-full`, `stopped`, `internal` (no git, time-out).
   */
  async run(args: string[], options: GitOptions): Promise<GitResult> {
    for (let attempt = 1; ; attempt++) {
      const result = await this.#once(args, options)
      if (result.code === 0 || result.cut) return result
      if (
        /No space left on device|Disk quota exceeded|File too large/i.test(result.stderr) ||
        (await isFull(result, options))
      ) {
        throw new BatonError('disk-full', `(git ${subcommand(args)} in ${options.cwd})`)
      }
      const locked = /(\.lock': File exists|cannot lock ref|Unable to create '.*\.lock')/.test(result.stderr)
      if (!locked || attempt === LOCK_TRIES) return result
      await delay(LOCK_WAIT_MS * attempt)
    }
  }

  /** Runs git and returns its output. Throws as `run` does, and `internal` with git's words when it fails. */
  async bytes(args: string[], options: GitOptions): Promise<Buffer> {
    const result = await this.run(args, options)
    if (result.code !== 0) throw failure(args, result)
    if (result.stderr !== '') options.warned?.(result.stderr)
    return result.stdout
  }

  /** As `bytes`: UTF-8 text without the final newline. */
  async text(args: string[], options: GitOptions): Promise<string> {
    return (await this.bytes(args, options)).toString('utf8').replace(/\n$/, '')
  }

  #once(args: string[], options: GitOptions): Promise<GitResult> {
    return new Promise((resolve, reject) => {
      const child = spawn(this.#program, [...SETTINGS, ...args], {
        cwd: options.cwd,
        env: { ...hardenedEnvironment(), ...options.env },
        stdio: ['pipe', 'pipe', 'pipe'],
        // Ctrl-C goes to the whole foreground group; the checkpoint of a runner that ends must not die of it.
        detached: true,
      })
      const out: Buffer[] = []
      const err: Buffer[] = []
      let outBytes = 0
      let errBytes = 0
      let ended: 'cut' | 'timeout' | 'stopped' | undefined
      const end = (why: 'cut' | 'timeout' | 'stopped'): void => {
        ended ??= why
        child.kill('SIGKILL')
      }
      const onAbort = (): void => end('stopped')
      const timer = setTimeout(() => end('timeout'), options.timeout_ms ?? TIMEOUT_MS)
      if (options.signal?.aborted) end('stopped')
      options.signal?.addEventListener('abort', onAbort)
      const settle = (): void => {
        clearTimeout(timer)
        options.signal?.removeEventListener('abort', onAbort)
      }

      child.on('error', (cause: NodeJS.ErrnoException) => {
        settle()
        if (!existsSync(options.cwd)) reject(new BatonError('workspace-missing', options.cwd))
        else if (cause.code === 'ENOENT')
          reject(new BatonError('internal', `The program git is not installed.`))
        else reject(new BatonError('internal', `git could not start: ${cause.message}`, { cause }))
      })
      // With too many open files there are no pipes; the error follows.
      if (!(child.stdout as Readable | undefined)) return

      const { sink } = options
      let sunk: Promise<void> = Promise.resolve()
      let broke: { error: unknown } | undefined
      child.stdout.on('data', (chunk: Buffer) => {
        if (ended === 'cut') return
        if (sink) {
          child.stdout.pause()
          sunk = sink(chunk).then(
            () => void child.stdout.resume(),
            (error: unknown) => {
              broke ??= { error }
              child.stdout.resume()
              end('cut')
            },
          )
          return
        }
        out.push(chunk)
        outBytes += chunk.length
        if (outBytes > (options.max_bytes ?? Infinity)) end('cut')
      })
      child.stderr.on('data', (chunk: Buffer) => {
        if (errBytes < STDERR_BYTES) err.push(chunk)
        errBytes += chunk.length
      })
      // A git that ends early closes its input; its exit code tells the story.
      child.stdin.on('error', () => {})
      const { input = '' } = options
      if (typeof input === 'string' || input instanceof Uint8Array) child.stdin.end(input)
      else {
        input.on('error', (error: unknown) => {
          broke ??= { error }
          end('cut')
        })
        input.pipe(child.stdin)
      }
      const finish = async (code: number | null, killed: NodeJS.Signals | null): Promise<void> => {
        settle()
        if (typeof input !== 'string' && !(input instanceof Uint8Array)) input.destroy()
        await sunk
        if (broke) reject(diskError(broke.error))
        else if (killed === 'SIGXFSZ') {
          reject(new BatonError('disk-full', `(git ${subcommand(args)} in ${options.cwd})`))
        } else if (ended === 'stopped') reject(new BatonError('stopped'))
        else if (ended === 'timeout') {
          reject(new BatonError('internal', `git ${subcommand(args)} did not end in time.`))
        } else {
          resolve({
            code: code ?? 1,
            stdout: Buffer.concat(out),
            stderr: Buffer.concat(err).toString('utf8'),
            cut: ended === 'cut',
          })
        }
      }
      child.on('close', (code, killed) => void finish(code, killed).catch(reject))
    })
  }
}

/** What git complained about, as an error for a person. */
export function failure(args: string[], result: GitResult): BatonError {
  const words = result.stderr
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('hint:'))
    .slice(-3)
    .join(' ')
  return new BatonError('internal', `git ${subcommand(args)} failed: ${words || `exit code ${result.code}`}`)
}

function subcommand(args: string[]): string {
  return args.find((arg) => /^[a-z]/.test(arg)) ?? ''
}

/** Git often says only that it could not write; the disk tells why. */
async function isFull({ stderr }: GitResult, { cwd }: GitOptions): Promise<boolean> {
  if (!/(unable|failed|could not|cannot) to? ?(write|create|store)/i.test(stderr)) return false
  const disk = await statfs(cwd).catch(() => undefined)
  return disk !== undefined && disk.bavail * disk.bsize < FULL_BYTES
}
