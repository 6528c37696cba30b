/** Command lines: parsing, and the few options that several commands share. */
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs, type ParseArgsConfig } from 'node:util'
import { BatonError } from '@baton/shared/errors.ts'

type Options = NonNullable<ParseArgsConfig['options']>

/** parseArgs, strict. Throws BatonError `usage` naming what is wrong. */
export function parse<O extends Options>(args: string[], options: O) {
  try {
    return parseArgs({ args, options, allowPositionals: true, strict: true })
  } catch (cause) {
    throw new BatonError('usage', cause instanceof Error ? cause.message : '', { cause })
  }
}

export const DATA = { data: { type: 'string' } } as const
export const JSON_OUT = { json: { type: 'boolean' } } as const

/** The data folder: `--data`, else `BATON_DATA`, else ~/.baton. Absolute. */
export function dataFolder(flag: string | undefined): string {
  return resolve(flag ?? process.env['BATON_DATA'] ?? join(homedir(), '.baton'))
}

/** A whole number in a range. Throws BatonError `usage`. */
export function number(
  name: string,
  text: string | undefined,
  fallback: number,
  min: number,
  max: number,
): number {
  if (text === undefined) return fallback
  const value = Number(text)
  if (!Number.isInteger(value) || value < min || value > max) {
    throw new BatonError(
      'usage',
      `--${name} takes a whole number from ${min} to ${max}, not ${JSON.stringify(text)}.`,
    )
  }
  return value
}

/** A time in milliseconds from the environment, for tests and for unusual networks. */
export function milliseconds(variable: string, fallback: number): number {
  return number(variable, process.env[variable], fallback, 1, 86_400_000)
}
