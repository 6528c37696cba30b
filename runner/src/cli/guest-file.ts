/**
 * A `.baton` file: one guest, whole. Everything but the engine is in it.
 *
 *     in a frame "BATONGU1": head, JSON  snapshot  bundle
 */
import { readFileSync } from 'node:fs'
import { BatonError } from '@baton/shared/errors.ts'
import type { EffectRequest, GuestMessage, Pause } from '@baton/shared/guest.ts'
import { frame, unframe } from '../files/framed.ts'
import { replaceWholeSync } from '../files/replace.ts'
import { systemWords } from '../files/words.ts'

/** One line of the transcript: what the guest asked for, or what it was given. */
export type Line = { asked: EffectRequest } | { given: GuestMessage }

export interface GuestFile {
  /** Hex SHA-256 of the engine that it needs. */
  engine: string
  state: Pause['state'] | 'new'
  on?: number
  /** The guest's clock: it moves one second an answer. */
  now: number
  transcript: Line[]
  open: EffectRequest[]
  /** Messages that wait until the guest can take them. */
  inbox: GuestMessage[]
  end?: Pause
  /** Absent before the first step. */
  snapshot?: Uint8Array
  bundle: Uint8Array
}

const magic = 'BATONGU1'

/** Reads a file. Throws `snapshot-foreign` or `snapshot-torn`. */
export function readGuestFile(path: string): GuestFile {
  const file = unframe(magic, read(path))
  if (file.is === 'torn') throw new BatonError('snapshot-torn', `(${path})`)
  if (file.is !== 'whole') throw new BatonError('snapshot-foreign', `(${path})`)
  const { snapshotBytes, ...head } = file.header as Head
  return {
    ...head,
    ...(snapshotBytes > 0 && { snapshot: new Uint8Array(file.body.subarray(0, snapshotBytes)) }),
    bundle: new Uint8Array(file.body.subarray(snapshotBytes)),
  }
}

type Head = Omit<GuestFile, 'snapshot' | 'bundle'> & { snapshotBytes: number }

/** Writes a file: wholly or not at all. Throws `disk-full`. */
export function writeGuestFile(path: string, { snapshot, bundle, ...head }: GuestFile): void {
  const header = { ...head, snapshotBytes: snapshot?.length ?? 0 } satisfies Head
  const file = frame(magic, header, snapshot ?? new Uint8Array(), bundle)
  try {
    replaceWholeSync(path, file, { mode: 'kept' })
  } catch (cause) {
    if (cause instanceof BatonError) throw cause
    throw new BatonError('file-unusable', `${path} can't be written: ${systemWords(cause)}.`, {
      cause,
    })
  }
}

function read(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (cause) {
    throw new BatonError('file-unusable', `${path} can't be read: ${systemWords(cause)}.`, { cause })
  }
}
