/** An entry opened: decrypted for its place and validated; or marked as unreadable, which is shown and hurts nothing. */
import { openEntry, type Opened } from '../entries.ts'
import type { Entry } from '../protocol.ts'

/** Damaged, moved, of another account, or of a newer version. */
export interface Unreadable {
  kind: 'unreadable'
  seq: number
  /** Milliseconds on the relay's clock. */
  at: number
}

export type Read = Opened | Unreadable

/** Opens one entry. Never throws. */
export function readEntry(key: Uint8Array, sid: string, entry: Entry): Read {
  try {
    return openEntry(key, sid, entry)
  } catch {
    return { kind: 'unreadable', seq: entry.seq, at: entry.at }
  }
}
