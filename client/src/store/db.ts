/**
 * What this device keeps, in IndexedDB. Entries, session metadata and names are kept sealed, as they came from the relay; the
 * identity, drafts and the text of queued prompts are plain, because only this device has them.
 */
import type { Mode } from '@baton/shared/guest.ts'
import { deleteDB, openDB, type DBSchema, type IDBPDatabase } from 'idb'
import type { DeviceInfo, Entry, RunnerInfo, SessionInfo } from '@baton/shared/protocol.ts'
import type { OutboxItem } from './outbox.ts'
import type { Photo } from './photos.ts'

/** The account as last seen, for a start without connection. */
export interface Seen {
  sessions: SessionInfo[]
  runners: RunnerInfo[]
  devices: DeviceInfo[]
}

/** What the new-session composer was last used with. */
export interface LastUsed {
  runner: string
  workspace: string
  mode: Mode
}

interface Schema extends DBSchema {
  identity: { key: 'me'; value: string }
  seen: { key: 'account'; value: Seen }
  last: { key: 'new-session'; value: LastUsed }
  drafts: { key: string; value: string }
  /** Beside the draft of the same name. */
  photos: { key: string; value: Photo[] }
  outbox: { key: string; value: OutboxItem }
  /** Sessions put out of sight here, and when: milliseconds since 1970. */
  dismissed: { key: string; value: number }
  entries: { key: [sid: string, seq: number]; value: Entry }
}

export type Database = IDBPDatabase<Schema>

const NAME = 'baton'

/** Rejects when the browser forbids storage, e.g. in some private windows. */
export function openDatabase(): Promise<Database> {
  return openDB<Schema>(NAME, 3, {
    upgrade(db, before) {
      if (before < 2) db.createObjectStore('photos')
      if (before < 3) db.createObjectStore('dismissed')
      if (before >= 1) return
      db.createObjectStore('identity')
      db.createObjectStore('seen')
      db.createObjectStore('last')
      db.createObjectStore('drafts')
      db.createObjectStore('outbox', { keyPath: 'id' })
      db.createObjectStore('entries')
    },
    blocking(_current, _blocked, event) {
      // A newer version of the app waits in another tab.
      const db = event.target
      if (db instanceof IDBDatabase) db.close()
    },
  })
}

/** Forgets everything: identity, transcripts, drafts, outbox. */
export async function wipe(db: Database): Promise<void> {
  db.close()
  await deleteDB(NAME)
}

const ofSession = (sid: string): IDBKeyRange => IDBKeyRange.bound([sid, 0], [sid, Infinity])

export function cachedEntries(db: Database, sid: string): Promise<Entry[]> {
  return db.getAll('entries', ofSession(sid))
}

export async function cacheEntries(db: Database, sid: string, entries: readonly Entry[]): Promise<void> {
  const tx = db.transaction('entries', 'readwrite')
  for (const entry of entries) void tx.store.put(entry, [sid, entry.seq])
  await tx.done
}

export async function dropEntries(db: Database, sid: string): Promise<void> {
  await db.delete('entries', ofSession(sid))
}
