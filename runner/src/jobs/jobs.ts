/**
 * Commands of a session that run in the background, for as long as the session stays on this runner.
 *
 *     <data>/jobs/<sid>/<id>.log, .log.1    the newest output
 *     <data>/jobs/<sid>/<id>.json           what became of it, for when the session comes back
 *
 * An id names the stay and the runner (`job-2-k7qf@laptop`), so that wherever the session goes it can be told what became of it.
 */
import { randomInt } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import { replaceWholeSync } from '../files/replace.ts'
import { runGroup, type GroupEnd } from '../tools/process-group.ts'
import { JobLog, type LogPart } from './log.ts'

const RUNNING_MAX = 8
/** Logs of ended jobs that are kept, and for how long. */
const KEPT_MAX = 16
const KEPT_MS = 7 * 24 * 3600_000
/** More output than this in all ends a job: its log turns over faster than anybody can read. */
const FLOOD_BYTES = 1 << 30

const Record = v.object({
  id: v.string(),
  command: v.string(),
  started: v.number(),
  bytes: v.number(),
  /** Output after these bytes could not be kept: why. */
  cut: v.optional(v.string()),
  state: v.variant('at', [
    v.object({ at: v.literal('running') }),
    v.object({
      at: v.literal('ended'),
      code: v.nullable(v.number()),
      signal: v.nullable(v.string()),
      /** `left`: the session left this runner, or the runner ended. */
      by: v.picklist(['exit', 'stopped', 'flood', 'left', 'failed']),
      took_ms: v.number(),
    }),
  ]),
})
export type JobRecord = v.InferOutput<typeof Record>

interface Job {
  record: JobRecord
  log: JobLog
  controller: AbortController
  over: Promise<void>
}

/** `elsewhere`: its session left the runner of that name, and the job ended there. */
export type Found = { at: 'here'; record: JobRecord } | { at: 'elsewhere'; runner: string } | undefined

export class Jobs {
  readonly #folder: string
  readonly #runner: string
  readonly #stay = Array.from({ length: 4 }, () => randomInt(36).toString(36)).join('')
  readonly #jobs = new Map<string, Job>()
  #count = 0
  #isOver = false

  /** `folder`: of this session's jobs; made when the first one starts. `runner`: the name of this runner. */
  constructor(folder: string, runner: string) {
    this.#folder = folder
    this.#runner = runner.replaceAll(/[^A-Za-z0-9._-]+/g, '-').slice(0, 40) || 'runner'
  }

  get running(): number {
    return this.#inState('running').length
  }

  /** Undefined when there are too many already. Throws when the command can't be started. */
  start(
    command: string,
    how: { program: string; args: string[]; cwd: string; env: { [name: string]: string } },
  ): JobRecord | undefined {
    if (this.#isOver || this.running >= RUNNING_MAX) return undefined
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
    this.#prune()
    const id = `job-${++this.#count}-${this.#stay}@${this.#runner}`
    const record: JobRecord = { id, command, started: Date.now(), bytes: 0, state: { at: 'running' } }
    const log = new JobLog(this.#file(id, 'log'))
    log.append(new Uint8Array())
    const controller = new AbortController()
    const over = runGroup(how.program, how.args, {
      ...{ cwd: how.cwd, env: how.env, flood_bytes: FLOOD_BYTES, signal: controller.signal },
      onBytes: (chunk) => log.append(chunk),
    }).then(
      (end) => this.#ended(id, end),
      () => this.#ended(id, undefined),
    )
    const job = { record, log, controller, over }
    this.#jobs.set(id, job)
    this.#save(job)
    return record
  }

  /** All that is known here, the oldest first. */
  list(): JobRecord[] {
    return Array.from(this.#jobs.values(), (job) => current(job))
  }

  find(id: string): Found {
    const job = this.#jobs.get(id)
    if (job) return { at: 'here', record: current(job) }
    const [, runner] = /^job-\d+-[a-z0-9]{4}@([A-Za-z0-9._-]{1,40})$/.exec(id) ?? []
    if (runner === undefined) return undefined
    const record = this.#recall(id)
    return record ? { at: 'here', record } : { at: 'elsewhere', runner }
  }

  /** Output from a place on; without one the newest `max_bytes`. Undefined when there is no such job here. */
  output(id: string, offset: number | undefined, max_bytes: number): LogPart | undefined {
    const found = this.find(id)
    if (found?.at !== 'here') return undefined
    const { record } = found
    const log = this.#jobs.get(id)?.log ?? JobLog.reopen(this.#file(id, 'log'), record.bytes)
    const from = offset ?? Math.max(0, log.bytes - max_bytes)
    return log.read(from, max_bytes, record.state.at === 'ended')
  }

  /** Resolves when the job has ended, or at the time-out, or when the signal aborts. */
  async wait(id: string, timeout_ms: number, signal: AbortSignal): Promise<void> {
    const job = this.#jobs.get(id)
    if (!job || job.record.state.at === 'ended') return
    const done = new AbortController()
    const limit = new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, timeout_ms)
      const stop = (): void => {
        clearTimeout(timer)
        resolve()
      }
      signal.addEventListener('abort', stop, { signal: done.signal })
      done.signal.addEventListener('abort', stop)
    })
    await Promise.race([job.over, limit])
    done.abort()
  }

