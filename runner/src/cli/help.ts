/** `baton help`: made from the table. */
import { COMMANDS, type Argument, type Command, type Flag } from './table.ts'

const GROUPS = ['Start', 'Sessions', 'Steer', 'Move', 'Machine', 'Guest'] as const

export const EXIT_CODES = {
  0: 'done',
  1: 'it failed; the message says why and what to do',
  2: 'the command line is not right',
  3: 'the relay could not be reached in time; trying again may help',
  130: 'ended by Ctrl-C; attach ends with 143 after SIGTERM, with 129 after SIGHUP',
} as const

/** All commands, one line each. */
export function overview(): string {
  const listed = Object.entries(COMMANDS)
  const width = Math.max(...listed.map(([name]) => name.length)) + 2
  const groups = GROUPS.flatMap((group) => {
    const rows = listed.filter(([, command]) => command.group === group)
    if (rows.length === 0) return []
    return ['', group, ...rows.map(([name, { what }]) => `  ${name.padEnd(width)}${what}`)]
  })
  return [
    'baton: prompt from your pocket; close the laptop; the agent keeps working somewhere else',
    ...groups,
    '',
    'baton help COMMAND tells its flags. Most take --json and --data DIR. A session is named by its id, the first',
    'letters of it, or words of its title; with only one session it need not be named.',
    '',
    'Exit codes',
    ...Object.entries(EXIT_CODES).map(([code, what]) => `  ${code.padEnd(5)}${what}`),
  ].join('\n')
}

/** One command: usage, flags, and what else there is to know. */
export function helpOf(name: string, command: Command): string {
  const flags = Object.entries(command.flags).filter(([, { hidden }]) => hidden !== true)
  const heads = flags.map(([flag, spec]) => headOf(flag, spec))
  const width = Math.max(0, ...heads.map((head) => head.length)) + 2
  const rows = flags.map(([, { what }], i) => `  ${(heads[i] ?? '').padEnd(width)}${what}`)
  const more = command.more === undefined ? [] : ['', command.more]
  return [`baton ${name}: ${command.what}`, '', usageOf(name, command), '', ...rows, ...more]
    .join('\n')
    .trimEnd()
}

/** `baton prompt SESSION TEXT… [flags]` */
export function usageOf(name: string, { args = [], flags }: Command): string {
  const places = args.map(placeOf)
  const hasFlags = Object.values(flags).some(({ hidden }) => hidden !== true)
  return ['usage: baton', name, ...places, ...(hasFlags ? ['[flags]'] : [])].join(' ')
}

function placeOf({ name, optional, rest }: Argument): string {
  const shown = rest === true ? `${name}…` : name
  return optional === true ? `[${shown}]` : shown
}

function headOf(flag: string, { short, value, multiple }: Flag): string {
  const names = short === undefined ? `--${flag}` : `-${short}, --${flag}`
  return `${names}${value === undefined ? '' : ` ${value}`}${multiple === true ? ' …' : ''}`
}

/** The table for programs. */
export function helpJson(): unknown {
  return {
    commands: Object.entries(COMMANDS).map(([name, { what, args = [], flags }]) => ({
      name,
      what,
      args,
      flags: Object.entries(flags)
        .filter(([, { hidden }]) => hidden !== true)
        .map(([flag, { type, what: says, short, value, multiple, values }]) => ({
          ...{ flag, type, what: says },
          ...(short === undefined ? {} : { short }),
          ...(value === undefined ? {} : { value }),
          ...(multiple === undefined ? {} : { multiple }),
          ...(values === undefined ? {} : { values }),
        })),
    })),
    exit_codes: EXIT_CODES,
  }
}
