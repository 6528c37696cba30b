/** Files that were being written when a runner was killed: no work of anybody's, so they neither travel nor stay. */
import { lstat, rm } from 'node:fs/promises'
import { isTemporary } from '../files/replace.ts'
import { fullPath } from './byte-paths.ts'

/** Paths without the temporary ones, of which those from before `since` (milliseconds) are removed: nobody writes them any more. */
export async function withoutStrays(
  root: string,
  paths: readonly string[],
  since: number,
): Promise<string[]> {
  for (const path of paths.filter(isTemporary)) {
    const full = fullPath(root, path)
    const info = await lstat(full).catch(() => undefined)
    if (info?.isFile() && info.mtimeMs < since) await rm(full, { force: true })
  }
  return paths.filter((path) => !isTemporary(path))
}
