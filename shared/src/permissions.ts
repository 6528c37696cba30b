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

/** `by`: the rule that forbids, or makes it ask. `through`: those that allow it together. Neither: the mode decides. */
export interface Ruling {
  permission: Permission
  by?: Rule
  through?: Rule[]
}

/** What mode and rules say of a call. */
export function permissionOf(call: Call, mode: Mode, rules: readonly Rule[]): Permission {
  return rulingOf(call, mode, rules).permission
}

/** What they say, and by which rules. */
export function rulingOf(call: Call, mode: Mode, rules: readonly Rule[]): Ruling {
  if (mode === 'plan' && call.access !== 'read') return { permission: 'deny' }
  const restricting = rules.filter((rule) => rule.tool === call.name && rule.action !== 'allow')
  const found = restricting.map((rule) => ({ rule, doubt: matches(rule, call) }))
  const denying = found.find(({ rule, doubt }) => rule.action === 'deny' && doubt === 'yes')
  if (denying) return { permission: 'deny', by: denying.rule }
  // What may be forbidden, a person has to look at.
  const asking = found.find(({ doubt }) => doubt !== 'no')
  if (asking) return { permission: 'ask', by: asking.rule }
  const through = allowing(call, rules)
  if (through.length > 0) return { permission: 'allow', through }
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

/** Programs that only look, whatever their arguments: none of their options runs something or writes a file. */
const HARMLESS = new Set(
  'ls cat head tail wc grep pwd echo diff stat du df which cmp basename dirname'.split(' '),
)
/** Programs whose first argument says what they do, and what of it does the same kind of thing with whatever follows. */
const ALIKE: { [program: string]: RegExp } = {
  git: /^(status|log|diff|show|blame|describe|rev-parse|ls-files|ls-tree|shortlog|grep|add|commit)$/,
  npm: /^(test|ls|outdated|view|why)$/,
  pnpm: /^(test|ls|outdated|view|why)$/,
  yarn: /^(test|why)$/,
  bun: /^test$/,
  deno: /^(test|check|lint)$/,
  cargo: /^(build|test|check|clippy|fmt|doc)$/,
  go: /^(build|test|vet|fmt|list)$/,
  docker: /^(ps|images|logs|inspect)$/,
  kubectl: /^(get|describe|logs)$/,
  dotnet: /^(build|test)$/,
  pip: /^(list|show|freeze)$/,
  // The tool that they start.
  npx: /^[a-z]/,
  bunx: /^[a-z]/,
}
/** Behind these each word is one more thing that is done: another package, another value, another file. */
const EACH_COUNTS = new Set(
  'install i add config rm rmdir mv cp ln chmod chown kill dd tee uniq truncate shred'.split(' '),
)
/** Options that make of a command something else: they name a file to write or a program to run, or force. git takes them shortened. */
const WIDENING =
  /^(-[OD]|-[of](?![a-z])|-(exec|toolexec|vettool|out|output)\b|[A-Z_]+=|--(ou|op(e|$|=)|exe|ext($|-)|textc|upl|receive|pre($|=|-)|conf|comma|cmd|shell|script-shell|to-comm|toolexec|vettool|requ|impor|load|plug|eval|rsh|edit|pager|forc|hard|dele|mirr|write|fix|in-place|log-file))/

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
  const [program = '', second = ''] = words
  if (HARMLESS.has(program)) return [program]
  if (Object.hasOwn(ALIKE, program) && ALIKE[program]?.test(second)) {
    // What was shown with such an option is allowed with it.
    const added = words.findLastIndex((word, i) => i > 1 && WIDENING.test(word))
    return words.slice(0, Math.max(2, added + 1))
  }
  return words.length > 1 || program.includes('/') ? words : []
}

/** The rules that allow a call, none when it is not. Every part of it has to be allowed: a command line may hold several commands. */
function allowing(call: Call, rules: readonly Rule[]): Rule[] {
  const own = rules.filter((rule) => rule.action === 'allow' && rule.tool === call.name)
  const whole = own.find((rule) => rule.prefix === undefined)
  if (whole) return [whole]
  if (call.name === 'bash') {
    const { commands, isPlain } = commandsOf(textOf(call.input['command']))
    if (!isPlain || commands.some(runsArguments)) return []
    const found = commands.map((command) => own.find((rule) => beginsWith(command, rule.prefix)))
    const each = found.filter((rule) => rule !== undefined)
    return each.length === commands.length ? [...new Set(each)] : []
  }
  const place = placeOf(call)
  return own.filter(({ prefix = '' }) => place?.isSurelyUnder(prefix) === true).slice(0, 1)
}

/** For deny and ask one part is enough, and doubt counts against the call. */
function matches({ prefix }: Rule, call: Call): Doubt {
  if (prefix === undefined) return 'yes'
  if (call.name === 'bash') return mayRun(textOf(call.input['command']), wordsOf(prefix))
  return placeOf(call)?.mayBeUnder(prefix) === false ? 'no' : 'yes'
}

/** Is it what the prefix says, and nothing else by way of what was added? */
function beginsWith({ words }: ShellCommand, prefix: string | undefined): boolean {
  const wanted = wordsOf(prefix ?? '')
  const [program = '', second = ''] = wanted
  const named = wanted.slice(EACH_COUNTS.has(program) ? 1 : 2).some((word) => !word.startsWith('-'))
  const added = words.slice(wanted.length).map(({ text }) => text)
  if (wanted.length === 0 || !wanted.every((word, i) => words[i]?.text === word)) return false
  if (named && added.length > 0 && (EACH_COUNTS.has(program) || EACH_COUNTS.has(second))) return false
  // Whatever a setting says git runs.
  if (program === 'git' && second === '' && added.some((text) => text.startsWith('-c'))) return false
  return HARMLESS.has(program) || !added.some((text) => WIDENING.test(text))
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
