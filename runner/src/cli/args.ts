/** Command lines: parsing by the table, and the few options that several commands share. */
import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs, type ParseArgsConfig } from 'node:util'
import { BatonError } from '@baton/shared/errors.ts'
import { usageOf } from './help.ts'
import { meant } from '../similar.ts'
import { COMMANDS, TABLE, type Command, type CommandName } from './table.ts'

type Options = NonNullable<ParseArgsConfig['options']>

/** parseArgs, strict. Throws BatonError `usage` naming what is wrong. */
export function parse<O extends Options>(args: string[], options: O) {
  try {
    return parseArgs({ args, options, allowPositionals: true, strict: true })
  } catch (cause) {
    throw new BatonError('usage', unknownOption(cause, options), { cause })
  }
}

type ValuesOf<F> = {
  readonly [K in keyof F]?:
    | (F[K] extends { type: 'boolean' } ? boolean : F[K] extends { multiple: true } ? string[] : string)
    | undefined
}
interface Parsed<N extends CommandName> {
  values: ValuesOf<(typeof TABLE)[N]['flags']>
  positionals: string[]
}

/** The flags and arguments of a command. Throws BatonError `usage` for what the table does not have, or misses. */
export function parseFor<N extends CommandName>(name: N, args: string[]): Parsed<N> {
  const parsed = parse(args, TABLE[name].flags)
  const command: Command = TABLE[name]
  const places = command.args ?? []
  const needed = places.filter(({ optional }) => optional !== true).length
  const most = places.some(({ rest }) => rest) ? Infinity : places.length
  const { positionals } = parsed
  if (positionals.length < needed || positionals.length > most) {
    const missing = places[positionals.length]?.name
    const what =
      positionals.length < needed
        ? `${missing} is missing`
        : `${JSON.stringify(positionals[most])} is too much`
    throw new BatonError('usage', `${what}: ${usageOf(name, command)}.`)
  }
  for (const [flag, { values }] of Object.entries(command.flags)) {
    const given = (parsed.values as Record<string, unknown>)[flag]
    if (Array.isArray(values)) for (const text of [given].flat()) oneOf(`--${flag}`, text, values)
  }
  places.forEach(({ name: place, values }, i) => {
    if (Array.isArray(values)) oneOf(place, positionals[i], values)
  })
  return parsed as Parsed<N>
}

function oneOf(name: string, text: unknown, words: readonly string[]): void {
  if (typeof text !== 'string' || words.includes(text)) return
  const listed = words.join(', ')
  throw new BatonError(
    'usage',
    `${name} is one of: ${listed}; not ${JSON.stringify(text)}.${meant(text, words)}`,
  )
}

function unknownOption(cause: unknown, options: Options): string {
  if (!(cause instanceof Error)) return ''
  const isUnknown = 'code' in cause && cause.code === 'ERR_PARSE_ARGS_UNKNOWN_OPTION'
  const [, flag] = /'(--?[^'\s]+)/.exec(cause.message) ?? []
  const isValue = 'code' in cause && cause.code === 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE'
  const name = flag?.replace(/^--?/, '').split('=')[0] ?? ''
  if (isValue && options[name]) {
    return options[name].type === 'boolean' ? `--${name} takes no value.` : `--${name} takes a value.`
  }
  if (!isUnknown || flag === undefined) return `${cause.message.replace(/\.$/, '')}.`
  return `There is no flag ${flag} here.${meant(flag.replace(/^--?/, ''), Object.keys(options), '--')}`
}

/** Throws BatonError `usage`. */
export function noCommand(words: readonly string[]): BatonError {
  const [name = ''] = words
  const verbs = Object.keys(COMMANDS).flatMap((known) =>
    known.startsWith(`${name} `) ? [known.split(' ')[1] ?? ''] : [],
  )
  if (verbs.length > 0) {
    const [, verb = ''] = words
    if (verb === '') return new BatonError('usage', `baton ${name} needs one of: ${verbs.join(', ')}.`)
    const there = `There is no command baton ${name} ${JSON.stringify(verb)}. There are: ${verbs.join(', ')}.`
    return new BatonError('usage', there + meant(verb, verbs))
  }
  const suggestion = meant(
    name,
    [...new Set(Object.keys(COMMANDS).map((known) => known.split(' ')[0] ?? ''))],
    'baton ',
  )
  return new BatonError('usage', `There is no command ${JSON.stringify(name)}.${suggestion}`)
}

/** The data folder: `--data`, else `BATON_DATA`, else ~/.baton. Absolute. */
export function dataFolder(flag: string | undefined): string {
  return resolve(flag ?? process.env['BATON_DATA'] ?? join(homedir(), '.baton'))
}

/** A folder that a runner is to serve. Absolute. Throws BatonError `workspace-unfit` when there is none. */
export async function servedFolder(text: string): Promise<string> {
  const folder = resolve(text)
  const found = await stat(folder).catch(() => undefined)
  const todo = 'Give the path of a folder that is there.'
  if (!found) throw new BatonError('workspace-unfit', `(${folder} is not there)`, { todo })
  if (!found.isDirectory()) throw new BatonError('workspace-unfit', `(${folder} is no folder)`, { todo })
  return folder
}

/** What is there is never written over. Throws BatonError `file-unusable`. */
export function refuseExisting(path: string): void {
  if (!existsSync(path)) return
  const todo = 'Choose another name, or remove it first.'
  throw new BatonError('file-unusable', `${path} is there already.`, { todo })
}

/** The address of a server; `name`: as the person wrote it. Throws BatonError `usage`. */
export function address(name: string, text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url && /^https?:$/.test(url.protocol)) return url.origin
  throw new BatonError(
    'usage',
    `${name} takes an address such as http://laptop:7788, not ${JSON.stringify(text)}.`,
  )
}

/** A whole number in a range; `name`: as the person wrote it, `--port`. Throws BatonError `usage`. */
export function number(
  name: string,
  text: string | undefined,
  fallback: number,
  min: number,
  max: number,
): number {
  if (text === undefined) return fallback
  const value = Number(text)
  if (text.trim() === '' || !Number.isInteger(value) || value < min || value > max) {
    throw new BatonError(
      'usage',
      `${name} takes a whole number from ${min} to ${max}, not ${JSON.stringify(text)}.`,
    )
  }
  return value
}

/** A time in milliseconds from the environment, for tests and for unusual networks. */
export function milliseconds(variable: string, fallback: number): number {
  return number(variable, process.env[variable], fallback, 1, 86_400_000)
}

/** A word as a shell takes it. */
export function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
