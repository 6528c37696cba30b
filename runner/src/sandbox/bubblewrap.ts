/**
 * Commands inside bubblewrap: they may write the work tree, a private /tmp and what the settings name; the rest of the disk can be
 * read, but for the home folder, the runner's data folder and the sockets under /run, which are not there. They see only
 * processes of their own, which end with them, daemons included. With the network on, this machine's own ports are in reach, too.
 *
 * Of the repository whose work tree it is they may write what git needs for commits, but neither its hooks nor its settings:
 * those would make the person's own git run what an agent wrote.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs'
import { delimiter, join, resolve } from 'node:path'
import { BatonError } from '@baton/shared/errors.ts'
import type { Enclosure } from '../tools/stay.ts'
import { GitProgram } from '../workspace/git-program.ts'
import type { SandboxSettings } from './settings.ts'

const PROBE_MS = 10_000

export interface SandboxOptions {
  settings: Omit<Exclude<SandboxSettings, boolean>, 'env'>
  /** The session's work tree. */
  root: string
  /** The runner's data folder: it holds the keys. */
  data: string
  home: string
  /** Programs of the home folder that commands find by it. */
  path: string
  /** The bubblewrap program. */
  program?: string
  platform?: NodeJS.Platform
}

/** The sandbox of a session. `missing`: why commands are refused; they never run without it instead. */
export async function sandboxOf(options: SandboxOptions): Promise<Enclosure & { missing?: BatonError }> {
  const { program = 'bwrap', platform = process.platform } = options
  const refuse = (why: string): Enclosure & { missing: BatonError } => {
    const missing = new BatonError('sandbox-missing', `(${why})`)
    return {
      missing,
      wrap: () => {
        throw missing
      },
    }
  }
  if (platform !== 'linux') return refuse(`this is ${platform}`)
  const box = await boxOf(options)
  const probe = spawnSync(program, [...box, '--', 'true'], { timeout: PROBE_MS, encoding: 'utf8' })
  if (probe.error)
    return refuse(
      'code' in probe.error && probe.error.code === 'ENOENT'
        ? 'bubblewrap is not installed'
        : probe.error.message,
    )
  if (probe.status !== 0) return refuse(probe.stderr.trim().split('\n').at(-1) ?? 'bubblewrap does not work')
  return { wrap: (inner, args) => ({ program, args: [...box, '--', inner, ...args] }) }
}

/** Arguments of bubblewrap. Later mounts lie upon earlier ones. */
async function boxOf({ settings, root, data, home, path }: SandboxOptions): Promise<string[]> {
  const top = realpathSync(root)
  const own = (folder: string): string => (folder.startsWith('~/') ? join(home, folder.slice(2)) : folder)
  const hidden = [home, data].filter((folder) => existsSync(folder)).map((folder) => realpathSync(folder))
  const programs = path.split(delimiter).filter((folder) => isUnder(home, folder))
  const git = await gitFolders(top)
  return [
    ...['--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup-try'],
    ...(settings.network ? [] : ['--unshare-net']),
    ...['--die-with-parent', '--cap-drop', 'ALL'],
    ...['--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'],
    ...['/tmp', '/var/tmp', '/run']
      .filter((folder) => existsSync(folder))
      .flatMap((folder) => ['--tmpfs', realpathSync(folder)]),
    // Where names are looked up, on many systems.
    ...['--ro-bind-try', '/run/systemd/resolve', '/run/systemd/resolve'],
    ...hidden.filter((folder) => folder !== '/').flatMap((folder) => ['--tmpfs', folder]),
    ...[...programs, ...settings.read.map(own)].flatMap((folder) => ['--ro-bind-try', folder, folder]),
    ...settings.write.map(own).flatMap((folder) => ['--bind-try', folder, folder]),
    ...git.lent.flatMap((folder) => ['--ro-bind-try', folder, folder]),
    ...git.written.flatMap((folder) => ['--bind', folder, folder]),
    ...['--bind', top, top],
    ...git.kept.filter((kept) => existsSync(kept)).flatMap((kept) => ['--ro-bind', kept, kept]),
    ...['--chdir', top],
  ]
}

interface GitFolders {
  written: string[]
  /** Object stores of other repositories that this one borrows from. */
  lent: string[]
  /** Read-only within what is written. */
  kept: string[]
}

async function gitFolders(top: string): Promise<GitFolders> {
  const args = ['rev-parse', '--path-format=absolute', '--git-dir', '--git-common-dir']
  const asked = await new GitProgram().run(args, { cwd: top })
  if (asked.code !== 0) return { written: [], lent: [], kept: [] }
  const [own = '', common = ''] = asked.stdout.toString('utf8').trim().split('\n')
  const kept = ['hooks', 'config', 'info/attributes'].map((name) => join(common, name))
  kept.push(join(own, 'config.worktree'))
  const link = join(top, '.git')
  if (statSync(link, { throwIfNoEntry: false })?.isFile()) kept.push(link)
  return { written: isUnder(top, common) ? [] : [common], lent: alternates(join(common, 'objects')), kept }
}

function alternates(objects: string): string[] {
  try {
    const lines = readFileSync(join(objects, 'info/alternates'), 'utf8').split('\n')
    return lines.filter((line) => line !== '' && !line.startsWith('#')).map((line) => resolve(objects, line))
  } catch {
    return []
  }
}

function isUnder(folder: string, path: string): boolean {
  return path === folder || path.startsWith(folder.endsWith('/') ? folder : `${folder}/`)
}
