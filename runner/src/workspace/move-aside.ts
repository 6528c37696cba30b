/** Makes room without losing anything. */
import { existsSync } from 'node:fs'
import { lstat, readdir, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'

/**
 * Moves what lies at the place of a work tree aside, to `<root>.kept-<n>`, which it gives; a bare link to a lost repository is removed.
 */
export async function moveAside(root: string): Promise<string | undefined> {
  const names = await readdir(root).catch(() => undefined)
  if (names === undefined) return undefined
  // A folder of that name is a repository: somebody's.
  const link = await lstat(join(root, '.git')).catch(() => undefined)
  if (names.length === 0 || (names.length === 1 && link?.isFile())) {
    await rm(root, { recursive: true })
    return undefined
  }
  for (let n = 1; ; n++) {
    const place = `${root}.kept-${n}`
    if (existsSync(place)) continue
    await rename(root, place)
    return place
  }
}