  async stop(id: string): Promise<void> {
    const job = this.#jobs.get(id)
    job?.controller.abort('stopped')
    await job?.over
  }

  /** The session leaves: every job ends, and none starts any more. */
  async end(): Promise<void> {
    this.#isOver = true
    for (const { controller } of this.#jobs.values()) controller.abort('left')
    await Promise.all(Array.from(this.#jobs.values(), ({ over }) => over))
  }

  #inState(at: JobRecord['state']['at']): Job[] {
    return [...this.#jobs.values()].filter(({ record }) => record.state.at === at)
  }

  #ended(id: string, end: GroupEnd | undefined): void {
    const job = this.#jobs.get(id)
    if (!job) return
    const { controller, record } = job
    const aborted = controller.signal.reason === 'left' ? 'left' : 'stopped'
    const by = !end ? 'failed' : end.by === 'abort' ? aborted : end.by === 'flood' ? 'flood' : 'exit'
    const { code = null, signal = null } = end ?? {}
    job.record = {
      ...current(job),
      state: { at: 'ended', code, signal, by, took_ms: Date.now() - record.started },
    }
    this.#save(job)
  }

  /** On a full disk a later stay does not know the job; this one does. */
  #save({ record }: Job): void {
    try {
      replaceWholeSync(this.#file(record.id, 'json'), JSON.stringify(record), { sync: 'none' })
    } catch {
      rmSync(this.#file(record.id, 'json'), { force: true })
    }
  }

  /** What an earlier stay here left. One that still counts as running died with its runner. */
  #recall(id: string): JobRecord | undefined {
    try {
      const record = v.parse(Record, JSON.parse(readFileSync(this.#file(id, 'json'), 'utf8')))
      if (record.state.at === 'ended') return record
      const sizes = ['log', 'log.1'].map(
        (end) => statSync(this.#file(id, end), { throwIfNoEntry: false })?.size ?? 0,
      )
      const bytes = sizes.reduce((sum, size) => sum + size, 0)
      return { ...record, bytes, state: { at: 'ended', code: null, signal: null, by: 'left', took_ms: 0 } }
    } catch {
      return undefined
    }
  }

  /** Keeps the newest logs of what has ended. */
  #prune(): void {
    const running = new Set(this.#inState('running').map(({ record }) => record.id))
    const ids = readdirSync(this.#folder)
      .filter((name) => name.endsWith('.json') && !running.has(name.slice(0, -5)))
      .map((name) => ({ id: name.slice(0, -5), at: statSync(join(this.#folder, name)).mtimeMs }))
      .toSorted((a, b) => b.at - a.at)
    for (const { id } of ids.slice(KEPT_MAX)) {
      this.#jobs.delete(id)
      for (const end of ['json', 'log', 'log.1']) rmSync(this.#file(id, end), { force: true })
    }
  }

  #file(id: string, end: string): string {
    return join(this.#folder, `${id}.${end}`)
  }
}

function current({ record, log }: Job): JobRecord {
  return { ...record, bytes: log.bytes, ...(log.cut === undefined ? {} : { cut: log.cut }) }
}

/** Removes logs of sessions that have not been here for a week. `folder`: `<data>/jobs`. */
export function sweepJobs(folder: string, now = Date.now()): void {
  let names: string[] = []
  try {
    names = readdirSync(folder)
  } catch {
    return
  }
  for (const name of names) {
    const path = join(folder, name)
    if (now - statSync(path).mtimeMs > KEPT_MS) rmSync(path, { recursive: true, force: true })
  }
}
