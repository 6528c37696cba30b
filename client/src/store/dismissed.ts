/** Ended sessions that a person has put out of sight on this device. They stay in the account. */
import { Cell } from './cell.ts'
import type { Database } from './db.ts'

export class Dismissed {
  readonly sids = new Cell<ReadonlySet<string>>(new Set())
  readonly #db: Database

  constructor(db: Database) {
    this.#db = db
  }

  async load(): Promise<void> {
    const kept = await this.#db.getAllKeys('dismissed').catch(() => [])
    this.sids.set(new Set(kept))
  }

  /** Shown at once; where the browser can't store it, until the next start. */
  set(sid: string, away: boolean): void {
    const only = new Set([sid])
    this.sids.update((sids) => (away ? sids.union(only) : sids.difference(only)))
    const kept = away ? this.#db.put('dismissed', Date.now(), sid) : this.#db.delete('dismissed', sid)
    Promise.resolve<unknown>(kept).catch(() => undefined)
  }
}
