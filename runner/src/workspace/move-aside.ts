/** Makes room without losing anything. */
import { existsSync } from 'node:fs'
import { readdir, rename, rm } from 'node:fs/promises'

/** Moves what lies at the place of a work tree aside, to `<root>.kept-<n>`; a bare link to a lost repository is removed. */
export async function moveAside(root: string): Promise<void> {
  const names = await readdir(root).catch(() => undefined)
  if (names === undefined) return
  if (names.every((name) => name === '.git')) return rm(root, { recursive: true })
  for (let n = 1; ; n++) {
    const place = `${root}.kept-${n}`
    if (existsSync(place)) continue
    return rename(root, place)
  }
}
