/** What went wrong, as a command says it: one line for people, the same in parts for programs. */
import { BatonError, explain, type ErrorCode } from '@baton/shared/errors.ts'
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
  if (!(error instanceof BatonError)) return { code: 'internal', message: explain(error), todo: '', exit: 1 }
  const { code, detail } = error
  const own = OF_A_COMMAND[code]
  const message = own?.what === undefined ? error.message : `${own.what} ${detail}`.trim()
  if (code === 'usage') return { code, message, todo: helpHint(words), exit: 2 }
  return { code, message, todo: own?.todo ?? error.todo, exit: AWAY.has(code) ? 3 : 1 }
}

/** The help of the command that was meant, if there is one. */
function helpHint(words: readonly string[]): string {
  const found = commandIn(words)
  return found ? `See: baton help ${found.name}` : 'See: baton help'
}
