import { existsSync } from 'node:fs'
import * as v from 'valibot'
import { BatonError } from '@baton/shared/errors.ts'
import type { ToolResult } from '@baton/shared/guest.ts'
import { defineTool, Refusal } from './define.ts'
import { runGroup, type GroupEnd } from './process-group.ts'
import { HeadAndTail } from './text.ts'

const TIMEOUT_MS = 120_000
const TIMEOUT_MS_MAX = 600_000
const FLOOD_BYTES = 64 << 20

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
})

export const bash = defineTool({
  name: 'bash',
  description: `Runs a command line with bash in the root of the workspace and returns its output (stdout and stderr together) and, if it failed, its exit code.
Each call is a new shell: cd, variables and shell options do not carry over; join steps with &&. There is no terminal and no input, so use non-interactive flags.
When the call ends, every process that it started is ended too: background servers do not survive; start, use and stop them within one call.
Long output is cut in the middle; pipe it through head, tail or grep, or write it to a file and read that in parts.
A run is never repeated: if the runner is interrupted meanwhile, you are told so, and the command may have run in part. Look at the state of things before running it again.
Use read, write, edit, glob and grep instead of cat, sed, find and grep where they do.`,
  replay: 'never',
  access: 'run',
  input: Input,
  async run({ command, timeout_ms = TIMEOUT_MS }, context) {
    if (command.includes('\0'))
      throw new Refusal("The command contains a NUL character. Use $'\\0' or printf instead.")
    if (!existsSync(context.root)) throw new BatonError('workspace-missing', context.root)
    const output = new HeadAndTail()
    const decoder = new TextDecoder()
    let bytes = 0
    const take = (text: string): void => {
      if (text === '') return
      output.add(text)
      context.onOutput?.(text)
    }
    // Both streams through one pipe keep their order. The outer shell is replaced by the inner one.
    const end = await runGroup('bash', ['-c', 'exec bash -c "$0" 2>&1', command], {
      cwd: context.root,
      env: commandEnvironment(process.env),
      timeout_ms,
      flood_bytes: FLOOD_BYTES,
      signal: context.signal,
      onBytes: (chunk) => {
        bytes += chunk.length
        take(decoder.decode(chunk, { stream: true }))
      },
    })
    take(decoder.decode())
    if (end.by === 'abort') throw new BatonError('stopped')
    return resultOf(output, end, bytes, timeout_ms)
  },
})

function resultOf(output: HeadAndTail, end: GroupEnd, bytes: number, timeout_ms: number): ToolResult {
  const notes: string[] = []
  if (end.by === 'timeout') {
    notes.push(`Ended after ${timeout_ms} ms: it took too long. Give a longer timeout_ms or do less at once.`)
  } else if (end.by === 'flood') {
    notes.push(`Ended: it wrote more than ${FLOOD_BYTES >> 20} MB. Write to a file or filter the output.`)
  } else if (end.signal) notes.push(`Ended by signal ${end.signal}.`)
  else if (end.code !== 0) notes.push(`Exit code ${end.code}.`)
  const body = output.toString()
  const text = [body.replace(/\n$/, ''), ...notes.map((note) => `[${note}]`)].filter((part) => part !== '')
  return {
    text: text.length > 0 ? text.join('\n') : '(no output)',
    is_error: notes.length > 0,
    detail: { exit_code: end.code, signal: end.signal, ended_by: end.by, bytes, cut: output.cut },
  }
}

/** The runner's environment without its secrets and without what presumes a terminal. */
export function commandEnvironment(env: NodeJS.ProcessEnv): Record<string, string> {
  const kept: Record<string, string> = {}
  for (const [name, value] of Object.entries(env)) {
    if (value === undefined || /^(ANTHROPIC_|BATON_)/.test(name)) continue
    // Set inside a git hook or by `git` itself, they would point commands at another repository.
    if (/^GIT_(DIR|WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|PREFIX|COMMON_DIR)$/.test(name)) continue
    if (name === 'BASH_ENV' || name === 'PROMPT_COMMAND') continue
    kept[name] = value
  }
  return { ...kept, TERM: 'dumb', PAGER: 'cat', GIT_PAGER: 'cat', GIT_TERMINAL_PROMPT: '0', NO_COLOR: '1' }
}
