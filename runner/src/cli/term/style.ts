/** Styles by name, as the sequences of ECMA-48. Colours are the terminal's own sixteen, so that its theme decides. */
import type { Line } from './text.ts'

const SGR: Record<string, string> = {
  bold: '1',
  dim: '2',
  italic: '3',
  underline: '4',
  inverse: '7',
  strike: '9',
  red: '31',
  green: '32',
  yellow: '33',
  blue: '34',
  magenta: '35',
  cyan: '36',
}
const COLOURS = new Set(['red', 'green', 'yellow', 'blue', 'magenta', 'cyan'])

/** `none`: no sequences at all. `plain`: bold and the like, no colours (NO_COLOR). */
export type Colours = 'none' | 'plain' | 'full'

/** What a terminal can show, by its name and what the person wants. */
export function coloursOf(env: NodeJS.ProcessEnv, isTerminal: boolean): Colours {
  if (!isTerminal || env['TERM'] === 'dumb' || env['TERM'] === '') return 'none'
  return env['NO_COLOR'] ? 'plain' : 'full'
}

export function painted(line: Line, colours: Colours): string {
  return line.map(({ text, as }) => paint(text, as, colours)).join('')
}

function paint(text: string, as: string | undefined, colours: Colours): string {
  if (as === undefined || colours === 'none' || text === '') return text
  const codes = as
    .split(' ')
    .filter((name) => colours === 'full' || !COLOURS.has(name))
    .flatMap((name) => SGR[name] ?? [])
  return codes.length === 0 ? text : `\x1b[${codes.join(';')}m${text}\x1b[0m`
}
