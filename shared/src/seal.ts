/**
 * Authenticated encryption of everything that the relay stores (I9). XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03) with a
 * random 24-byte nonce; the box is nonce ‖ ciphertext ‖ tag. What a box is for stands in its associated data, so that the
 * relay can't move, replay or swap one unnoticed.
 */
import { xchacha20poly1305 } from '@noble/ciphers/chacha.js'
import { randomBytes } from '@noble/ciphers/utils.js'
import { concat, fromBase64, toBase64, utf8 } from './bytes.ts'
import { expand } from './compact.ts'
import { BatonError } from './errors.ts'
import type { Json } from './guest.ts'

const NONCE_BYTES = 24

/** What a box is for. */
export const place = {
  entry: (sid: string, kind: string, seq: number): string => `baton1|${sid}|journal|${kind}|${seq}`,
  command: (sid: string, kind: string, id: string): string => `baton1|${sid}|inbox|${kind}|${id}`,
  blob: (sid: string): string => `baton1|${sid}|blob`,
  delta: (sid: string, effect: number): string => `baton1|${sid}|delta|${effect}`,
  meta: (sid: string): string => `baton1|${sid}|meta`,
  device: (device: string): string => `baton1|device|${device}`,
  runner: (device: string): string => `baton1|runner|${device}`,
  pairing: (offer: string): string => `baton1|pairing|${offer}`,
  engine: (name: string): string => `baton1|engine|${name}`,
  exported: (file: string, n: number): string => `baton1|exported|${file}|${n}`,
}

export function seal(key: Uint8Array, plain: Uint8Array, where: string): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES)
  return concat(nonce, xchacha20poly1305(key, nonce, utf8(where)).encrypt(plain))
}

/** Inverse of seal. Throws BatonError `cannot-open` when key, bytes or place do not fit. */
export function open(key: Uint8Array, box: Uint8Array, where: string): Uint8Array {
  try {
    const nonce = box.subarray(0, NONCE_BYTES)
    return xchacha20poly1305(key, nonce, utf8(where)).decrypt(box.subarray(NONCE_BYTES))
  } catch (cause) {
    throw new BatonError('cannot-open', '', { cause })
  }
}

/** Seals JSON into base64url text. Lone surrogates and NUL cross exactly: JSON.stringify escapes them (F50). */
export function sealJson(key: Uint8Array, value: unknown, where: string): string {
  return toBase64(seal(key, utf8(JSON.stringify(value)), where))
}

/** Opens JSON, compact or not; the value still has to be validated. Throws BatonError `cannot-open`. */
export function openJson(key: Uint8Array, text: string, where: string): Json {
  let box: Uint8Array
  try {
    box = fromBase64(text)
  } catch (cause) {
    throw new BatonError('cannot-open', '', { cause })
  }
  const bytes = open(key, box, where)
  try {
    return JSON.parse(expand(bytes)) as Json
  } catch (cause) {
    throw new BatonError('cannot-open', '(it holds no JSON)', { cause })
  }
}
