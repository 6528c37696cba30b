/** Command lines of the programs in this folder: a wrong one ends with words and exit code 2, `--help` with 0. */
import { parseArgs, type ParseArgsConfig } from 'node:util'

type Options = NonNullable<ParseArgsConfig['options']>
type Parsed<O extends Options> = ReturnType<typeof parseArgs<{ allowPositionals: true; options: O }>>

/** What is wrong with a command line, in words. */
export class WrongLine extends Error {}

/** Whole numbers, as `--name` takes them. Throws WrongLine. */
export function wholeNumber(name: string, text: string, least = 1): number {
  const value = Number(text)
  if (text !== '' && Number.isSafeInteger(value) && value >= least) return value
  throw new WrongLine(`--${name} takes whole numbers from ${least} on, not ${JSON.stringify(text)}.`)
}

/** One of these words. Throws WrongLine. */
export function oneOf<T extends string>(what: string, text: string | undefined, words: readonly T[]): T {
  const found = words.find((word) => word === text)
  if (found !== undefined) return found
  const wrong = text === undefined ? `Which ${what}?` : `There is no ${what} ${JSON.stringify(text)}.`
  throw new WrongLine(`${wrong} There are: ${words.join(', ')}.`)
}

/** Runs a program. Returns its exit code. `usage`: what `--help` prints. Rejects with what `run` throws, but for WrongLine. */
export async function runProgram<const O extends Options>(
  { args, usage, options }: { args: string[]; usage: string; options: O },
  run: (parsed: Parsed<O>) => Promise<number>,
): Promise<number> {
  try {
    if (args.includes('--help') || args.includes('-h')) {
      console.log(usage)
      return 0
    }
    return await run(parse(args, options))
  } catch (error) {
    if (!(error instanceof WrongLine)) throw error
    console.error(`${error.message}\n\n${usage}`)
    return 2
  }
}

function parse<const O extends Options>(args: string[], options: O): Parsed<O> {
  try {
    return parseArgs({ args, allowPositionals: true, options })
  } catch (error) {
    // Node's advice on words that begin with a dash is not for here.
    const [words = ''] = error instanceof Error ? error.message.split('. ') : []
    throw new WrongLine(`${words.replace(/\.$/, '')}.`)
  }
}
