/**
 * What is typed and not sent, one draft a session (F15). A page that is closed or reloaded cuts off a write to IndexedDB, so each
 * keystroke also goes aside, into storage that is written at once, until the real write is done.
 */
import { Cell } from './cell.ts'
import type { Database } from './db.ts'
import type { Photo } from './photos.ts'

const WRITE_MS = 150

/** Name of the draft of a session that does not exist yet. */
export const NEW_SESSION = 'new'

/** Puts text back in front of what was typed since. */
export function joined(first: string, then: string): string {
  if (first.trim() === '') return then
  return then.trim() === '' ? first : `${first}\n${then}`
}

const aside = {
  key: (of: string): string => `baton.draft.${of}`,
  get(of: string): string | undefined {
    return storage()?.getItem(aside.key(of)) ?? undefined
  },
  set(of: string, text: string): void {
    try {
      storage()?.setItem(aside.key(of), text)
    } catch {
      // Full or forbidden: IndexedDB has it a moment later.
    }
  },
  /** `text`: only if it is still this one. */
  remove(of: string, text?: string): void {
    if (text === undefined || aside.get(of) === text) storage()?.removeItem(aside.key(of))
  },
}

/** Some browsers forbid it in private windows, by throwing. */
function storage(): Storage | undefined {
  try {
    return typeof window === 'undefined' ? undefined : window.localStorage
  } catch {
    return undefined
  }
}

export class Drafts {
  /** Counts the moves: who shows a draft that was moved to reads it again. */
  readonly moved = new Cell(0)
  readonly #db: Database
  readonly #dirty = new Map<string, string>()
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(db: Database) {
    this.#db = db
  }

  async load(of: string): Promise<string> {
    return (
      this.#dirty.get(of) ?? aside.get(of) ?? (await this.#db.get('drafts', of).catch(() => undefined)) ?? ''
    )
  }

  save(of: string, text: string): void {
    this.#dirty.set(of, text)
    aside.set(of, text)
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.flush(), WRITE_MS)
  }

  /** Pictures that go with the draft. */
  async photos(of: string): Promise<readonly Photo[]> {
    return (await this.#db.get('photos', of).catch(() => undefined)) ?? []
  }

  /** Rejects when the browser can't store them. */
  async savePhotos(of: string, photos: readonly Photo[]): Promise<void> {
    if (photos.length === 0) await this.#db.delete('photos', of)
    else await this.#db.put('photos', [...photos], of)
  }

  /** Its text was queued, and the queueing deleted it. */
  forget(of: string): void {
    this.#dirty.delete(of)
    aside.remove(of)
  }

  /** Puts one draft in front of another, in one write. Rejects when the browser can't store it; then both are as they were. */
  async move(from: string, to: string): Promise<void> {
    const [text, there] = await Promise.all([this.load(from), this.load(to)])
    const photos = [...(await this.photos(from)), ...(await this.photos(to))]
    // A write that waits must not bring the old ones back.
    this.forget(from)
    this.forget(to)
    try {
      const tx = this.#db.transaction(['drafts', 'photos'], 'readwrite')
      void tx.objectStore('drafts').put(joined(text, there), to)
      void tx.objectStore('drafts').delete(from)
      void tx.objectStore('photos').delete(from)
      if (photos.length > 0) void tx.objectStore('photos').put(photos, to)
      await tx.done
    } catch (error) {
      this.#dirty.set(from, text)
      this.#dirty.set(to, there)
      throw error
    }
    this.moved.update((count) => count + 1)
  }

  /** Writes at once; call when the page hides. */
  async flush(): Promise<void> {
    clearTimeout(this.#timer)
    const dirty = [...this.#dirty]
    this.#dirty.clear()
    if (dirty.length === 0) return
    const tx = this.#db.transaction('drafts', 'readwrite')
    for (const [of, text] of dirty) {
      if (text === '') void tx.store.delete(of)
      else void tx.store.put(text, of)
    }
    try {
      await tx.done
      for (const [of, text] of dirty) aside.remove(of, text)
    } catch {
      // It stays aside, and is found there when it is loaded again.
    }
  }
}
