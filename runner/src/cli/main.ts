/**
 * The `baton` command. What there is stands in table.ts; a command is loaded when it is called. Errors are one line: what
 * happened, what to do.
 */
import manifest from '../../package.json' with { type: 'json' }
import { explain, BatonError } from '@baton/shared/errors.ts'
import { noCommand } from './args.ts'
import { helpJson, helpOf, overview } from './help.ts'
import { print } from './output.ts'
import { leaveNpm } from './persons-environment.ts'
import { commandIn } from './table.ts'

async function main(words: readonly string[]): Promise<number> {
  const end = words.indexOf('--')
  const before = end < 0 ? words : words.slice(0, end)
  const asksForHelp = before.some((word) => word === '--help' || word === '-h')
  if (words.length === 0 || words[0] === 'help' || asksForHelp) return help(before)
  if (words[0] === '--version' || words[0] === '-V' || words[0] === 'version') {
    print(words.includes('--json'), { version: manifest.version }, manifest.version)
    return 0
  }
  if (words[0] === COMPLETE) {
    const { complete } = await import('./completion.ts')
    return complete(words.slice(1))
  }
  const found = commandIn(words)
  if (!found) throw noCommand(words)
  const run = await found.command.load()
  return run(found.args)
}

/** Called by the completion scripts of shells. */
const COMPLETE = '__complete'

function help(words: readonly string[]): number {
  const named = words.filter((word) => word !== 'help' && !word.startsWith('-'))
  const found = commandIn(named)
  if (words.includes('--json')) print(true, helpJson(), '')
  else if (found) print(false, null, helpOf(found.name, found.command))
  else if (named.length > 0) throw noCommand(named)
  else print(false, null, overview())
  return words.length === 0 ? 2 : 0
}

/** Codes of errors that another try may heal; see help.ts. */
const AWAY: ReadonlySet<string> = new Set(['offline', 'timeout', 'store-down'])

leaveNpm()

try {
  process.exitCode = await main(process.argv.slice(2))
} catch (error) {
  if (process.env['BATON_DEBUG']) console.error(error)
  if (process.argv.includes('--json')) process.stdout.write(`${JSON.stringify(asJson(error))}\n`)
  else process.stderr.write(`baton: ${inWords(error)}\n`)
  const code = error instanceof BatonError ? error.code : ''
  process.exitCode = code === 'usage' ? 2 : AWAY.has(code) ? 3 : 1
}
// The channel to a parent would keep this process alive.
if (process.connected) process.disconnect()

/** The phone keeps what was typed while offline; a command does not. */
function inWords(error: unknown): string {
  if (!(error instanceof BatonError)) return explain(error)
  if (error.code === 'usage') return `${error.message} ${helpHint()}`
  if (error.code !== 'offline') return explain(error)
  return `The relay can not be reached. ${error.detail} Check that it runs (baton up) and that the network is there.`
}

/** For programs, which asked for JSON and get it also when something is wrong. */
function asJson(error: unknown): { error: { code: string; message: string; todo?: string } } {
  if (!(error instanceof BatonError)) return { error: { code: 'internal', message: explain(error) } }
  return {
    error: {
      code: error.code,
      message: error.message,
      todo: error.code === 'usage' ? helpHint() : error.todo,
    },
  }
}

/** The help of the command that was meant, if there is one. */
function helpHint(): string {
  const found = commandIn(process.argv.slice(2))
  return found ? `See: baton help ${found.name}` : 'See: baton help'
}
