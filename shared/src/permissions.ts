/**
 * May a call run without asking? One pure reading of mode and rules: the runner decides by it, clients explain by it.
 *
 * Of the rules that match, deny counts before ask, and ask before allow; without one the mode decides. In mode `plan` only what
 * looks may run, whatever the rules allow.
 */
import type { Access, Json, Mode } from './guest.ts'
import type { Rule } from './journal.ts'
import { mayRun, runsArguments, type Doubt } from './may-run.ts'
import { pathPlace, urlPlace, type Place } from './places.ts'
import { commandsOf, type ShellCommand } from './shell.ts'

export type Permission = 'allow' | 'ask' | 'deny'

export interface Call {
  name: string
  access: Access
  input: { [key: string]: Json }
}

/** `by`: the rule that forbids, or makes it ask; absent where the mode decides or several rules allow it together. */
export interface Ruling {
  permission: Permission
  by?: Rule
}

/** What mode and rules say of a call. */
export function permissionOf(call: Call, mode: Mode, rules: readonly Rule[]): Permission {
  return rulingOf(call, mode, rules).permission
}

/** What they say, and which rule it is that restricts. */
export function rulingOf(call: Call, mode: Mode, rules: readonly Rule[]): Ruling {
  if (mode === 'plan' && call.access !== 'read') return { permission: 'deny' }
  const restricting = rules.filter((rule) => rule.tool === call.name && rule.action !== 'allow')
  const found = restricting.map((rule) => ({ rule, doubt: matches(rule, call) }))
  const denying = found.find(({ rule, doubt }) => rule.action === 'deny' && doubt === 'yes')
  if (denying) return { permission: 'deny', by: denying.rule }
  // What may be forbidden, a person has to look at.
  const asking = found.find(({ doubt }) => doubt !== 'no')
  if (asking) return { permission: 'ask', by: asking.rule }
  if (isAllowed(call, rules)) return { permission: 'allow' }
  return { permission: modeAllows(mode, call.access) ? 'allow' : 'ask' }
}

/** `deny bash: rm -rf`. */
export function ruleWords({ action, tool, prefix }: Rule): string {
  return prefix === undefined ? `${action} ${tool}` : `${action} ${tool}: ${prefix}`
}

function modeAllows(mode: Mode, access: Access): boolean {
  if (access === 'read' || mode === 'full') return true
  return access === 'edit' && mode === 'edit'
}

/** Programs whose first argument says what they do. */
const SUBCOMMANDS = new Set(
  'git npm npx pnpm yarn bun deno cargo go docker kubectl make just uv pip poetry dotnet gradle mvn'.split(
    ' ',
  ),
)
/** Programs that only look, or only check, whatever their arguments. */
const HARMLESS = new Set(
  'ls cat head tail wc grep rg pwd echo uniq diff file stat du df which date tree cmp basename dirname'.split(
    ' ',
  ),
)

/** The rule that a person most likely means by "always" for this call; undefined when none would be safe. */
export function ruleFor(call: Call): Rule | undefined {
  const { name: tool, input } = call
  if (tool !== 'bash') return { tool, action: 'allow' }
  const { commands, isPlain } = commandsOf(textOf(input['command']))
  const [only] = commands
  if (!isPlain || !only || commands.length > 1 || runsArguments(only)) return undefined
  const words = only.words.map(({ text }) => text)
  const named = namedBy(words)
  // A prefix is split at blanks.
  if (named.length === 0 || named.some((word) => word === '' || /\s/.test(word))) return undefined
  return { tool, prefix: named.join(' '), action: 'allow' }
}

/** As few words as say what is done; for a program that could do anything, the whole line. */
function namedBy(words: string[]): string[] {
  const [program = '', second] = words
  if (HARMLESS.has(program)) return [program]
  if (SUBCOMMANDS.has(program) && second !== undefined && !second.startsWith('-')) return [program, second]
  return words.length > 1 || program.includes('/') ? words : []
}

/** Every part of the call has to be allowed: a command line may hold several commands. */
function isAllowed(call: Call, rules: readonly Rule[]): boolean {
  const allowing = rules.filter((rule) => rule.action === 'allow' && rule.tool === call.name)
  if (allowing.some((rule) => rule.prefix === undefined)) return true
  if (call.name === 'bash') {
    const { commands, isPlain } = commandsOf(textOf(call.input['command']))
    return (
      isPlain &&
      commands.length > 0 &&
      !commands.some(runsArguments) &&
      commands.every((command) => allowing.some((rule) => beginsWith(command, rule.prefix)))
    )
  }
  return allowing.some(({ prefix = '' }) => placeOf(call)?.isSurelyUnder(prefix) === true)
}

/** For deny and ask one part is enough, and doubt counts against the call. */
function matches({ prefix }: Rule, call: Call): Doubt {
  if (prefix === undefined) return 'yes'
  if (call.name === 'bash') return mayRun(textOf(call.input['command']), wordsOf(prefix))
  return placeOf(call)?.mayBeUnder(prefix) === false ? 'no' : 'yes'
}

function beginsWith({ words }: ShellCommand, prefix: string | undefined): boolean {
  const wanted = wordsOf(prefix ?? '')
  return wanted.length > 0 && wanted.every((word, i) => words[i]?.text === word)
}

const wordsOf = (prefix: string): string[] => prefix.split(/\s+/).filter((word) => word !== '')

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '')

/** Where a call does something, if a prefix can say that. */
function placeOf({ input, access }: Call): Place | undefined {
  if (typeof input['url'] === 'string') return urlPlace(input['url'])
  if (typeof input['path'] === 'string') return pathPlace(input['path'], access)
  // Without a path, tools that look do so everywhere.
  return access === 'read' ? pathPlace('.', access) : undefined
}
