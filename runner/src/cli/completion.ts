/**
 * Shell completion. The scripts (completion-scripts.ts) are a few lines: a shell hands over the words so far and gets back what may
 * stand there, made from the table. So an upgrade never leaves an old script behind. Ids and names come from the relay, when it
 * answers at once.
 */
import { AccountView, inOrder, type Listed } from './account.ts'
import { parseFor } from './args.ts'
import { print } from './output.ts'
import { SCRIPTS } from './completion-scripts.ts'
import { COMMANDS, commandIn, SHELLS, type Command, type Flag, type Values } from './table.ts'
import { cleanLine, cut } from './term/text.ts'

export interface Candidate {
  value: string
  /** Beside it, in shells that show such. */
  about?: string
}

/** `file`, `folder`: the shell completes these itself. */
export type Completion = { candidates: Candidate[] } | { shell: 'file' | 'folder' }

/** What depends on the account. Each rejects when the relay does not answer in time. */
export interface Lookup {
  list: () => Promise<Listed>
  documents: (session: string) => Promise<string[]>
}

const LOOKUP_MS = 1500
const TITLE_COLUMNS = 60
const NOTHING: Completion = { candidates: [] }

/** `words`: those after `baton`, the last one being typed. */
export async function completions(words: readonly string[], lookup: Lookup): Promise<Completion> {
  const typed = words.at(-1) ?? ''
  const before = words.slice(0, -1)
  const found = commandIn(before)
  if (!found || before[0] === 'help')
    return commandsFor(before[0] === 'help' ? before.slice(1) : before, typed)
  const { command, args } = found
  const { flag, places } = read(command, args)
  if (flag) return among(flag.values, typed, places, lookup)
  const [, name, value] = /^--([a-z-]+)=(.*)$/s.exec(typed) ?? []
  if (name !== undefined && value !== undefined) {
    const given = await among(command.flags[name]?.values, value, places, lookup)
    if ('shell' in given) return given
    return { candidates: given.candidates.map((one) => ({ ...one, value: `--${name}=${one.value}` })) }
  }
  if (typed.startsWith('-') && !args.includes('--')) return flagsOf(command, args, typed)
  const wanted = command.args ?? []
  return among((wanted[places.length] ?? wanted.findLast(({ rest }) => rest))?.values, typed, places, lookup)
}

function commandsFor(before: readonly string[], typed: string): Completion {
  const start = before.length === 0 ? '' : `${before.join(' ')} `
  const candidates = new Map<string, Candidate>()
  for (const [name, { what }] of Object.entries(COMMANDS)) {
    if (!name.startsWith(start + typed)) continue
    const [next = '', more] = name.slice(start.length).split(' ')
    candidates.set(next, { value: next, about: more === undefined ? what : `${next} …` })
  }
  if (before.length === 0 && 'help'.startsWith(typed))
    candidates.set('help', { value: 'help', about: 'what there is' })
  return { candidates: [...candidates.values()] }
}

/** The words of a command so far: the flag whose value comes next, and the arguments that are there. */
function read(command: Command, args: readonly string[]): { flag: Flag | undefined; places: string[] } {
  const places: string[] = []
  let flag: Flag | undefined
  let onlyPlaces = false
  for (const word of args) {
    if (flag) flag = undefined
    else if (onlyPlaces || !word.startsWith('-') || word === '-') places.push(word)
    else if (word === '--') onlyPlaces = true
    else {
      const known = flagNamed(command, word)
      flag = known?.type === 'string' && !word.includes('=') ? known : undefined
    }
  }
  return { flag, places }
}

function flagNamed({ flags }: Command, word: string): Flag | undefined {
  if (word.startsWith('--')) return flags[word.slice(2).split('=')[0] ?? '']
  return Object.values(flags).find(({ short }) => short === word[1])
}

function flagsOf(command: Command, args: readonly string[], typed: string): Completion {
  const flags = Object.entries({ ...command.flags, help: { what: 'what it takes' } as Flag })
  const candidates = flags
    .filter(
      ([name, { hidden, multiple }]) => hidden !== true && (multiple === true || !args.includes(`--${name}`)),
    )
    .map(([name, { what }]) => ({ value: `--${name}`, about: what }))
  return { candidates: candidates.filter(({ value }) => value.startsWith(typed)) }
}

