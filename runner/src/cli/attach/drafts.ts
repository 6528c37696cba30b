/** Drafts of `attach`, a file a session, so that no text is lost with the terminal (F15). */
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { replaceWholeSync } from '../../files/replace.ts'

export class Drafts {
  readonly #folder: string

  /** `data`: the data folder. */
  constructor(data: string) {
    this.#folder = join(data, 'drafts')
  }

  read(sid: string): string {
    try {
      return readFileSync(this.#file(sid), 'utf8')
    } catch {
      return ''
    }
  }

  /** Synchronous: it is also called while the process ends. A disk that refuses is not worth the session. */
  write(sid: string, text: string): void {
    try {
      if (text === '') {
        rmSync(this.#file(sid), { force: true })
        return
      }
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
      replaceWholeSync(this.#file(sid), text, { sync: 'file' })
    } catch {
      // It is still in memory, and on the screen.
    }
  }

  #file(sid: string): string {
    return join(this.#folder, `${sid}.txt`)
  }
}
