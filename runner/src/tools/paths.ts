/**
 * Paths of a call, kept inside the workspace. Checked on what links lead to, not on how the path is written. A guard against
 * mistakes and stray links; a command run by `bash` has the rights of the runner's user.
 */
import { lstat, realpath } from 'node:fs/promises'
import { dirname, isAbsolute, join, relative, resolve, sep } from 'node:path'
import { Refusal } from './define.ts'

export interface InnerPath {
  /** Where it really is, links resolved. */
  real: string
  /** As the model knows it: relative to the root, with `/`. */
  shown: string
}

/**
 * Resolves a path that may not exist yet. Throws Refusal `outside-workspace`, also when the path is to be written and
 * belongs to git: to the folder `.git`, or to that of a repository or submodule further down.
 */
export async function innerPath(root: string, path: string, use: 'read' | 'write'): Promise<InnerPath> {
  if (path.includes('\0')) throw new Refusal('The path contains a NUL character. Give a path without it.')
  const top = await realpath(root)
  // A path that the model copied from output may be absolute, by either name of the root.
  const asked = isAbsolute(path) && isInside(root, path) ? relative(root, path) : path
  const real = await realish(resolve(top, asked))
  if (!isInside(top, real)) {
    const todo = 'Use a path inside the workspace, relative to its root.'
    throw new Refusal(`${path} leads out of the workspace. ${todo}`, 'outside-workspace')
  }
  const shown = relative(top, resolve(top, asked)).split(sep).join('/') || '.'
  if (use === 'write' && relative(top, real).split(sep).some(isGits)) {
    throw new Refusal(`${path} belongs to git. Use git commands to change it.`, 'outside-workspace')
  }
  return { real, shown }
}

/** The real place of a path whose end may not exist. */
async function realish(path: string): Promise<string> {
  try {
    return await realpath(path)
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ELOOP') throw new Refusal(`${path} is a link to itself.`)
    if (code === 'ENAMETOOLONG') throw new Refusal(`The path is too long: ${path.slice(0, 80)}…`)
    if (code === 'EACCES') throw new Refusal(`The runner may not access ${path}: permission denied.`)
    if (code !== 'ENOENT' && code !== 'ENOTDIR') throw error
    const link = await lstat(path).catch(() => undefined)
    if (link?.isSymbolicLink()) throw new Refusal(`${path} is a link to something that does not exist.`)
    const parent = dirname(path)
    if (parent === path) return path
    return join(await realish(parent), path.slice(parent.length).replace(/^[/\\]/, ''))
  }
}

/** Also as file systems see it that ignore case, trailing dots and invisible characters, or know short names (git's own rules). */
function isGits(name: string): boolean {
  const plain = name.replaceAll(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, '').replace(/[. ]+$/, '')
  return ['.git', 'git~1'].includes(plain.toLowerCase())
}

/** By how the paths are written; a folder is inside itself. */
export function isInside(top: string, path: string): boolean {
  const way = relative(top, path)
  return way === '' || (!isAbsolute(way) && way !== '..' && !way.startsWith(`..${sep}`))
}
