/**
 * The compact form of JSON, for bodies before they are sealed: what all of them repeat is said once, here.
 *
 *     0x01  n, one byte  n hashes of 32 bytes  raw DEFLATE (RFC 1951) of the JSON, with DICTIONARY as preset dictionary
 *
 * In that JSON the character U+0001, which JSON never has bare, stands for the next of the hashes: 64 hex digits each. JSON
 * itself begins otherwise, so that bodies of either form, and of older versions, open alike. Runners write it
 * (runner/src/session/compact.ts).
 */
import { inflateSync } from 'fflate'
import { fromUtf8, toHex, utf8 } from './bytes.ts'

export const COMPACT = 1
export const HASH_BYTES = 32
/** Stands for a hash. */
export const HASH_MARK = '\u0001'

/**
 * What bodies are made of; the most frequent stands at the end. Part of the format: a change of a single character makes what was
 * written before unreadable. Another one needs another first byte.
 */
export const DICTIONARY = utf8(
  ''.concat(
    '","is_error":true,"error":{"code":"interrupted","message":"stopped","images":[{"blob":"","media_type":"image/png"}],"steer":true,"command":""},"note":"approved":true,"device":"","signature":"","certificate":"{"content":[{"type":"thinking","thinking":"","signature":""},{"type":"text","text":""},{"type":"tool_use","id":"toolu_01","name":"edit","input":{"path":"src/index.ts","old":"","new":""}}],"stop_reason":"end_turn","model":"claude-sonnet-4-5","usage":{"input_tokens":1,"output_tokens":2,"cache_read_tokens":0,"cache_write_tokens":0},"cost_usd":0.00,"window":200000}',
    '{"chain":[""],"bytes":5,"state":"quiescent","covers":1,"asked":1,"agent_at":3,"undelivered":[],"start":2,"open":[1],"previous":1,"approvals":[],"mode":{"value":"ask","revision":0},"rules":[]}',
    '{"type":"notice","data":{"message":""}}',
    '{"effect":1,"type":"turn","data":{"step":1}}',
    '{"effect":1,"kind":"approve","replay":"safe","digest":"","attempt":1,"now":179,"approve":{"name":"bash","input":{"command":"npm test"},"digest":""}}',
    '{"effect":1,"kind":"prompt","replay":"safe","digest":"","attempt":1,"now":179,"prompt":{"steer":true}}',
    '{"effect":1,"kind":"llm","replay":"safe","digest":"","attempt":1,"now":179,"llm":{"prior":1,"added":2}}',
    '{"effect":1,"kind":"tool","replay":"never","digest":"","attempt":1,"now":179,"tool":{"name":"bash","input":{"command":"git status"},"approval":1,"call":"toolu_01"}}',
    '{"effect":1,"now":179,"result":{"text":"     1\\t\\n     2\\t","is_error":false,"detail":{"lines":1,"from":1,"to":1}},"duration_ms":1}',
  ),
)

/** The JSON, as text. Throws when the bytes are damaged. */
export function expand(bytes: Uint8Array): string {
  if (bytes[0] !== COMPACT) return fromUtf8(bytes)
  const from = 2
  const to = from + HASH_BYTES * (bytes[1] ?? 0)
  const text = fromUtf8(inflateSync(bytes.subarray(to), { dictionary: DICTIONARY }))
  let at = from
  return text.replaceAll(HASH_MARK, () => toHex(bytes.subarray(at, (at += HASH_BYTES))))
}
