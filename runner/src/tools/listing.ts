/** The files of a folder on the disk, without those that are ignored. */
import type { Dirent } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { GitProgram, OFFLINE } from '../workspace/git-program.ts'
import { withOwnExcludes } from './excludes.ts'

const WALKED_MAX = 100_000

export interface Listing {
  /** Relative to the folder. Some may be gone: git lists what was deleted and not committed. */
  paths: string[]
  isThere(path: string): Promise<boolean>
}

/** Undefined when there is no such folder. */
export async function listing(folder: string, signal: AbortSignal): Promise<Listing | undefined> {
  const info = await lstat(folder).catch(() => undefined)
  if (!info?.isDirectory()) return undefined
  return {
    paths: await filesIn(folder, signal),
    isThere: async (path) => (await lstat(join(folder, path)).catch(() => undefined)) !== undefined,
  }
}

/** Paths relative to the folder. In a git work tree what git tracks or would track, else all but .git and node_modules. */
async function filesIn(folder: string, signal: AbortSignal): Promise<string[]> {
  const args = ['ls-files', '--cached', '--others', '--exclude-standard', '-z']
  const own = await withOwnExcludes(folder)
  const listed = await new GitProgram().run([...own, ...args], { cwd: folder, signal, env: OFFLINE })
  if (listed.code !== 0) return walk(folder)
  return listed.stdout
    .toString('utf8')
    .split('\0')
    .filter((path) => path !== '')
}

async function walk(top: string): Promise<string[]> {
  const found: string[] = []
  const open = ['']
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    const entries: Dirent[] = await readdir(join(top, folder), { withFileTypes: true }).catch(() => [])
    for (const entry of entries) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`
      if (!entry.isDirectory()) found.push(path)
      else if (entry.name !== '.git' && entry.name !== 'node_modules') open.push(path)
    }
    if (found.length > WALKED_MAX) break
  }
  return found
}
