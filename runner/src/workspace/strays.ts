/** Files that were being written when a runner was killed: no work of anybody's, so they neither travel nor stay. */
import { randomBytes } from 'node:crypto'
import { lstat, rm } from 'node:fs/promises'
import { fullPath } from './byte-paths.ts'

const TEMPORARY = /(^|\/)\.baton-[0-9a-f]{12}\.tmp$/

/** A name for a file that is renamed to its own once it is whole. */
export function temporaryName(): string {
  return `.baton-${randomBytes(6).toString('hex')}.tmp`
}

/** Paths without the temporary ones, of which those from before `since` (milliseconds) are removed: nobody writes them any more. */
export async function withoutStrays(
  root: string,
  paths: readonly string[],
  since: number,
): Promise<string[]> {
  for (const path of paths.filter((path) => TEMPORARY.test(path))) {
    const full = fullPath(root, path)
    const info = await lstat(full).catch(() => undefined)
    if (info?.isFile() && info.mtimeMs < since) await rm(full, { force: true })
  }
  return paths.filter((path) => !TEMPORARY.test(path))
}
