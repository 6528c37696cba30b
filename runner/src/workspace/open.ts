/**
 * Opens a new session's files. What a runner keeps of a session's files, in its data folder:
 *
 *     <data>/worktrees/<sid>        the files: a linked work tree of a repository, or the copy of a plain folder
 *     <data>/checkpoints/<sid>      the shadow (shadow.ts), and what is known of the last checkpoint here
 *     <data>/repos/<sid>.git        the repository itself, on a runner that has no clone of it
 *     <data>/shadow/<sid>.git       what is stored of a plain folder
 *     refs/baton/<sid>/checkpoint   in the repository: keeps the newest checkpoint from being collected
 *     refs/baton/<sid>/start        in the repository where it began: the files that it began with
 *
 * In place the files are the person's own folder; all else is the same.
 */
import { realpath } from 'node:fs/promises'
import { homedir } from 'node:os'
import { parse } from 'node:path'
import { BatonError } from '@baton/shared/errors.ts'
import {
  createWorkTree,
  findPresent,
  FOLDER_IGNORES,
  gitFolder,
  opened,
  storeOf,
  withSettings,
  type Opened,
  type SurroundingsOf,
} from './attach.ts'
import { claimFolder, claimPlace } from './claims.ts'
import { storePersonsFiles } from './first-state.ts'
import { GitWorkspace } from './git-workspace.ts'
import { makeRoom, markReady, placesOf, type Here } from './places.ts'
import { findRepository, type Repository } from './repository.ts'
import { DEFAULT_SETTINGS, type WorkspaceSettings } from './settings.ts'

export interface OpenOptions {
  /** The person's folder: any folder in a clone, or one without git. In a work tree of its own a session only reads it. */
  folder: string
  /** The runner's data folder. */
  data: string
  sid: string
  settings?: WorkspaceSettings
  /** What `setup` runs in; those of the runner when absent. */
  surroundings?: SurroundingsOf
  /** The git executable; `git` when absent. */
  git?: string
}

/**
 * Opens the workspace of a new session: HEAD of the repository plus whatever lies uncommitted in it, untracked files too; or the
 * folder itself. Called again for the same session (its runner crashed before the first checkpoint) it returns the files as they are.
 * Throws BatonError `workspace-missing`, `workspace-not-git` (bare), `workspace-in-use`, `workspace-unfit`, `workspace-unreadable`,
 * `disk-full`.
 */
export async function openWorkspace(options: OpenOptions): Promise<Opened> {
  const here = placesOf(options)
  const { settings = DEFAULT_SETTINGS } = options
  const { git, data, shadow } = here
  const present = await findPresent(here, settings, 'begin')
  if (present) return opened(here, present, settings, present.inPlace, options.surroundings)

  const repository = await findRepository(git, options.folder).catch((error: unknown) => {
    if (error instanceof BatonError && error.code === 'workspace-not-git') return undefined
    throw error
  })
  if (!repository)
    return opened(
      here,
      await openFolder(here, options.folder, settings),
      settings,
      true,
      options.surroundings,
    )
  if (repository.top === undefined) {
    throw new BatonError('workspace-not-git', `${options.folder} is a bare repository: it has no files.`)
  }
  if (settings.place === 'in-place') {
    return opened(
      here,
      await openInPlace(here, repository, repository.top, settings),
      settings,
      true,
      options.surroundings,
    )
  }
  const first = await storePersonsFiles({
    git,
    data,
    shadow,
    repository,
    top: repository.top,
    carry: settings.carry,
  })
  const { workspace } = await createWorkTree(here, repository, first.commit, settings)
  await workspace.fill(first.tree, first.carried)
  await workspace.settle(first.head, first)
  await markReady(here, { root: here.root, inPlace: false, kind: 'git' })
  return opened(here, { workspace }, settings, false, options.surroundings)
}

async function openInPlace(
  here: Here,
  repository: Repository,
  top: string,
  settings: WorkspaceSettings,
): Promise<{ workspace: GitWorkspace }> {
  const admin = await gitFolder(here.git, top)
  const claim = await claimFolder(claimPlace({ root: top, admin, data: here.data }), here.sid, 'begin', top)
  await makeRoom(here)
  const parts = { ...here, root: top, inPlace: true, repository, admin, ...claim }
  const workspace = await GitWorkspace.attach(withSettings(parts, settings))
  await workspace.begin()
  await workspace.start(repository.head ?? '')
  await markReady(here, { root: top, inPlace: true, kind: 'git' })
  return { workspace }
}

async function openFolder(
  here: Here,
  folder: string,
  settings: WorkspaceSettings,
): Promise<{ workspace: GitWorkspace }> {
  const root = await realpath(folder)
  if (root === parse(root).root || root === homedir()) {
    throw new BatonError('workspace-unfit', `(${root} holds far more than one piece of work)`)
  }
  const claim = await claimFolder(claimPlace({ root, data: here.data }), here.sid, 'begin', root)
  await makeRoom(here)
  const repository = await storeOf(here, 'sha1')
  const parts = { ...here, root, inPlace: true, repository, ...claim }
  const workspace = await GitWorkspace.attach(withSettings(parts, settings), FOLDER_IGNORES)
  await workspace.start('')
  await markReady(here, { root, inPlace: true, kind: 'folder' })
  return { workspace }
}
