/**
 * A file in a frame that tells what it is and that it is whole.
 *
 *     magic, 8 bytes  u32 length of the header, little-endian  header, JSON  body  SHA-256 of all before it
 *
 * The last byte of the magic is the version of the format.
 */
import { createHash } from 'node:crypto'

const MAGIC_BYTES = 8
const LENGTH_BYTES = 4
const HASH_BYTES = 32

export type Framed =
  | { is: 'whole'; header: unknown; body: Buffer }
  | { is: 'foreign' }
  /** `format`: the magic that it has. */
  | { is: 'other-version'; format: string }
  | { is: 'torn'; why: string }

/** The file's bytes. `magic`: eight characters of ASCII. */
export function frame(magic: string, header: unknown, ...body: readonly Uint8Array[]): Uint8Array {
  const json = Buffer.from(JSON.stringify(header))
  const length = Buffer.alloc(LENGTH_BYTES)
  length.writeUInt32LE(json.length)
  const parts = [Buffer.from(magic, 'latin1'), length, json, ...body]
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return Buffer.concat([...parts, hash.digest()])
}

/** Header and body share memory with `bytes`. */
export function unframe(magic: string, bytes: Uint8Array): Framed {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const format = file.toString('latin1', 0, MAGIC_BYTES)
  const name = format.slice(0, MAGIC_BYTES - 1)
  if (!magic.startsWith(name)) return { is: 'foreign' }
  const headerAt = MAGIC_BYTES + LENGTH_BYTES
  if (file.length < headerAt + HASH_BYTES) return { is: 'torn', why: `it ends after ${file.length} bytes` }
  if (format !== magic) return { is: 'other-version', format }
  const content = file.subarray(0, -HASH_BYTES)
  if (!createHash('sha256').update(content).digest().equals(file.subarray(-HASH_BYTES)))
    return { is: 'torn', why: 'its checksum does not fit' }
  const bodyAt = headerAt + content.readUInt32LE(MAGIC_BYTES)
  try {
    const header: unknown = JSON.parse(content.toString('utf8', headerAt, bodyAt))
    return { is: 'whole', header, body: content.subarray(bodyAt) }
  } catch {
    return { is: 'torn', why: 'its header can not be read' }
  }
}
