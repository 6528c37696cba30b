/**
 * Ended sessions that are out of sight on this machine; they stay in the account.
 *
 *     DATA/dismissed/SID      empty; a file each, so that commands side by side lose nothing
 */
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { BatonError } from '@baton/shared/errors.ts'

export async function dismissedIn(data: string): Promise<Set<string>> {
  return new Set(await readdir(join(data, FOLDER)).catch(() => []))
}

/** Throws BatonError `data-folder`. */
export async function dismiss(data: string, sids: readonly string[]): Promise<void> {
  await written(data, async (folder) => {
    await mkdir(folder, { recursive: true, mode: 0o700 })
    for (const sid of sids) await writeFile(join(folder, sid), '', { mode: 0o600 })
  })
}

/** Throws BatonError `data-folder`. */
export async function putBack(data: string, sids: readonly string[]): Promise<void> {
  await written(data, async (folder) => {
    for (const sid of sids) await rm(join(folder, sid), { force: true })
  })
}

const FOLDER = 'dismissed'

async function written(data: string, change: (folder: string) => Promise<void>): Promise<void> {
  const folder = join(data, FOLDER)
  try {
    await change(folder)
  } catch (cause) {
    const code = cause instanceof Error && 'code' in cause ? String(cause.code) : String(cause)
    if (code === 'ENOSPC') throw new BatonError('disk-full', `(${folder})`, { cause })
    throw new BatonError('data-folder', `(${folder}: ${code})`, { cause })
  }
}
