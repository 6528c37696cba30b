/**
 * Commands inside bubblewrap: they may write the work tree, a private /tmp and what the settings name; the rest of the disk can be
 * read, but for the home folder, the runner's data folder and the sockets under /run, which are not there. They see only
 * processes of their own, which end with them, daemons included. With the network on, this machine's own ports are in reach, too.
 *
 * Of the repository whose work tree it is they may write what git needs for commits (git-mounts.ts). What they write in the work tree
 * itself is free: who runs it outside, or runs git in a repository that they made there, runs what an agent wrote.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, realpathSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { BatonError } from '@baton/shared/errors.ts'
import type { Enclosure } from '../tools/stay.ts'
import { between, gitFoldersOf, gitMounts, isUnder } from './git-mounts.ts'
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
  /** Files of the work tree that stay as they are: what is in them would run outside. */
  kept?: readonly string[]
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
  const probe = spawnSync(program, [...box(), '--', 'true'], { timeout: PROBE_MS, encoding: 'utf8' })
  if (probe.error)
    return refuse(
      'code' in probe.error && probe.error.code === 'ENOENT'
        ? 'bubblewrap is not installed'
        : probe.error.message,
    )
  if (probe.status !== 0) return refuse(probe.stderr.trim().split('\n').at(-1) ?? 'bubblewrap does not work')
  return { wrap: (inner, args) => ({ program, args: [...box(), '--', inner, ...args] }) }
}

/** Gives the arguments of bubblewrap, for each command anew. Later mounts lie upon earlier ones. */
async function boxOf(options: SandboxOptions): Promise<() => string[]> {
  const { settings, root, data, home, path, kept = [] } = options
  const top = realpathSync(root)
  const own = (folder: string): string => (folder.startsWith('~/') ? join(home, folder.slice(2)) : folder)
  const hidden = [home, data].filter((folder) => existsSync(folder)).map((folder) => realpathSync(folder))
  const programs = path.split(delimiter).filter((folder) => isUnder(home, folder))
  const git = await gitFoldersOf(top)
  const base = [
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
  ]
  return () => {
    const files = kept.filter((file) => isUnder(top, file) && existsSync(file))
    const ways = new Set(files.flatMap((file) => between(top, file)))
    return [
      ...base,
      ...['--bind', top, top],
      ...[...ways].flatMap((folder) => ['--bind', folder, folder]),
      ...(git ? gitMounts(top, git) : []),
      ...files.flatMap((file) => ['--ro-bind-try', file, file]),
      ...['--chdir', top],
    ]
  }
}
