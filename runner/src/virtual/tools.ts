/** The tools of a virtual workspace: those of any other, with a shell that reaches nothing but the session's files. */
import * as v from 'valibot'
import { BatonError } from '@baton/shared/errors.ts'
import type { Replay } from '@baton/shared/guest.ts'
import { defineTool, Refusal } from '../tools/define.ts'
import { edit } from '../tools/edit.ts'
import { fetch } from '../tools/fetch.ts'
import { glob } from '../tools/glob.ts'
import { grep } from '../tools/grep.ts'
import { read } from '../tools/read.ts'
import { bounded } from '../tools/text.ts'
import type { Tool, ToolAnswer } from '../tools/tool.ts'
import { write } from '../tools/write.ts'
import { VirtualFiles } from './files.ts'
import { ROOT } from './root.ts'
import type { Ran } from './shell.ts'
import { TREE_BYTES_MAX } from './tree.ts'
import type { VirtualKind } from './workspace.ts'

const TIMEOUT_MS = 60_000
const TIMEOUT_MS_MAX = 300_000

/**
 * A command that was cut off left no trace in files that are stored together with its outcome, and nothing else can be changed by
 * it: so it may be run again. Scratch files are gone with the runner that was cut off, so that would be another run.
 */
const REPLAY: Record<VirtualKind, Replay> = { virtual: 'safe', scratch: 'never' }

/** In the order of the built-in tools. */
export function virtualTools(kind: VirtualKind): Tool[] {
  return [bashOf(kind), read, write, edit, glob, grep, fetch]
}

function bashOf(kind: VirtualKind): Tool {
  return defineTool({
    name: 'bash',
    description: `Runs a command line on the files of the session, by a small bash that is part of the agent: the usual text tools (cat, grep, sed, awk, sort, jq, find, tar …), no other programs, no git, no network, no machine behind it.
Each call is a new shell in ${ROOT}; variables do not carry over. Only files under ${ROOT} are kept, at most ${TREE_BYTES_MAX >> 20} MB in all; background jobs do not exist.
A command that is ended, by its time-out say, leaves the files as they were.`,
    replay: REPLAY[kind],
    access: 'run',
    input: v.strictObject({
      command: v.pipe(v.string(), v.minLength(1), v.description('The command line.')),
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
    }),
    check({ command }) {
      if (command.includes('\0') || !command.isWellFormed())
        throw new Refusal(
          'The command contains a NUL character or half of a surrogate pair. Send it without.',
        )
    },
    async run({ command, timeout_ms = TIMEOUT_MS }, { stay, signal, onOutput }) {
      const files = stay?.files
      if (!(files instanceof VirtualFiles)) throw new BatonError('internal', '(no files in this session)')
      const ran = await files.change(() => files.run(command, timeout_ms, signal))
      const answer = answerOf(ran, timeout_ms)
      onOutput?.(answer.text)
      return answer
    },
  })
}

function answerOf(ran: Ran, timeout_ms: number): ToolAnswer {
  if (ran.by === 'abort') throw new BatonError('stopped')
  if (ran.by !== 'exit') {
    const why =
      ran.by === 'timeout'
        ? `Ended after ${timeout_ms} ms: it took too long`
        : `The shell failed: ${ran.words}`
    return { text: `[${why}. The files are as before it.]`, is_error: true, detail: { ended_by: ran.by } }
  }
  const body = ran.output.toWellFormed().replace(/\n$/, '')
  const parts = ran.code === 0 ? [body] : [body, `[Exit code ${ran.code}.]`]
  const text = parts.filter((part) => part !== '').join('\n')
  return {
    text: text === '' ? '(no output)' : bounded(text),
    is_error: ran.code !== 0,
    detail: { exit_code: ran.code },
  }
}
