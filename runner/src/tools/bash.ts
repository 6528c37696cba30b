import { existsSync } from 'node:fs'
import * as v from 'valibot'
import { BatonError, explain } from '@baton/shared/errors.ts'
import { defineTool, Refusal } from './define.ts'
import { commandEnvironment } from './environment.ts'
import { runGroup, type GroupEnd } from './process-group.ts'
import { HeadAndTail } from './text.ts'
import type { CallPlace, ToolAnswer, ToolContext } from './tool.ts'

const TIMEOUT_MS = 120_000
const TIMEOUT_MS_MAX = 600_000
const FLOOD_BYTES = 64 << 20
const NO_JOBS = 'There are no background jobs here: run it without background.'

const Input = v.strictObject({
  command: v.pipe(v.string(), v.minLength(1), v.description('The command line, run by bash.')),
  timeout_ms: v.optional(
    v.pipe(
      v.number(),
      v.integer(),
      v.minValue(1),
      v.maxValue(TIMEOUT_MS_MAX),
      v.description(
        `Milliseconds after which it is ended. Default ${TIMEOUT_MS}, at most ${TIMEOUT_MS_MAX}.`,
      ),
    ),
  ),
  background: v.optional(
    v.pipe(
      v.boolean(),
      v.description(
        'Start it and go on at once: for servers and watchers. Gives the id of a job; see the tool job.',
      ),
    ),
  ),
})

export const bash = defineTool({
  name: 'bash',
  description: `Runs a command line with bash in the root of the workspace and returns its output (stdout and stderr together) and, if it failed, its exit code.
Each call is a new shell: cd, variables and shell options do not carry over; join steps with &&. There is no terminal and no input, so use non-interactive flags.
When the call ends, every process that it started is ended too, daemons included. For what has to go on, say a server, set background.
Long output is cut in the middle; pipe it through head, tail or grep, or write it to a file and read that in parts.
A run is never repeated: if the runner is interrupted meanwhile, you are told so, and the command may have run in part. Look at the state of things before running it again.
Use read, write, edit, glob and grep instead of cat, sed, find and grep where they do.`,
  replay: 'never',
  access: 'run',
  input: Input,
  check({ command, timeout_ms, background = false }, place) {
    if (command.includes('\0'))
      throw new Refusal("The command contains a NUL character. Use $'\\0' or printf instead.")
    if (!command.isWellFormed())
      throw new Refusal('The command contains half of a surrogate pair (a broken emoji). Send it without.')
    if (background && timeout_ms !== undefined)
      throw new Refusal('A job has no time-out: leave out timeout_ms, or background.')
    if (!place) return
    if (background && !place.stay?.jobs) throw new Refusal(NO_JOBS)
    enclosed(place, 'true', [])
  },
  async run({ command, timeout_ms, background = false }, context) {
    if (!existsSync(context.root)) throw new BatonError('workspace-missing', context.root)
    // Both streams through one pipe keep their order. The outer shell is replaced by the inner one.
    const args = ['-c', 'exec bash -c "$0" 2>&1', command]
    const how = enclosed(context, 'bash', args)
    if (!background) return runNow(how, timeout_ms ?? TIMEOUT_MS, context)
    return startJob(command, how, context)
  },
})

interface How {
  program: string
  args: string[]
}

/** Throws Refusal when a sandbox is wanted and not there: a command never runs without it instead. */
function enclosed({ stay }: CallPlace, program: string, args: string[]): How {
  try {
    return stay?.enclosure?.wrap(program, args) ?? { program, args }
  } catch (error) {
    if (error instanceof BatonError && error.code === 'sandbox-missing')
      throw new Refusal(explain(error), error.code)
    throw error
  }
}

function environmentOf({ stay }: ToolContext): Record<string, string> {
  return stay?.env ?? commandEnvironment(process.env)
}

async function runNow(how: How, timeout_ms: number, context: ToolContext): Promise<ToolAnswer> {
  const output = new HeadAndTail()
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  const valid = new ValidUtf8()
  let bytes = 0
  const take = (text: string): void => {
    if (text === '') return
    output.add(text)
    context.onOutput?.(text)
  }
  const end = await runGroup(how.program, how.args, {
    ...{ cwd: context.root, env: environmentOf(context), timeout_ms, flood_bytes: FLOOD_BYTES },
    signal: context.signal,
    onBytes: (chunk) => {
      bytes += chunk.length
      valid.add(chunk)
      take(decoder.decode(chunk, { stream: true }))
    },
  })
  take(decoder.decode())
  if (end.by === 'abort') throw new BatonError('stopped')
  return resultOf(output, end, { bytes, isText: valid.isValid() }, timeout_ms)
}

function startJob(command: string, how: How, context: ToolContext): ToolAnswer {
  const { root, stay } = context
  if (!stay?.jobs) throw new Refusal(NO_JOBS)
  const job = stay.jobs.start(command, { ...how, cwd: root, env: environmentOf(context) })
  if (!job) throw new Refusal('Too many jobs are running. Stop one with the tool job first.', 'too-many')
  const text = `Started in the background as ${job.id}. Look at its output with the tool job. It ends when it is stopped or the session leaves this machine.`
  return { text, is_error: false, detail: { job: job.id } }
}

/** Whether bytes are UTF-8 as a whole, told piece by piece. */
class ValidUtf8 {
  readonly #decoder = new TextDecoder('utf-8', { fatal: true })
  #isBroken = false

  add(chunk: Uint8Array): void {
    if (!this.#isBroken) this.#decode(() => this.#decoder.decode(chunk, { stream: true }))
  }

  isValid(): boolean {
    if (!this.#isBroken) this.#decode(() => this.#decoder.decode())
    return !this.#isBroken
  }

  #decode(decode: () => string): void {
    try {
      decode()
    } catch {
      this.#isBroken = true
    }
  }
}

function resultOf(
  output: HeadAndTail,
  end: GroupEnd,
  { bytes, isText }: { bytes: number; isText: boolean },
  timeout_ms: number,
): ToolAnswer {
  const notes: string[] = []
  if (end.by === 'timeout') {
    notes.push(`Ended after ${timeout_ms} ms: it took too long. Give a longer timeout_ms or do less at once.`)
  } else if (end.by === 'flood') {
    notes.push(`Ended: it wrote more than ${FLOOD_BYTES >> 20} MB. Write to a file or filter the output.`)
  } else if (end.signal) notes.push(`Ended by signal ${end.signal}.`)
  else if (end.code !== 0) notes.push(`Exit code ${end.code}.`)
  const isError = notes.length > 0
  if (!isText) notes.push('Not all of it is UTF-8: other bytes are shown as \ufffd. See them with xxd.')
  const body = output.toString()
  const text = [body.replace(/\n$/, ''), ...notes.map((note) => `[${note}]`)].filter((part) => part !== '')
  return {
    text: text.length > 0 ? text.join('\n') : '(no output)',
    is_error: isError,
    detail: { exit_code: end.code, signal: end.signal, ended_by: end.by, bytes, cut: output.cut },
  }
}
