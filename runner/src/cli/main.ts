/**
 * The `baton` command. What there is stands in table.ts; a command is loaded when it is called. Errors are one line: what
 * happened, what to do.
 */
import manifest from '../../package.json' with { type: 'json' }
import { noCommand } from './args.ts'
import { helpJson, helpOf, overview } from './help.ts'
import { print } from './output.ts'
import { leaveNpm } from './persons-environment.ts'
import { mindReaders } from './streams.ts'
import { commandIn } from './table.ts'
import { lineOf, wrongOf } from './wrong.ts'

async function main(words: readonly string[]): Promise<number> {
  const before = flagsIn(words)
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

/** What may be a flag: behind `--` nothing is. */
function flagsIn(words: readonly string[]): readonly string[] {
  const end = words.indexOf('--')
  return end < 0 ? words : words.slice(0, end)
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

leaveNpm()

const words = process.argv.slice(2)
mindReaders(commandIn(words)?.command.keepsOn === true)
try {
  process.exitCode = await main(words)
} catch (error) {
  if (process.env['BATON_DEBUG']) console.error(error)
  const { exit, ...wrong } = wrongOf(error, words)
  if (flagsIn(words).includes('--json')) print(true, { error: wrong }, '')
  else process.stderr.write(`baton: ${lineOf(wrong)}\n`)
  process.exitCode = exit
}
// The channel to a parent would keep this process alive.
if (process.connected) process.disconnect()
