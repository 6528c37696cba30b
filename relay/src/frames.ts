/** From bytes to a frame of the protocol. */
import { BatonError } from '@baton/shared/errors.ts'
import { PeerFrame } from '@baton/shared/protocol.ts'
import * as v from 'valibot'

/** A frame of a newer peer: `re` is its number, 0 if it has none. */
export interface UnknownFrame {
  t: 'unknown'
  kind: string
  re: number
}

const KINDS: ReadonlySet<string> = new Set(PeerFrame.options.map(({ entries }) => entries.t.literal))

/** Throws BatonError `bad-frame`, which names what is wrong and where, never the value. */
export function parseFrame(bytes: Buffer): PeerFrame | UnknownFrame {
  let json: unknown
  try {
    json = JSON.parse(bytes.toString())
  } catch (cause) {
    throw new BatonError('bad-frame', 'not JSON', { cause })
  }
  const kind = fieldOf(json, 't')
  if (typeof kind === 'string' && !KINDS.has(kind)) {
    const re = fieldOf(json, 're')
    return { t: 'unknown', kind: kind.slice(0, 40), re: Number.isSafeInteger(re) ? (re as number) : 0 }
  }
  const parsed = v.safeParse(PeerFrame, json, { abortEarly: true })
  if (parsed.success) return parsed.output
  const issue = parsed.issues[0]
  throw new BatonError(
    'bad-frame',
    `${v.getDotPath(issue) ?? 'frame'}: ${issue.expected ?? issue.type} expected`,
  )
}

function fieldOf(json: unknown, field: string): unknown {
  return typeof json === 'object' && json !== null ? (json as Record<string, unknown>)[field] : undefined
}
