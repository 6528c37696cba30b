/** What is typed and not sent, one draft a session, on the disk within a moment of each keystroke (F15). */
import { Cell } from './cell.ts'
import type { Database } from './db.ts'

const WRITE_MS = 150

/** Name of the draft of a session that does not exist yet. */
export const NEW_SESSION = 'new'

/** Puts text back in front of what was typed since. */
export function joined(first: string, then: string): string {
  if (first.trim() === '') return then
  return then.trim() === '' ? first : `${first}\n${then}`
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
    return this.#dirty.get(of) ?? (await this.#db.get('drafts', of).catch(() => undefined)) ?? ''
  }

  save(of: string, text: string): void {
    this.#dirty.set(of, text)
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.flush(), WRITE_MS)
  }

  /** Its text was queued, and the queueing deleted it. */
  forget(of: string): void {
    this.#dirty.delete(of)
  }

  /** Puts one draft in front of another, in one write. Rejects when the browser can't store it; then both are as they were. */
  async move(from: string, to: string): Promise<void> {
    const [text, there] = await Promise.all([this.load(from), this.load(to)])
    // A write that waits must not bring the old ones back.
    this.forget(from)
    this.forget(to)
    try {
      const tx = this.#db.transaction('drafts', 'readwrite')
      void tx.store.put(joined(text, there), to)
      void tx.store.delete(from)
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
    await tx.done.catch(() => undefined)
  }
}
