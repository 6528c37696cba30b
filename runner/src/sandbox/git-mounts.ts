/**
 * What of a repository commands in the sandbox may write: enough for commits, and nothing that git, run by the person outside,
 * takes for a setting, a hook or another place to look for them.
 *
 * Git finds such things by names in its folder: `config`, `config.worktree`, `hooks`, `info`, `modules`, `worktrees`, and
 * `commondir`, which must not even exist in the main one. So the folder that work trees share is not lent as it is: a tmpfs lies
 * in its place, in which the parts that commits go to are writable and all others are read-only; what is created beside them is
 * gone with the command. Each part is a mount of its own, so that nothing can be moved away and replaced.
 *
 * In a repository's main work tree (in place) the same folder holds HEAD and index, which git replaces by renaming: it is read-only as
 * a whole.
 */
import { closeSync, lstatSync, mkdirSync, openSync, readdirSync, readFileSync, realpathSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { GitProgram } from '../workspace/git-program.ts'

/** Git folders of a work tree, real paths: its own, and that of the repository. */
export interface GitFolders {
  own: string
  common: string
}

/** Folders that commits go to. Large files and recorded resolutions of conflicts only where there are any. */
const WRITTEN = ['objects', 'refs', 'logs', 'lfs', 'rr-cache']
const ALWAYS_THERE = ['objects/pack', 'objects/info', 'refs/baton', 'logs']
/** In a work tree's own folder. */
const POINTERS = ['commondir', 'gitdir', 'config.worktree']

/** Undefined: no work tree of a repository. */
export async function gitFoldersOf(top: string): Promise<GitFolders | undefined> {
  const args = ['rev-parse', '--path-format=absolute', '--git-dir', '--git-common-dir']
  const asked = await new GitProgram().run(args, { cwd: top })
  if (asked.code !== 0) return undefined
  const [own = '', common = ''] = asked.stdout.toString('utf8').trimEnd().split('\n')
  return { own: realpathSync(own), common: realpathSync(common) }
}

/**
 * Arguments of bubblewrap that lend a repository to its work tree `top`, which is mounted already. Looks anew at what is there:
 * other sessions and the person work in it, too. Throws what the file system says.
 */
export function gitMounts(top: string, { own, common }: GitFolders): string[] {
  const link = join(top, '.git')
  const shared = own === common ? fixed(common) : inParts(own, common)
  return [
    ...alternates(join(common, 'objects')).flatMap((store) => ['--ro-bind-try', store, store]),
    ...[own, common].flatMap((folder) => between(top, folder).flatMap(writable)),
    ...shared,
    ...(lstatSync(link, { throwIfNoEntry: false })?.isFile() ? fixed(link) : []),
  ]
}

function inParts(own: string, common: string): string[] {
  for (const folder of ALWAYS_THERE) mkdirSync(join(common, folder), { recursive: true })
  closeSync(openSync(join(own, 'config.worktree'), 'a'))
  const entries = readdirSync(common, { withFileTypes: true })
  const parts = entries.filter((entry) => !entry.isSocket() && !entry.isFIFO()).map(({ name }) => name)
  const written = parts.filter((name) => WRITTEN.includes(name)).map((name) => join(common, name))
  const others = parts.filter((name) => !WRITTEN.includes(name)).map((name) => join(common, name))
  const pack = join(common, 'objects/pack')
  return [
    ...['--tmpfs', common],
    ...written.flatMap(writable),
    ...others.flatMap(kept),
    // Packed refs can't be changed in here, so branches not deleted by name. Were there none, git would pack into the tmpfs and
    // remove what it packed.
    ...(parts.includes('packed-refs') ? [] : ['--dev-bind', '/dev/null', join(common, 'packed-refs')]),
    // History that is packed, and the checkpoints of all sessions, outlive whatever is deleted in here.
    ...writable(pack),
    ...readdirSync(pack).flatMap((name) => kept(join(pack, name))),
    ...['objects/info', 'refs/baton'].flatMap((name) => fixed(join(common, name))),
    ...writable(own),
    ...POINTERS.flatMap((name) => fixed(join(own, name))),
    // Collecting garbage would only fail, at what it may not remove.
    ...['--setenv', 'GIT_CONFIG_COUNT', '1'],
    ...['--setenv', 'GIT_CONFIG_KEY_0', 'gc.auto', '--setenv', 'GIT_CONFIG_VALUE_0', '0'],
  ]
}

const writable = (path: string): string[] => ['--bind', path, path]
const fixed = (path: string): string[] => ['--ro-bind', path, path]
/** May vanish meanwhile: it is then not there. */
const kept = (path: string): string[] => ['--ro-bind-try', path, path]

/** Folders from the top down to one inside it: as mounts they can't be renamed, and the one inside stays in its place. */
export function between(top: string, inner: string): string[] {
  const above = dirname(inner)
  return isUnder(top, above) && above !== top ? [...between(top, above), above] : []
}

/** Object stores of other repositories that this one borrows from. */
function alternates(objects: string): string[] {
  try {
    const lines = readFileSync(join(objects, 'info/alternates'), 'utf8').split('\n')
    return lines.filter((line) => line !== '' && !line.startsWith('#')).map((line) => resolve(objects, line))
  } catch {
    return []
  }
}

export function isUnder(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`)
}
