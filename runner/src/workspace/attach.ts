/** Puts the workspace of a session on files of this machine: those that it left here, or a work tree made for it. */
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { BatonError } from '@baton/shared/errors.ts'
import type { Surroundings } from '../tools/stay.ts'
import type { ObjectFormat } from './bundle.ts'
import { claimFolder, claimPlace } from './claims.ts'
import { identity } from './identity.ts'
import type { GitProgram } from './git-program.ts'
import { GitWorkspace } from './git-workspace.ts'
import { makeRoom, readPlace, type Here } from './places.ts'
import { findLinked, findRepository, type Repository } from './repository.ts'
import type { WorkspaceSettings } from './settings.ts'
import { runSetup } from './setup.ts'
import type { Workspace } from './workspace.ts'

/** What commands run in among the files of a session. */
export type SurroundingsOf = (workspace: Workspace) => Promise<Surroundings>

export interface Opened {
  workspace: GitWorkspace
  /** Sentences for the person. */
  notices: string[]
}

/** What is installed, built or cached, and never part of the work; for folders without git, which may have no .gitignore. */
export const FOLDER_IGNORES = [
  ...[
    'node_modules/',
    '.venv/',
    'venv/',
    '__pycache__/',
    '.tox/',
    '.mypy_cache/',
    '.pytest_cache/',
    '.ruff_cache/',
  ],
  ...['.gradle/', '.terraform/', '.next/', '.nuxt/', '.svelte-kit/', '.turbo/', '.parcel-cache/', '.cache/'],
  ...['.DS_Store', 'Thumbs.db', 'desktop.ini'],
]

/** A folder of the session's own is made ready for work; the person's own folder is as they want it. */
export function opened(
  here: Here,
  { workspace, notices = [] }: { workspace: GitWorkspace; notices?: string[] },
  { setup }: WorkspaceSettings,
  inPlace: boolean,
  surroundings: SurroundingsOf | undefined,
): Opened {
  if (setup !== undefined && !inPlace) {
    const how = { root: workspace.root, record: join(here.shadow, 'setup') }
    const around = surroundings ? { surroundings: () => surroundings(workspace) } : {}
    workspace.prepare((signal) => runSetup(setup, { ...how, ...around, signal }))
  }
  return { workspace, notices }
}

type Parts = Omit<Parameters<typeof GitWorkspace.attach>[0], 'carry' | 'settings'>

export function withSettings(
  parts: Parts,
  settings: WorkspaceSettings,
): Parameters<typeof GitWorkspace.attach>[0] {
  const { carry, setup } = settings
  const travels = carry.length > 0 || setup !== undefined
  return {
    ...parts,
    carry,
    ...(travels ? { settings: { carry, ...(setup === undefined ? {} : { setup }) } } : {}),
  }
}

/** The files as the session left them here; undefined when it has not been here, or may not go on where it was. */
export async function findPresent(
  here: Here,
  settings: WorkspaceSettings,
  how: 'begin' | 'return',
): Promise<{ workspace: GitWorkspace; repository: Repository; inPlace: boolean } | undefined> {
  const place = await readPlace(here)
  if (!place || !existsSync(place.root)) return undefined
  const { root, inPlace, kind } = place
  const base = { ...here, root, inPlace }
  if (kind === 'folder') {
    const path = join(here.data, 'shadow', `${here.sid}.git`)
    if (!existsSync(path)) return undefined
    const repository = await findRepository(here.git, path)
    const claim = inPlace
      ? await claimFolder(claimPlace({ root, data: here.data }), here.sid, how, root)
      : undefined
    if (inPlace && !claim) return undefined
    const workspace = await GitWorkspace.attach(
      withSettings({ ...base, repository, ...claim }, settings),
      FOLDER_IGNORES,
    )
    return { workspace, repository, inPlace }
  }
  if (!inPlace) {
    const linked = await findLinked(root)
    if (!linked) return undefined
    return {
      workspace: await GitWorkspace.attach(withSettings({ ...base, ...linked }, settings)),
      repository: linked.repository,
      inPlace,
    }
  }
  const repository = await findRepository(here.git, root).catch(() => undefined)
  if (!repository) return undefined
  const admin = await gitFolder(here.git, root)
  const claim = await claimFolder(claimPlace({ root, admin, data: here.data }), here.sid, how, root)
  if (!claim) return undefined
  return {
    workspace: await GitWorkspace.attach(withSettings({ ...base, repository, admin, ...claim }, settings)),
    repository,
    inPlace,
  }
}

/**
 * A linked work tree without files, HEAD detached at `commit`. A half-made one is replaced. Anything else that lies in its place
 * is moved aside.
 */
export async function createWorkTree(
  here: Here,
  repository: Repository,
  commit: string,
  settings: WorkspaceSettings,
): Promise<Opened> {
  const notices = await makeRoom(here)
  await mkdir(join(here.data, 'worktrees'), { recursive: true })
  const args = ['worktree', 'add', '--force', '--no-checkout', '--detach', here.root, commit]
  await here.git.bytes(args, { cwd: repository.common, env: identity() })
  const linked = await findLinked(here.root)
  if (!linked) throw new BatonError('internal', `git made no work tree at ${here.root}.`)
  const workspace = await GitWorkspace.attach(withSettings({ ...here, ...linked, inPlace: false }, settings))
  await workspace.begin()
  return { workspace, notices }
}

export function storeOf(here: Here, format: ObjectFormat): Promise<Repository> {
  return makeBare(here, join(here.data, 'shadow', `${here.sid}.git`), format)
}

export async function makeBare(here: Here, path: string, format: ObjectFormat): Promise<Repository> {
  await mkdir(path, { recursive: true })
  const args = ['init', '--quiet', '--bare', '--template=', `--object-format=${format}`, path]
  await here.git.bytes(args, { cwd: here.data })
  // What an agent throws away by accident it can find again, as in any clone.
  await here.git.bytes(['config', 'core.logAllRefUpdates', 'true'], { cwd: path })
  return findRepository(here.git, path)
}

export async function gitFolder(git: GitProgram, root: string): Promise<string> {
  return git.text(['rev-parse', '--absolute-git-dir'], { cwd: root })
}
