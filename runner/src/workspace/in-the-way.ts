/**
 * What lies where a checkpoint has something else: a folder in the place of a file, a file in the place of a folder. To lay the
 * checkpoint out git removes it, with all that it knows nothing of: ignored files, what is installed, the .git of a repository inside.
 */
import { lstatSync, type Stats } from 'node:fs'
import { cp, mkdir, readdir, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { BatonError } from '@baton/shared/errors.ts'
import { fullPath, shownPath } from './byte-paths.ts'

/** Paths that a checkpoint adds or changes. */
export interface Coming {
  /** Files and links. */
  files: string[]
  /** Submodules: a folder may lie there. */
  modules: string[]
}

/** Files, links and folders that must make way and that `stored`, paths of files, does not hold whole. */
export async function findInTheWay(
  root: string,
  { files, modules }: Coming,
  stored: () => Promise<ReadonlySet<string>>,
): Promise<string[]> {
  const found = new Set<string>()
  /** By path: is it a folder, so that it may be gone into? */
  const passable = new Map<string, boolean>()
  const passes = async (folder: string): Promise<boolean> => {
    const known = passable.get(folder)
    if (known !== undefined) return known
    const parent = parentOf(folder)
    const info = parent === '' || (await passes(parent)) ? lookAt(root, folder) : undefined
    const isFolder = info?.isDirectory() ?? false
    if (info && !isFolder && !(await stored()).has(folder)) found.add(folder)
    passable.set(folder, isFolder)
    return isFolder
  }
  for (const [n, path] of [...files, ...modules].entries()) {
    const parent = parentOf(path)
    if (parent !== '' && !(await passes(parent))) continue
    const info = lookAt(root, path)
    if (!info || info.isFile() || info.isSymbolicLink()) continue
    const isModule = n >= files.length
    if (!info.isDirectory()) found.add(path)
    else if (!isModule && (await holdsMore(root, path, await stored()))) found.add(path)
  }
  return [...found].toSorted()
}

/** Moves it below `place`, also to another file system. Throws BatonError `workspace-busy`; then it is where it was. */
export async function moveTo(root: string, path: string, place: string): Promise<void> {
  const [from, to] = [fullPath(root, path), fullPath(place, path)]
  try {
    await mkdir(fullPath(place, dirname(path)), { recursive: true })
    await rename(from, to).catch(async (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EXDEV') throw error
      const [source, copy] = [from.toString('utf8'), to.toString('utf8')]
      await cp(source, copy, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true })
      await rm(from, { recursive: true })
    })
  } catch (cause) {
    const words = `(${shownPath(path)} lies where the session has something else, and can not be moved to ${place}`
    throw new BatonError('workspace-busy', `${words}: ${(cause as Error).message})`, { cause })
  }
}

async function holdsMore(root: string, folder: string, stored: ReadonlySet<string>): Promise<boolean> {
  const entries = await readdir(fullPath(root, folder), { encoding: 'buffer', withFileTypes: true })
  for (const entry of entries) {
    const path = `${folder}/${entry.name.toString('latin1')}`
    if (entry.isDirectory() ? await holdsMore(root, path, stored) : !stored.has(path)) return true
  }
  return false
}

function lookAt(root: string, path: string): Stats | undefined {
  return lstatSync(fullPath(root, path), { throwIfNoEntry: false })
}

function parentOf(path: string): string {
  return path.slice(0, Math.max(0, path.lastIndexOf('/')))
}
