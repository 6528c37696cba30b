/**
 * What a runner reads first of a session that it has claimed goes with the answer: a session that wakes shall not wait for
 * one round trip after the other. It is a guess by kind and place, for the relay can't know what the bodies name: the head of
 * the journal, where the session began; the newest snapshot and checkpoint; and its end, where a snapshot stands with what it
 * does not cover. What is missing or too large, the runner asks for.
 */
import type { Command, Entry } from '@baton/shared/protocol.ts'
import type { Redis } from 'ioredis'
import { ENTRY_BYTES, readInbox, readRange, type Range } from './journal.ts'

export interface FirstReads {
  entries: Entry[]
  /** Absent: they are too many to go along. */
  commands?: Command[]
}

const BYTES_MAX = 128 << 10
const COMMANDS_BYTES_MAX = 64 << 10
/** The claim, the start, the baseline, and where it works. */
const HEAD_ENTRIES = 4
/** What stands before a snapshot, in the same append or the one before. */
const BEFORE_SNAPSHOT = 4
const END_ENTRIES_MAX = 48

/** `seq` is the end of the journal; `snapshot`, `checkpoint` the newest such entries, 0 for none. */
export async function firstReads(
  redis: Redis,
  sid: string,
  { seq, snapshot, checkpoint }: { seq: number; snapshot: number; checkpoint: number },
): Promise<FirstReads> {
  const ranges = snapshot === 0 ? [] : rangesOf(seq, snapshot, checkpoint)
  const [commands, ...parts] = await Promise.all([
    readInbox(redis, sid),
    ...ranges.map((range) => readRange(redis, sid, range)),
  ])
  const bySeq = new Map<number, Entry>()
  let bytes = 0
  for (const entry of parts.flat()) {
    const size = entry.body.length + ENTRY_BYTES
    if (bySeq.has(entry.seq) || bytes + size > BYTES_MAX) continue
    bytes += size
    bySeq.set(entry.seq, entry)
  }
  const entries = [...bySeq.values()].toSorted((a, b) => a.seq - b.seq)
  const waiting = commands.reduce((sum, { body }) => sum + body.length, 0)
  return { entries, ...(waiting <= COMMANDS_BYTES_MAX ? { commands } : {}) }
}

/** The most needed first. */
function rangesOf(seq: number, snapshot: number, checkpoint: number): Range[] {
  return [
    { from: snapshot, to: snapshot },
    { from: 1, to: HEAD_ENTRIES },
    ...(checkpoint > 0 ? [{ from: checkpoint, to: checkpoint }] : []),
    { from: Math.max(1, snapshot - BEFORE_SNAPSHOT), to: Math.min(seq, snapshot + END_ENTRIES_MAX) },
  ]
}
