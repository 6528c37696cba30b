/**
 * Replaces a file whole. Whoever reads it, and whoever finds it after a kill, a power failure or on a full disk, sees the old content
 * or the new one, never half of it.
 *
 *     .baton-0a1b2c3d4e5f.tmp   beside the file: written, synced, and then renamed to the name of the file
 *
 * One that a killed process left stays behind until somebody replaces a file in that folder an hour later.
 */
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  fchmodSync,
  fsyncSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { open, rename, rm, stat, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { BatonError } from '@baton/shared/errors.ts'

const TEMPORARY = /(^|\/)\.baton-[0-9a-f]{12}\.tmp$/
/** In so long a time a byte gets to every file that somebody still writes. */
const LEFT_MS = 3_600_000

export interface Replacing {
  /** `private`: only its owner may read it. `kept`: as the file that is there, or as usual when there is none. */
  mode?: 'private' | 'kept'
  /**
   * What is on the disk before it counts as replaced. `folder`: file and name, so that a power failure takes nothing back. `file`: a
   * power failure may bring the old file back. `none`: for what is checked when it is read, or is worth little.
   */
  sync?: 'folder' | 'file' | 'none'
}

/** Is it a file that was not yet renamed to its own name? `path`: with / between folders. */
export function isTemporary(path: string): boolean {
  return TEMPORARY.test(path)
}

/**
 * Throws BatonError `disk-full`, and whatever else the system says. All is then as before; only when the folder can not be synced is the
 * new file in its place already, and a power failure may take it back.
 */
export function replaceWhole(path: string, content: string | Uint8Array, how: Replacing = {}): Promise<void> {
  return replaceWith(path, (file) => file.writeFile(content), how)
}

/**
 * As `replaceWhole`, for content that comes in pieces. `fill` writes it; the file has its temporary name until `fill` is through.
 * Throws what `fill` throws, too.
 */
export async function replaceWith<T>(
  path: string,
  fill: (file: FileHandle, temporary: string) => Promise<T>,
  { mode = 'private', sync = 'folder' }: Replacing = {},
): Promise<T> {
  const folder = dirname(path)
  const temporary = temporaryIn(folder)
  try {
    dropLeft(folder)
    const kept = mode === 'kept' ? modeOf(await stat(path).catch(() => undefined)) : undefined
    const file = await open(temporary, 'wx', firstMode(mode, kept))
    let filled: T
    try {
      filled = await fill(file, temporary)
      if (kept !== undefined) await file.chmod(kept)
      if (sync !== 'none') await file.sync()
    } finally {
      await file.close()
    }
    await rename(temporary, path)
    if (sync === 'folder') await syncFolder(folder)
    return filled
  } catch (error) {
    await rm(temporary, { force: true })
    throw diskError(error, path)
  }
}

/** As `replaceWhole`, for those that can not wait. */
export function replaceWholeSync(
  path: string,
  content: string | Uint8Array,
  { mode = 'private', sync = 'folder' }: Replacing = {},
): void {
  const folder = dirname(path)
  const temporary = temporaryIn(folder)
  try {
    dropLeft(folder)
    const kept = mode === 'kept' ? modeOf(statSync(path, { throwIfNoEntry: false })) : undefined
    const file = openSync(temporary, 'wx', firstMode(mode, kept))
    try {
      writeFileSync(file, content)
      if (kept !== undefined) fchmodSync(file, kept)
      if (sync !== 'none') fsyncSync(file)
    } finally {
      closeSync(file)
    }
    renameSync(temporary, path)
    if (sync === 'folder') syncFolderNow(folder)
  } catch (error) {
    rmSync(temporary, { force: true })
    throw diskError(error, path)
  }
}

/** A full disk as a coded error; anything else as it is. */
export function diskError(
  error: unknown,
  path = (error as NodeJS.ErrnoException | undefined)?.path,
): unknown {
  const code = (error as NodeJS.ErrnoException | undefined)?.code
  if (code !== 'ENOSPC' && code !== 'EDQUOT' && code !== 'EFBIG') return error
  return new BatonError('disk-full', path === undefined ? '' : `(${path})`, { cause: error })
}

function temporaryIn(folder: string): string {
  return join(folder, `.baton-${randomBytes(6).toString('hex')}.tmp`)
}

function modeOf(info: { mode: number } | undefined): number | undefined {
  return info && info.mode & 0o7777
}

/** Until it has the mode of the file that is there, nobody else reads it. */
function firstMode(mode: Replacing['mode'], kept: number | undefined): number {
  return mode === 'private' || kept !== undefined ? 0o600 : 0o666
}

const looked = new Set<string>()
const LOOKED_MAX = 1000

/** Removes what killed processes left in a folder; each process looks once. */
function dropLeft(folder: string): void {
  if (looked.has(folder)) return
  if (looked.size >= LOOKED_MAX) looked.clear()
  looked.add(folder)
  try {
    for (const name of readdirSync(folder).filter(isTemporary)) {
      const path = join(folder, name)
      const info = statSync(path, { throwIfNoEntry: false })
      if (info?.isFile() && Date.now() - info.mtimeMs > LEFT_MS) rmSync(path, { force: true })
    }
  } catch {
    // What keeps the file itself from being written is told then.
  }
}

/** File systems that can not do this, and folders that one may write to and not read. */
const UNSYNCED: readonly unknown[] = ['EINVAL', 'ENOTSUP', 'EACCES', 'EPERM', 'EISDIR']

async function syncFolder(path: string): Promise<void> {
  try {
    const folder = await open(path, 'r')
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  } catch (error) {
    if (!UNSYNCED.includes((error as NodeJS.ErrnoException).code)) throw error
  }
}

function syncFolderNow(path: string): void {
  try {
    const folder = openSync(path, 'r')
    try {
      fsyncSync(folder)
    } finally {
      closeSync(folder)
    }
  } catch (error) {
    if (!UNSYNCED.includes((error as NodeJS.ErrnoException).code)) throw error
  }
}
