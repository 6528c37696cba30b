/**
 * Every command with its arguments and flags: the one truth from which command lines are parsed and from which `--help` and shell
 * completion are made. Data only, and commands are loaded when they are called, so that all three are quick.
 */
import type { Command } from './command.ts'
import { GUEST } from './commands/guest.ts'
import { MACHINE } from './commands/machine.ts'
import { MOVE } from './commands/move.ts'
import { SESSIONS } from './commands/sessions.ts'
import { START } from './commands/start.ts'
import { STEER } from './commands/steer.ts'

export * from './command.ts'

export const TABLE = {
  ...START,
  ...SESSIONS,
  ...STEER,
  ...MOVE,
  ...MACHINE,
  ...GUEST,
} as const satisfies Record<string, Command>

export type CommandName = keyof typeof TABLE

/** The table without its exact types, for those who walk over it. */
export const COMMANDS: Readonly<Record<string, Command>> = TABLE

/** The command that a command line begins with, and the words after it. */
export function commandIn(
  words: readonly string[],
): { name: string; command: Command; args: string[] } | undefined {
  const two = words.slice(0, 2).join(' ')
  for (const [name, count] of [
    [two, 2],
    [words[0] ?? '', 1],
  ] as const) {
    const command = Object.hasOwn(COMMANDS, name) ? COMMANDS[name] : undefined
    if (command && words.length >= count) return { name, command, args: words.slice(count) }
  }
  return undefined
}
