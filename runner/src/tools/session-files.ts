/** The files of a session as its tools use them: on the disk, or in the session itself. */
import { realpath } from 'node:fs/promises'
import { relative } from 'node:path'
import { Refusal } from './define.ts'
import type { Stay } from './stay.ts'
import { replaceFile, readBytes } from './files.ts'
import { gitSearch, type Found, type Search } from './git-search.ts'
import { listing, type Listing } from './listing.ts'
import { innerPath, type InnerPath } from './paths.ts'

export interface SessionFiles {
  /** Throws Refusal `outside-workspace`. */
  place(path: string, use: 'read' | 'write'): Promise<InnerPath>
  /** Undefined when there is no file. Throws Refusal for a folder and for what is too large. */
  read(place: InnerPath): Promise<Buffer | undefined>
  replace(place: InnerPath, bytes: Uint8Array): Promise<void>
  /** The files of a folder that are not ignored; undefined when there is none. */
  list(folder: InnerPath, signal: AbortSignal): Promise<Listing | undefined>
  /** Throws Refusal when there is no such place or the pattern is none. */
  search(search: Search, place: InnerPath, signal: AbortSignal): Promise<Found>
  /** Runs what changes files while nothing else does. */
  change<T>(work: () => Promise<T>): Promise<T>
}

export function filesOf({ root, stay }: { root: string; stay?: Stay }): SessionFiles {
  return stay?.files ?? diskFiles(root, stay?.kept)
}

function diskFiles(root: string, kept: readonly string[] = []): SessionFiles {
  // Some file systems take names for the same that differ in case or in how letters are put together.
  const plain = (path: string): string => path.normalize('NFC').toLowerCase()
  const fixed = new Set(kept.map(plain))
  const isKept = (path: string): boolean => fixed.has(plain(path))
  return {
    place: async (path, use) => {
      const place = await innerPath(root, path, use)
      if (use === 'write' && kept.length > 0 && isKept(relative(await realpath(root), place.real))) {
        const why = 'it is in the person’s own folder, and what is in it runs with each session'
        throw new Refusal(
          `${place.shown} can not be changed here: ${why}. Tell the person what to change.`,
          'kept',
        )
      }
      return place
    },
    read: readBytes,
    replace: replaceFile,
    list: (folder, signal) => listing(folder.real, signal),
    search: (search, place, signal) => gitSearch(search, place, root, signal),
    change: (work) => work(),
  }
}
