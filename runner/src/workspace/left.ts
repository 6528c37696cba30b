/** What checkpoints leave behind, told to the person once on each machine. */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { listPaths, shownPath } from './byte-paths.ts'
import type { GitProgram } from './git-program.ts'
import { megabytes } from './megabytes.ts'
import { hasOwnChanges } from './module-changes.ts'
import type { Stored } from './shadow.ts'
import { CHANGE_BYTES_MAX } from './sizes.ts'

export type LeftBehind = Pick<Stored, 'large' | 'closed'>

const PATH_CHARS = 200

export class Left {
  readonly #git: GitProgram
  readonly #root: string
  /** Remembers over the stays on this machine. */
  readonly #record: string
  readonly #told: Set<string>
  #fresh: string[] = []

  constructor(git: GitProgram, root: string, record: string) {
    this.#git = git
    this.#root = root
    this.#record = record
    this.#told = new Set(existsSync(record) ? readFileSync(record, 'utf8').split('\0') : [])
  }

  /** Notes what a checkpoint left behind. `modules`: paths of submodules. */
  async note(behind: LeftBehind, modules: readonly string[]): Promise<void> {
    this.#tellAll(behind, 'stays on this machine')
    if (modules.length > 0) {
      this.#tell(
        'modules',
        `Submodules do not travel, only which commit they are at: ${listPaths(modules)}. Elsewhere run: git submodule update --init`,
      )
    }
    for (const path of modules) {
      if (this.#told.has(`in ${path}`)) continue
      if (await hasOwnChanges(this.#git, join(this.#root, shownPath(path)), `${this.#record}.module`)) {
        this.#tell(
          `in ${path}`,
          `What was changed in the submodule ${shownPath(path)} stays on this machine.`,
        )
      }
    }
  }

  /** Notes what was not taken over from the person's folder into the session's. */
  noteFirst(behind: LeftBehind): void {
    this.#tellAll(behind, "is not in the session's work tree")
  }

  take(): string[] {
    if (this.#fresh.length > 0) this.#remember()
    return this.#fresh.splice(0)
  }

  #remember(): void {
    try {
      writeFileSync(this.#record, [...this.#told].join('\0'))
    } catch {
      // It is told again: better twice than never.
    }
  }

  #tellAll({ large, closed }: LeftBehind, what: string): void {
    const most = `at most ${megabytes(CHANGE_BYTES_MAX)} of changed files travel at once`
    for (const { path, bytes } of large) {
      this.#tell(path, `${shownPath(path)} (${megabytes(bytes)}) ${what}: ${most}. All other files travel.`)
    }
    for (const path of closed) {
      const folder = path.length > PATH_CHARS ? `${path.slice(0, PATH_CHARS)}…` : path
      this.#tell(
        `closed ${path}`,
        `The folder ${folder} ${what}: the runner may not look into it, or its path is too long. All other files travel.`,
      )
    }
  }

  #tell(about: string, sentence: string): void {
    if (this.#told.has(about)) return
    this.#told.add(about)
    this.#fresh.push(sentence)
  }
}
