/** Digests that bind a decision or a replay to exactly one request (I7, I10). */
import { sha256Hex } from './bytes.ts'
import type { Json, Message } from './guest.ts'

/**
 * JSON with object keys sorted by UTF-16 code units and lone surrogates escaped (RFC 8785 without its number rules:
 * numbers are written as JSON.stringify does, which is the same for all numbers that JSON can hold).
 */
export function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (value !== null && typeof value === 'object') {
    const parts = Object.keys(value)
      .toSorted()
      .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] ?? null)}`)
    return `{${parts.join(',')}}`
  }
  return JSON.stringify(value)
}

/** Names one tool call whole: hex SHA-256 of the canonical JSON of `[name, input]`. */
export function callDigest(name: string, input: { [key: string]: Json }): string {
  return sha256Hex(canonicalJson([name, input]))
}

/** Names an effect request whole: hex SHA-256 of the canonical JSON of `[kind, input]`. */
export function requestDigest(kind: string, input: Json): string {
  return sha256Hex(canonicalJson([kind, input]))
}

/** Digest of the empty conversation; see LlmInput in guest.ts. */
export const EMPTY_CONVERSATION = sha256Hex('')

/** Digest of a conversation after one more message. */
export function extendConversation(digest: string, message: Message): string {
  return sha256Hex(`${digest}\n${JSON.stringify(message)}`)
}
