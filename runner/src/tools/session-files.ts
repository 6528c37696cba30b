/** The files of a session as its tools use them: on the disk, or in the session itself. */
import type { Stay } from './stay.ts'
import { replaceFile, readBytes } from './files.ts'
import { innerPath, type InnerPath } from './paths.ts'

export interface SessionFiles {
  /** Throws Refusal `outside-workspace`. */
  place(path: string, use: 'read' | 'write'): Promise<InnerPath>
  /** Undefined when there is no file. Throws Refusal for a folder and for what is too large. */
  read(place: InnerPath): Promise<Buffer | undefined>
  replace(place: InnerPath, bytes: Uint8Array): Promise<void>
  /** Runs what changes files while nothing else does. */
  change<T>(work: () => Promise<T>): Promise<T>
}

export function filesOf({ root, stay }: { root: string; stay?: Stay }): SessionFiles {
  return stay?.files ?? diskFiles(root)
}

function diskFiles(root: string): SessionFiles {
  return {
    place: (path, use) => innerPath(root, path, use),
    read: readBytes,
    replace: replaceFile,
    change: (work) => work(),
  }
}
