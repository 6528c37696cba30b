/** What is typed and not sent, one draft a session, on the disk within a moment of each keystroke (F15). */
import type { Database } from './db.ts'

const WRITE_MS = 150

/** Name of the draft of a session that does not exist yet. */
export const NEW_SESSION = 'new'

export class Drafts {
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
