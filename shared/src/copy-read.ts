/** Takes a copy (copy.ts) from a session, as a stream of parts. Reading needs no lease and disturbs nobody. */
import * as v from 'valibot'
import { at, COPY_FORMAT, type CopiedEntry, type CopyPart, type CopyPlace } from './copy.ts'
import { BatonError } from './errors.ts'
import { blobsOfSnapshot, SnapshotEntry, type Agent, type SessionMeta } from './journal.ts'
import { LIMITS, type Entry } from './protocol.ts'
import { openJson, place } from './seal.ts'

/** A workspace whose files are never stored, so that a copy has none. */
const SCRATCH = 'scratch'

type OpenedJson = Omit<CopiedEntry, 'kind'> & { kind: Entry['kind'] }
type OpenedSnapshot = Omit<CopiedEntry, 'body'> & { body: SnapshotEntry & { agent: Agent } }

/**
 * Reads a session. One that goes on meanwhile is copied as its journal stood at the beginning.
 * Throws BatonError `copy-too-early` when there is nothing to go on from yet, `copy-outrun` when it went on so fast that its
 * files were replaced meanwhile (try again), `cannot-open`, `journal-gap`, `offline`.
 */
export async function* readCopy(from: CopyPlace, meta: SessionMeta): AsyncGenerator<CopyPart> {
  const found = await survey(from)
  if (!found.checkpoint && meta.workspace !== SCRATCH) {
    throw new BatonError('copy-too-early', '(its files are not stored yet)')
  }
  const { snapshot, files } = await newestWhole(from, found.snapshots)
  const isWanted = (entry: OpenedJson): boolean => {
    if (entry.kind === 'snapshot') return false
    if (entry.kind === 'checkpoint') return entry.seq === found.checkpoint?.seq
    return isHistory(entry)
  }
  const { name, engine, bundle, baseline } = snapshot.body.agent
  const others = [...found.blobs, ...(found.checkpoint?.blobs ?? [])].filter((hash) => !files.has(hash))
  const wanted = new Set(others)
  yield {
    t: 'head',
    head: {
      ...{ format: COPY_FORMAT, sid: from.sid, seq: found.tail, meta },
      agent: { name, engine, bundle, baseline },
      entries: found.kept + 1 + (found.checkpoint ? 1 : 0),
      blobs: files.size + wanted.size,
    },
  }
  for (const [hash, bytes] of files) yield { t: 'blob', hash, bytes }
  for (const hash of wanted) yield { t: 'blob', hash, bytes: await fetchBlob(from, hash) }
  for await (const entry of entriesOf(from, found.tail)) {
    if (entry.seq === snapshot.seq) yield { t: 'entry', entry: snapshot as unknown as CopiedEntry }
    else if (isWanted(entry)) yield { t: 'entry', entry: entry as CopiedEntry }
  }
}

/** Is it a part of what was said and done? Where it ran, and how it ended, is the origin's alone. */
function isHistory({ kind, body }: OpenedJson): boolean {
  if (kind === 'lease' || kind === 'snapshot' || kind === 'checkpoint') return false
  if (kind === 'received') return at(body, 'kind') !== 'move'
  if (kind !== 'event' || at(body, 'effect') !== undefined) return true
  const type = at(body, 'type')
  return typeof type !== 'string' || !['moving', 'arrived', 'done', 'failed'].includes(type)
}

interface Survey {
  tail: number
  /** Entries that are history. */
  kept: number
  /** Blobs that these refer to. */
  blobs: string[]
  /** The newest two: the relay keeps their blobs. Each says what its guest is. */
  snapshots: OpenedSnapshot[]
  checkpoint: OpenedJson | undefined
}

async function survey(from: CopyPlace): Promise<Survey> {
  // The end of a journal is always the end of a whole write.
  const { tail } = await from.read(1, 1)
  const found: Survey = { tail, kept: 0, blobs: [], snapshots: [], checkpoint: undefined }
  const agents = new Map<number, Agent>()
  for await (const entry of entriesOf(from, tail)) {
    if (entry.kind === 'snapshot')
      found.snapshots = [...found.snapshots.slice(-1), wholeSnapshot(entry, agents)]
    else if (entry.kind === 'checkpoint') found.checkpoint = entry
    else if (isHistory(entry)) {
      found.kept++
      found.blobs.push(...entry.blobs)
    }
  }
  return found
}

/** A copy names a snapshot's agent and blobs in the entry itself: the entries that did so before do not come along. */
function wholeSnapshot({ seq, body }: OpenedJson, agents: Map<number, Agent>): OpenedSnapshot {
  const { agent_at = 0, ...said } = v.parse(SnapshotEntry, body)
  const agent = said.agent ?? agents.get(agent_at)
  if (!agent) throw new BatonError('journal-gap', `(no agent for the snapshot at ${seq})`)
  agents.set(seq, agent)
  return { kind: 'snapshot', seq, body: { ...said, agent }, blobs: blobsOfSnapshot(said, agent) }
}

/** Small, and the first that a running session replaces: taken before anything else. */
async function newestWhole(
  from: CopyPlace,
  snapshots: OpenedSnapshot[],
): Promise<{ snapshot: OpenedSnapshot; files: Map<string, Uint8Array> }> {
  let failure: unknown = new BatonError('copy-too-early', '(it has not begun yet)')
  for (const snapshot of snapshots.toReversed()) {
    const files = new Map<string, Uint8Array>()
    try {
      for (const hash of new Set(snapshot.blobs)) files.set(hash, await fetchBlob(from, hash))
      return { snapshot, files }
    } catch (error) {
      failure = error
    }
  }
  throw failure
}

async function fetchBlob({ blobs, sid, key }: CopyPlace, hash: string): Promise<Uint8Array> {
  try {
    return await blobs.get(sid, key, hash)
  } catch (error) {
    if (error instanceof BatonError && error.code === 'no-blob') {
      throw new BatonError('copy-outrun', `(${hash.slice(0, 12)})`, { cause: error })
    }
    throw error
  }
}

async function* entriesOf({ read, sid, key }: CopyPlace, tail: number): AsyncGenerator<OpenedJson> {
  for (let next = 1; next <= tail;) {
    const { entries } = await read(next, LIMITS.read_entries)
    if (entries.length === 0) throw new BatonError('journal-rolled-back', `(entry ${next} is missing)`)
    for (const { kind, seq, body, blobs } of entries) {
      if (seq > tail) return
      if (seq !== next++) throw new BatonError('journal-gap', `(expected ${next - 1}, got ${seq})`)
      yield {
        kind,
        seq,
        blobs,
        body: kind === 'lease' ? null : openJson(key, body, place.entry(sid, kind, seq)),
      }
    }
  }
}
