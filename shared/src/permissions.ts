/**
 * May a call run without asking? One pure reading of mode and rules: the runner decides by it, clients explain by it.
 *
 * Of the rules that match, deny counts before ask, and ask before allow; without one the mode decides. In mode `plan` only what
 * looks may run, whatever the rules allow.
 */
import type { Access, Json, Mode } from './guest.ts'
import type { Rule } from './journal.ts'
import { commandsOf, type ShellCommand } from './shell.ts'

export type Permission = 'allow' | 'ask' | 'deny'

export interface Call {
  name: string
  access: Access
  input: { [key: string]: Json }
}

/** What mode and rules say of a call. */
export function permissionOf(call: Call, mode: Mode, rules: readonly Rule[]): Permission {
  if (mode === 'plan' && call.access !== 'read') return 'deny'
  for (const action of ['deny', 'ask'] as const) {
    if (rules.some((rule) => rule.action === action && matchesAny(rule, call))) return action
  }
  if (isAllowed(call, rules)) return 'allow'
  return modeAllows(mode, call.access) ? 'allow' : 'ask'
}

function modeAllows(mode: Mode, access: Access): boolean {
  if (access === 'read' || mode === 'full') return true
  return access === 'edit' && mode === 'edit'
}

/** The rule that a person most likely means by "always" for this call; undefined when none would be safe. */
export function ruleFor(call: Call): Rule | undefined {
  const { name: tool, input } = call
  if (tool !== 'bash') return { tool, action: 'allow' }
  const { commands, isPlain } = commandsOf(textOf(input['command']))
  const [only] = commands
  if (!isPlain || !only || commands.length > 1) return undefined
  const named = only.words.slice(0, SUBCOMMANDS.has(only.words[0] ?? '') ? 2 : 1)
  // A second word that is a flag names no subcommand.
  const words = named[1]?.startsWith('-') ? named.slice(0, 1) : named
  return words.length === 0 ? undefined : { tool, prefix: words.join(' '), action: 'allow' }
}

/** Programs whose first argument says what they do. */
const SUBCOMMANDS = new Set(
  'git npm npx pnpm yarn bun deno cargo go docker kubectl make just uv pip poetry dotnet gradle mvn'.split(
    ' ',
  ),
)

/** Every part of the call has to be allowed: a command line may hold several commands. */
function isAllowed(call: Call, rules: readonly Rule[]): boolean {
  const allowing = rules.filter((rule) => rule.action === 'allow' && rule.tool === call.name)
  if (allowing.some((rule) => rule.prefix === undefined)) return true
  if (call.name === 'bash') {
    const { commands, isPlain } = commandsOf(textOf(call.input['command']))
    return (
      isPlain &&
      commands.length > 0 &&
      commands.every((command) => allowing.some((rule) => beginsWith(command, rule.prefix)))
    )
  }
  const path = pathOf(call)
  return path !== undefined && !hasDots(path) && allowing.some((rule) => isUnder(path, rule.prefix))
}

/** For deny and ask one part is enough, and doubt counts against the call. */
function matchesAny(rule: Rule, call: Call): boolean {
  if (rule.tool !== call.name) return false
  if (rule.prefix === undefined) return true
  if (call.name === 'bash') {
    const text = textOf(call.input['command'])
    const { commands, isPlain } = commandsOf(text)
    if (commands.some((command) => beginsWith(command, rule.prefix))) return true
    return !isPlain && text.includes(rule.prefix)
  }
  const path = pathOf(call)
  return path !== undefined && (hasDots(path) || isUnder(path, rule.prefix))
}

function beginsWith({ words }: ShellCommand, prefix: string | undefined): boolean {
  const wanted = (prefix ?? '').split(/\s+/).filter((word) => word !== '')
  return wanted.length > 0 && wanted.every((word, i) => words[i] === word)
}

function pathOf({ input }: Call): string | undefined {
  const path = input['path'] ?? input['url']
  return typeof path === 'string' ? path.replace(/^(\.\/)+/, '') : undefined
}

const hasDots = (path: string): boolean => path.split(/[\\/]/).includes('..')

function isUnder(path: string, prefix: string | undefined): boolean {
  if (prefix === undefined) return false
  const folder = prefix.replace(/^(\.\/)+/, '')
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`)
}

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '')
