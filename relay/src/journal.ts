/** Reading journals and inboxes. Writing is the business of the scripts. */
import { toHex } from '@baton/shared/bytes.ts'
import type { Command, CommandKind, Entry, Hint, Placement, Status } from '@baton/shared/protocol.ts'
import type { Redis } from 'ioredis'
import { sessionKeys } from './keys.ts'

/** Well under a frame, with room for the largest single entry on top. */
const PAGE_BYTES = 512 << 10
/** Entries asked of Redis at first: 2 MB, should each be as large as it may be. Then as many as are likely to fit. */
const FIRST_FETCH = 8
/** About what an entry takes beside its body. */
export const ENTRY_BYTES = 256

export interface Page {
  entries: Entry[]
  /** Seq of the last entry there is, 0 for none. */
  tail: number
}

const OF = Buffer.from('of')
const OF_BYTES = 12
const HASH_BYTES = 32
/** By the numbers that lua/prelude.lua writes. */
const KINDS: readonly (Entry['kind'] | undefined)[] = [
  undefined,
  ...(['received', 'intent', 'outcome', 'snapshot', 'checkpoint', 'event', 'lease'] as const),
]
const STATUSES: readonly (Status | undefined)[] = [
  undefined,
  ...(['running', 'waiting', 'idle', 'moving', 'done', 'failed'] as const),
]

type StreamItem = [id: string, fields: string[]]

/** Entries from `from` on: as many as there are, at most `limit`, and not more than fit a frame. */
export async function readPage(redis: Redis, sid: string, from: number, limit: number): Promise<Page> {
  const { journal, state } = sessionKeys(sid)
  const entries: Entry[] = []
  let bytes = 0
  let next = Math.max(1, from)
  let fetch = FIRST_FETCH
  while (entries.length < limit && bytes < PAGE_BYTES) {
    const want = Math.min(fetch, limit - entries.length)
    const items = await redis.xrangeBuffer(journal, `${next}-0`, '+', 'COUNT', want)
    for (const item of items) {
      const entry = entryOf(item)
      bytes += entry.body.length + ENTRY_BYTES
      if (bytes > PAGE_BYTES && entries.length > 0) break
      entries.push(entry)
      next = entry.seq + 1
    }
    if (items.length < want) break
    fetch = Math.ceil(((PAGE_BYTES - bytes) * entries.length) / bytes)
  }
  // Asked last, so that it is never behind the entries.
  return { entries, tail: Number((await redis.hget(state, 'seq')) ?? 0) }
}

/** Numbers of entries, both included. */
export interface Range {
  from: number
  to: number
}

/** A few entries that are known to be there. */
export async function readRange(redis: Redis, sid: string, { from, to }: Range): Promise<Entry[]> {
  const items = await redis.xrangeBuffer(sessionKeys(sid).journal, `${from}-0`, `${to}-0`)
  return items.map(entryOf)
}

/** Commands that wait, from number `from` on. */
export async function readInbox(redis: Redis, sid: string, from = 1): Promise<Command[]> {
  const items = await redis.xrange(sessionKeys(sid).inbox, `${Math.max(1, from)}-0`, '+')
  return items.map(commandOf)
}

/** Number of a stream id `n-0`. */
function numberOf(id: string): number {
  return Number(id.slice(0, id.indexOf('-')))
}

function fieldsOf(list: string[]): Record<string, string> {
  const fields: Record<string, string> = {}
  for (let i = 0; i + 1 < list.length; i += 2) fields[list[i] as string] = list[i + 1] as string
  return fields
}

/** An entry as lua/prelude.lua writes it. Throws RangeError when it is torn. */
function entryOf([id, list]: [id: Buffer, fields: Buffer[]]): Entry {
  const [, box, name, of, , rest] = list
  if (!box || !of || !name?.equals(OF)) return earlierEntryOf([id, list])
  const kind = KINDS[of.readUInt8(0)]
  if (!kind) throw new RangeError(`kind ${of[0]} of an entry`)
  const status = STATUSES[of.readUInt8(1)]
  const { hint, ...others } = rest?.length ? (JSON.parse(rest.toString()) as Partial<Entry>) : {}
  const blobs = Array.from({ length: (of.length - OF_BYTES) / HASH_BYTES }, (_, i) =>
    toHex(of.subarray(OF_BYTES + i * HASH_BYTES, OF_BYTES + (i + 1) * HASH_BYTES)),
  )
  return {
    ...{ seq: numberOf(id.toString()), epoch: of.readUInt32BE(2), kind, at: of.readUIntBE(6, 6) },
    ...{ size: box.length, body: box.toString('base64url'), blobs },
    ...(hint || status ? { hint: { ...(status ? { status } : {}), ...hint } } : {}),
    ...others,
  }
}

const BOX = Buffer.from('box')

/** As older relays wrote it: a field for each, all of them text but `box`; still older ones the body, too, in `body`. */
function earlierEntryOf([id, list]: [id: Buffer, fields: Buffer[]]): Entry {
  const texts = list.map((value, i) =>
    value.toString(i % 2 === 1 && list[i - 1]?.equals(BOX) ? 'base64url' : 'utf8'),
  )
  const { epoch, kind, at, size, box, body = '', blobs, hint, consumes, lease } = fieldsOf(texts)
  return {
    seq: numberOf(id.toString()),
    epoch: Number(epoch),
    kind: kind as Entry['kind'],
    at: Number(at),
    size: Number(size),
    body: box ?? body,
    blobs: blobs ? blobs.split(' ') : [],
    ...(hint ? { hint: JSON.parse(hint) as Hint } : {}),
    ...(consumes ? { consumes: JSON.parse(consumes) as { n: number; id: string } } : {}),
    ...(lease ? { lease: JSON.parse(lease) as NonNullable<Entry['lease']> } : {}),
  }
}

function commandOf([id, list]: StreamItem): Command {
  const { id: commandId = '', kind, at, device = '', body = '', place } = fieldsOf(list)
  return {
    n: numberOf(id),
    id: commandId,
    kind: kind as CommandKind,
    at: Number(at),
    device,
    body,
    ...(place ? { place: JSON.parse(place) as Placement } : {}),
  }
}
