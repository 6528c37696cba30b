/**
 * Which of this runner's folders stands for the folder of a session: the one whose config has the say here. A name is not
 * enough for that: a session that came from elsewhere gets tools, rules and servers only of a clone of its own repository.
 */
import { existsSync } from 'node:fs'
import { realpath } from 'node:fs/promises'
import { basename, join } from 'node:path'
import type { CheckpointEntry } from '@baton/shared/journal.ts'
import { CONFIG_FILES } from '../config.ts'
import type { Origin } from '../session/options.ts'
import { GitProgram } from '../workspace/git-program.ts'
import { placesOf, readPlace } from '../workspace/places.ts'
import { findLinked, findRepository, hasCommit, type Repository } from '../workspace/repository.ts'

export class OwnFolders {
  readonly #folders: readonly string[]
  readonly #data: string
  readonly #git = new GitProgram()
  readonly #known = new WeakMap<Origin, Promise<string | undefined>>()

  constructor(folders: readonly string[], data: string) {
    this.#folders = folders
    this.#data = data
  }

  /** The folder that is most likely a clone of the same repository. Whoever uses it has to find out. */
  async likely(folder: string, sid: string, checkpoint: CheckpointEntry): Promise<string | undefined> {
    const candidates = this.#candidates(folder)
    if (candidates.length < 2) return candidates[0]
    return (await this.#sameAtOnce(candidates, sid, checkpoint)) ?? candidates[0]
  }

  /** The folder whose config counts; undefined: none. Without an origin the session begins here. Never rejects. */
  of(folder: string, origin?: Origin): Promise<string | undefined> {
    const known = origin && this.#known.get(origin)
    if (known) return known
    const found = this.#find(folder, origin).catch(() => undefined)
    if (origin) this.#known.set(origin, found)
    return found
  }

  async #find(folder: string, origin: Origin | undefined): Promise<string | undefined> {
    const itself = this.#folders.includes(folder) ? folder : undefined
    const checkpoint = origin?.checkpoint
    // Without any checkpoint it began here. A folder without git has no history to know it by.
    if (!checkpoint || checkpoint.kind === 'folder') return itself
    const candidates = this.#candidates(folder)
    // Nothing depends on which one it is.
    if (!candidates.some(hasConfig)) return undefined
    const same = await this.#sameAtOnce(candidates, origin.sid, checkpoint)
    if (same !== undefined) return same
    // A clone that is behind proves to be one when the files are there: they are a work tree of it.
    const { root } = await origin.arrived
    return this.#sharing(candidates, await repositoryOf(this.#git, root))
  }

  /** As far as it can be told without fetching anything. */
  async #sameAtOnce(
    candidates: readonly string[],
    sid: string,
    { head }: CheckpointEntry,
  ): Promise<string | undefined> {
    const place = await readPlace(placesOf({ data: this.#data, sid }))
    const here = place && (await repositoryOf(this.#git, place.root))
    const sharing = await this.#sharing(candidates, here)
    if (sharing !== undefined || head === '') return sharing
    for (const candidate of candidates) {
      const repository = await repositoryOf(this.#git, candidate)
      if (repository && (await hasCommit(this.#git, repository, head))) return candidate
    }
    return undefined
  }

  async #sharing(candidates: readonly string[], wanted: Repository | undefined): Promise<string | undefined> {
    if (!wanted) return undefined
    const common = await realpath(wanted.common)
    for (const candidate of candidates) {
      const repository = await repositoryOf(this.#git, candidate)
      if (repository && (await realpath(repository.common)) === common) return candidate
    }
    return undefined
  }

  /** The same path first, then the same name. */
  #candidates(folder: string): string[] {
    const rank = (own: string): number => (own === folder ? 0 : basename(own) === basename(folder) ? 1 : 2)
    return this.#folders.toSorted((a, b) => rank(a) - rank(b))
  }
}

function hasConfig(folder: string): boolean {
  return CONFIG_FILES.some((name) => existsSync(join(folder, name)))
}

async function repositoryOf(git: GitProgram, folder: string): Promise<Repository | undefined> {
  return (await findLinked(folder))?.repository ?? findRepository(git, folder).catch(() => undefined)
}
