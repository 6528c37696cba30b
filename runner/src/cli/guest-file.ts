/**
 * A `.baton` file: one guest, whole. Everything but the engine is in it.
 *
 *     "BATONGU1"  u32 length of the head  head, JSON  snapshot  bundle  SHA-256 of all before it
 */
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { BatonError } from '@baton/shared/errors.ts'
import type { EffectRequest, GuestMessage, Pause } from '@baton/shared/guest.ts'
import { replaceWholeSync } from '../files/replace.ts'

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

const magic = Buffer.from('BATONGU1')
const hashBytes = 32

/** Reads a file. Throws `snapshot-foreign` or `snapshot-torn`. */
export function readGuestFile(path: string): GuestFile {
  const file = read(path)
  if (!file.subarray(0, magic.length).equals(magic.subarray(0, Math.min(magic.length, file.length))))
    throw new BatonError('snapshot-foreign', `(${path})`)
  const content = file.subarray(0, -hashBytes)
  if (
    file.length < magic.length + 4 + hashBytes ||
    !createHash('sha256').update(content).digest().equals(file.subarray(-hashBytes))
  )
    throw new BatonError('snapshot-torn', `(${path})`)
  const headAt = magic.length + 4
  const bodyAt = headAt + content.readUInt32LE(magic.length)
  const { snapshotBytes, ...head } = JSON.parse(content.toString('utf8', headAt, bodyAt)) as Head
  const bundleAt = bodyAt + snapshotBytes
  return {
    ...head,
    ...(snapshotBytes > 0 && { snapshot: new Uint8Array(content.subarray(bodyAt, bundleAt)) }),
    bundle: new Uint8Array(content.subarray(bundleAt)),
  }
}

type Head = Omit<GuestFile, 'snapshot' | 'bundle'> & { snapshotBytes: number }

/** Writes a file: wholly or not at all. Throws `disk-full`. */
export function writeGuestFile(path: string, { snapshot, bundle, ...head }: GuestFile): void {
  const json = Buffer.from(JSON.stringify({ ...head, snapshotBytes: snapshot?.length ?? 0 } satisfies Head))
  const length = Buffer.alloc(4)
  length.writeUInt32LE(json.length)
  const content = Buffer.concat([magic, length, json, snapshot ?? new Uint8Array(), bundle])
  const file = Buffer.concat([content, createHash('sha256').update(content).digest()])
  try {
    replaceWholeSync(path, file, { mode: 'kept' })
  } catch (cause) {
    if (cause instanceof BatonError) throw cause
    throw new BatonError('file-unusable', `(${path} can't be written: ${(cause as Error).message})`, {
      cause,
    })
  }
}

function read(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (cause) {
    throw new BatonError('file-unusable', `(${path} can't be read: ${(cause as Error).message})`, { cause })
  }
}
