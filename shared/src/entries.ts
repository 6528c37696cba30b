/** Opens sealed entries and commands, and validates what is inside. */
import * as v from 'valibot'
import { BatonError } from './errors.ts'
import { BODIES, COMMANDS } from './journal.ts'
import type { Command, CommandKind, Entry, SealedKind } from './protocol.ts'
import { openJson, place } from './seal.ts'

export type BodyOf<K extends SealedKind> = v.InferOutput<(typeof BODIES)[K]>
export type CommandBodyOf<K extends CommandKind> = v.InferOutput<(typeof COMMANDS)[K]>

export interface OpenedOf<K extends SealedKind> {
  kind: K
  seq: number
  at: number
  body: BodyOf<K>
}
/** An entry that was read and opened. Lease entries are plain. */
export type Opened =
  | { [K in SealedKind]: OpenedOf<K> }[SealedKind]
  | { kind: 'lease'; seq: number; at: number; lease: NonNullable<Entry['lease']> }

/** Throws BatonError `cannot-open`. */
export function openEntry(key: Uint8Array, sid: string, entry: Entry): Opened {
  const { kind, seq, at, lease } = entry
  if (kind === 'lease') {
    if (!lease) throw new BatonError('cannot-open', `(entry ${seq}: a lease entry without lease)`)
    return { kind, seq, at, lease }
  }
  const parsed = v.safeParse(BODIES[kind], openJson(key, entry.body, place.entry(sid, kind, seq)))
  if (!parsed.success)
    throw new BatonError('cannot-open', `(entry ${seq}, ${kind}: ${v.summarize(parsed.issues)})`)
  return { kind, seq, at, body: parsed.output } as Opened
}

/** Throws BatonError `cannot-open`. */
export function openCommand<K extends CommandKind>(
  key: Uint8Array,
  sid: string,
  command: Command & { kind: K },
): CommandBodyOf<K> {
  const json = openJson(key, command.body, place.command(sid, command.kind, command.id))
  const parsed = v.safeParse(COMMANDS[command.kind], json)
  if (!parsed.success)
    throw new BatonError('cannot-open', `(command ${command.id}: ${v.summarize(parsed.issues)})`)
  return parsed.output
}
