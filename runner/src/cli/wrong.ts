/** What went wrong, as a command says it: one line for people, the same in parts for programs. */
import { BatonError, type ErrorCode } from '@baton/shared/errors.ts'
import { diskError } from '../files/replace.ts'
import { systemCode, systemWords } from '../files/words.ts'
import { commandIn } from './table.ts'

export interface Wrong {
  code: ErrorCode
  message: string
  todo: string
  exit: 1 | 2 | 3
}

/** The phone keeps what was typed and tries again; a command does neither, and has failed. Others words than in the table of errors. */
const OF_A_COMMAND: { readonly [C in ErrorCode]?: { what?: string; todo: string } } = {
  offline: {
    what: 'The relay can not be reached.',
    todo: 'Check that it runs (baton up) and that the network is there, then try again.',
  },
  timeout: { todo: 'Whether it took effect is not known: see baton ls. Check the network.' },
  'store-down': { todo: 'Check that Redis runs, then try again.' },
}

/** Codes of errors that another try may heal. */
const AWAY: ReadonlySet<ErrorCode> = new Set(['offline', 'timeout', 'store-down'])

/** `words`: the command line, for the help that is meant. */
export function wrongOf(error: unknown, words: readonly string[]): Wrong {
  const known = coded(error)
  const { code, detail } = known
  // What is wrong with the command line says more than that it is wrong.
  if (code === 'usage') return { code, message: detail || known.message, todo: helpHint(words), exit: 2 }
  const own = OF_A_COMMAND[code]
  const message = own?.what === undefined ? known.message : `${own.what} ${detail}`.trim()
  return { code, message, todo: own?.todo ?? known.todo, exit: AWAY.has(code) ? 3 : 1 }
}

/** What went wrong, in one line for people. */
export function lineOf({ message, todo }: Pick<Wrong, 'message' | 'todo'>): string {
  return `${message} ${todo}`.trim()
}

const NETWORK: ReadonlySet<unknown> = new Set([
  ...['ECONNREFUSED', 'ECONNRESET', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND', 'ETIMEDOUT'],
])

/** What nobody foresaw, as an error of the table: the system's refusals are the person's to mend, the rest is ours. */
function coded(error: unknown): BatonError {
  const cause = diskError(error)
  if (cause instanceof BatonError) return cause
  const { path, syscall = '' } = cause as NodeJS.ErrnoException
  const code = systemCode(cause)
  if (code !== undefined && syscall.startsWith('spawn')) {
    const todo = 'Install it, or check the PATH.'
    return new BatonError('internal', `The program ${path} can not be started: ${systemWords(cause)}.`, {
      cause,
      todo,
    })
  }
  if (NETWORK.has(code)) return new BatonError('offline', `(${code})`, { cause })
  if (code !== undefined && path !== undefined) {
    return new BatonError('file-unusable', `${path}: ${systemWords(cause)}.`, { cause })
  }
  const todo = 'Report it as a bug, with what it prints when BATON_DEBUG=1 is set.'
  return new BatonError('internal', `(${systemWords(cause)})`, { cause, todo })
}

/** The help of the command that was meant, if there is one. */
function helpHint(words: readonly string[]): string {
  const found = commandIn(words)
  return found ? `See: baton help ${found.name}` : 'See: baton help'
}
