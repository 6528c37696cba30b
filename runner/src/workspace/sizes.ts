/** How large files are, and which are too large to travel. */
import { lstatSync } from 'node:fs'
import { fullPath } from './byte-paths.ts'

/** More than this of changed files does not travel: the largest stay behind. */
export const CHANGE_BYTES_MAX = 1 << 30

export interface Large {
  path: string
  bytes: number
}

/** Sizes of those paths that are files or links; not of what lies beyond a link, which is elsewhere. */
export async function sizesOf(root: string, paths: readonly string[]): Promise<Map<string, number>> {
  const sizes = new Map<string, number>()
  const folders = new Map([['', true]])
  const isBelowFolders = (path: string): boolean => {
    const folder = path.slice(0, Math.max(0, path.lastIndexOf('/')))
    const known = folders.get(folder)
    if (known !== undefined) return known
    const isFolder =
      isBelowFolders(folder) &&
      (lstatSync(fullPath(root, folder), { throwIfNoEntry: false })?.isDirectory() ?? false)
    folders.set(folder, isFolder)
    return isFolder
  }
  for (const [n, path] of paths.entries()) {
    // Synchronous calls are much faster for many files; in between others have their turn.
    if (n % 500 === 499) await new Promise((resume) => setImmediate(resume))
    if (!isBelowFolders(path)) continue
    const info = lstatSync(fullPath(root, path), { throwIfNoEntry: false })
    if (info?.isFile() || info?.isSymbolicLink()) sizes.set(path, info.size)
  }
  return sizes
}

/** Takes the largest out until the rest may travel. */
export function takeLarge(sizes: Map<string, number>): Large[] {
  let total = 0
  for (const size of sizes.values()) total += size
  const large: Large[] = []
  if (total <= CHANGE_BYTES_MAX) return large
  for (const [path, bytes] of [...sizes].toSorted((a, b) => b[1] - a[1])) {
    if (total <= CHANGE_BYTES_MAX) break
    sizes.delete(path)
    total -= bytes
    large.push({ path, bytes })
  }
  return large
}