async function among(
  values: Values | undefined,
  typed: string,
  places: readonly string[],
  lookup: Lookup,
): Promise<Completion> {
  if (values === 'file' || values === 'folder') return { shell: values }
  const all = values === undefined ? [] : await candidatesOf(values, places, lookup)
  return { candidates: all.filter(({ value }) => value.startsWith(typed)) }
}

async function candidatesOf(
  values: Exclude<Values, 'file' | 'folder'>,
  places: readonly string[],
  lookup: Lookup,
): Promise<Candidate[]> {
  if (typeof values !== 'string') return values.map((value) => ({ value }))
  switch (values) {
    case 'command':
      return Object.entries(COMMANDS).map(([value, { what }]) => ({ value, about: what }))
    case 'session': {
      const { sessions } = await lookup.list()
      return inOrder(sessions).map(({ sid, status, named }) => ({
        value: sid.slice(0, shortest(sid, sessions)),
        about: cut(cleanLine(`${status}: ${named.title}`), TITLE_COLUMNS),
      }))
    }
    case 'document':
      return places[0] === undefined ? [] : (await lookup.documents(places[0])).map((value) => ({ value }))
    case 'model': {
      const { runners } = await lookup.list()
      return [...new Set(runners.flatMap(({ about }) => about.models ?? []))].map((value) => ({ value }))
    }
    case 'runner':
    case 'pool':
    case 'place': {
      const { runners } = await lookup.list()
      const names = runners.map(({ about, online }) => ({
        value: about.name,
        about: online ? `online, ${about.platform}` : 'away',
      }))
      const pools = [...new Set(runners.flatMap(({ about }) => about.pools))].map((value) => ({
        value,
        about: 'pool',
      }))
      const both = values === 'runner' ? names : values === 'pool' ? pools : [...names, ...pools]
      return both.map((one) => ({ ...one, about: cleanLine(one.about) }))
    }
  }
}

/** As many letters of an id as name no other session; eight at least. */
function shortest(sid: string, sessions: Listed['sessions']): number {
  for (let length = 8; length < sid.length; length++) {
    const start = sid.slice(0, length)
    if (sessions.filter((other) => other.sid.startsWith(start)).length === 1) return length
  }
  return sid.length
}

/** `baton __complete SHELL WORDS…`: one candidate a line, with its description after a tab; `:file` or `:folder` for the shell. */
export async function complete(words: readonly string[]): Promise<number> {
  const [shell = '', ...raw] = words
  // The others take the quotes off themselves.
  const typed = shell === 'bash' ? raw.map(unquoted) : raw
  const found = await completions(typed, lookupOf(dataIn(typed))).catch(() => NOTHING)
  if ('shell' in found) process.stdout.write(`:${found.shell}\n`)
  else {
    const line = ({ value, about }: Candidate): string => (about === undefined ? value : `${value}\t${about}`)
    process.stdout.write(found.candidates.map((one) => `${line(one)}\n`).join(''))
  }
  // Whatever still waits for a relay is not waited for.
  setImmediate(() => process.exit(0))
  return 0
}

/** A word of a command line without its quotes, also one whose quote is still open. */
export function unquoted(word: string): string {
  return word.replace(
    /\\(.)|'([^']*)(?:'|$)|"((?:\\.|[^"\\])*)(?:"|$)/gs,
    (_all, char?: string, single?: string, double?: string) =>
      char ?? single ?? (double ?? '').replace(/\\([$`"\\])/g, '$1'),
  )
}

function dataIn(words: readonly string[]): string | undefined {
  const at = words.indexOf('--data')
  return at < 0 ? undefined : words[at + 1]
}

function lookupOf(data: string | undefined): Lookup {
  let opened: Promise<AccountView> | undefined
  const view = (): Promise<AccountView> => (opened ??= AccountView.open(data, LOOKUP_MS))
  return {
    list: () => within(view().then((account) => account.list())),
    documents: (session) =>
      within(
        view().then(async (account) => {
          const { sid } = await account.find(session)
          return [...(await account.transcript(sid)).documents.keys()]
        }),
      ),
  }
}

function within<T>(work: Promise<T>): Promise<T> {
  const deadline = new Promise<never>((_resolve, reject) => {
    setTimeout(() => reject(new Error('too late')), LOOKUP_MS).unref()
  })
  return Promise.race([work, deadline])
}

export async function completion(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('completion', args)
  const shell = SHELLS.find((known) => known === positionals[0])
  if (shell === undefined) return 2
  print(values.json, { shell, script: SCRIPTS[shell] }, SCRIPTS[shell].trimEnd())
  return 0
}
