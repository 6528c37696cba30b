/** Drafts of `attach`, a file a session, so that no text is lost with the terminal (F15). */
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

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
      const temporary = `${this.#file(sid)}.${process.pid}.tmp`
      writeFileSync(temporary, text, { mode: 0o600 })
      renameSync(temporary, this.#file(sid))
    } catch {
      // It is still in memory, and on the screen.
    }
  }

  #file(sid: string): string {
    return join(this.#folder, `${sid}.txt`)
  }
}
