/** Writes the compact form of JSON (shared/src/compact.ts). */
import { deflateRawSync } from 'node:zlib'
import { fromHex, concat, utf8 } from '@baton/shared/bytes.ts'
import { COMPACT, DICTIONARY, HASH_MARK } from '@baton/shared/compact.ts'

const HASHES_MAX = 255
const HASH = /(?<=")[0-9a-f]{64}(?=")/g

/** The value as JSON, in the compact form where that is shorter. */
export function compact(value: unknown): Uint8Array {
  const json = JSON.stringify(value)
  const hashes: string[] = []
  const text = json.replace(HASH, (hash) => {
    if (hashes.length === HASHES_MAX) return hash
    hashes.push(hash)
    return HASH_MARK
  })
  const packed = deflateRawSync(utf8(text), { level: 9, dictionary: DICTIONARY })
  const bytes = concat(Uint8Array.of(COMPACT, hashes.length), ...hashes.map(fromHex), packed)
  const plain = utf8(json)
  return bytes.length < plain.length ? bytes : plain
}
