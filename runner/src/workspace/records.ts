/** Small files that must be whole whenever a runner is killed or the power fails. */
import { open, rename, rm } from 'node:fs/promises'

let written = 0

/** Replaces a file: afterwards it is on the disk, and at any moment before it is the old one. */
export async function writeRecord(path: string, content: string | Uint8Array): Promise<void> {
  const fresh = `${path}.${process.pid}-${written++}`
  try {
    const file = await open(fresh, 'w')
    try {
      await file.writeFile(content)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(fresh, path)
  } catch (error) {
    await rm(fresh, { force: true })
    throw error
  }
}
