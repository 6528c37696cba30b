/**
 * Opens a new session's files, or brings them to a checkpoint on any runner.
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
import { existsSync } from 'node:fs'
import { mkdir, realpath } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join, parse } from 'node:path'
import { BatonError } from '@baton/shared/errors.ts'
import type { Surroundings } from '../tools/stay.ts'
import type { ObjectFormat } from './bundle.ts'
import { claimFolder, claimPlace } from './claims.ts'
import { identity } from './identity.ts'
import { storePersonsFiles } from './first-state.ts'
import type { GitProgram } from './git-program.ts'
import { GitWorkspace } from './git-workspace.ts'
import { applyPacks, PackList, sharesHistory } from './packs.ts'
import { makeRoom, markReady, placesOf, readPlace, type Here } from './places.ts'
import { findLinked, findRepository, hasCommit, type Repository } from './repository.ts'
import { DEFAULT_SETTINGS, type WorkspaceSettings } from './settings.ts'
import { runSetup } from './setup.ts'
import type { Checkpoint, Pieces, Workspace } from './workspace.ts'

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

export interface RestoreOptions {
  /** A clone that may have the history already. Absent or of other history: a repository in the data folder is used. */
  folder?: string
  data: string
  sid: string
  /** Every pack of the checkpoint, oldest first. Read only when it is needed. */
  packs: readonly Pieces[]
  checkpoint: Checkpoint
  /** The person's settings; asked for only when `folder` proves to be a clone of theirs. Else those of the checkpoint count. */
  settings?: () => Promise<WorkspaceSettings>
  surroundings?: SurroundingsOf
  git?: string
}

/** What commands run in among the files of a session. */
export type SurroundingsOf = (workspace: Workspace) => Promise<Surroundings>

export interface Opened {
  workspace: GitWorkspace
  /** Sentences for the person. */
  notices: string[]
}

/** What is installed, built or cached, and never part of the work; for folders without git, which may have no .gitignore. */
const FOLDER_IGNORES = [
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
  await workspace.settle(first.head, first.large)
  await markReady(here, { root: here.root, inPlace: false, kind: 'git' })
  return opened(here, { workspace }, settings, false, options.surroundings)
}

/**
 * Brings a session's workspace to a checkpoint. Local changes that no checkpoint knows are first kept (I11), and told.
 * Throws BatonError `checkpoint-torn` before any file was touched when packs are missing or damaged (F46), or when a file is not as
 * stored afterwards (F45); `disk-full`, `workspace-unreadable`.
 */
export async function restoreWorkspace(options: RestoreOptions): Promise<Opened> {
  const here = placesOf(options)
  const { git, data, sid } = here
  const { checkpoint } = options
  const carried = { ...DEFAULT_SETTINGS, ...checkpoint.settings }
  await using packs = new PackList(options.packs, join(data, 'incoming', sid))
  const clone = await cloneOf(here, options.folder)
  const wanted = (repository: Repository): Promise<WorkspaceSettings> =>
    options.settings && clone?.common === repository.common ? options.settings() : Promise.resolve(carried)

  const notices: string[] = []
  const place = await readPlace(here)
  if (place) {
    // What an agent wrote in the person's own folder must not become the settings.
    const linked = place.inPlace ? undefined : await findLinked(place.root)
    const settings = linked ? await wanted(linked.repository) : carried
    const present = await findPresent(here, settings, 'return')
    if (present) {
      const { workspace, repository } = present
      try {
        if ((await workspace.knownCommit()) !== (checkpoint.state ?? checkpoint.commit)) {
          await applyPacks(git, repository, packs, checkpoint)
        }
        notices.push(...(await workspace.adopt(checkpoint)))
      } catch (error) {
        await workspace.abandon()
        throw error
      }
      await markReady(here, place)
      return opened(here, { workspace, notices }, settings, place.inPlace, options.surroundings)
    }
    if (place.inPlace) {
      notices.push(`${place.root} is in use by another session or gone; this one goes on in ${here.root}.`)
    }
  }
  if (checkpoint.kind === 'folder') {
    const repository = await storeOf(here, formatOf(checkpoint))
    await applyPacks(git, repository, packs, checkpoint)
    notices.push(...(await makeRoom(here)))
    await mkdir(here.root, { recursive: true })
    const workspace = await GitWorkspace.attach(
      withSettings({ ...here, repository, inPlace: false }, carried),
      FOLDER_IGNORES,
    )
    await workspace.fill(checkpoint.tree)
    notices.push(...(await workspace.arrive(checkpoint)))
    await markReady(here, { root: here.root, inPlace: false, kind: 'folder' })
    return opened(here, { workspace, notices }, carried, false, options.surroundings)
  }
  const repository = await chooseRepository(here, clone, packs, checkpoint)
  await applyPacks(git, repository, packs, checkpoint)
  const settings = await wanted(repository)
  const made = await createWorkTree(here, repository, checkpoint.head || checkpoint.commit, settings)
  const { workspace } = made
  notices.push(...made.notices)
  await workspace.fill(checkpoint.tree)
  notices.push(...(await workspace.arrive(checkpoint)))
  await markReady(here, { root: here.root, inPlace: false, kind: 'git' })
  return opened(here, { workspace, notices }, settings, false, options.surroundings)
}

/** A folder of the session's own is made ready for work; the person's own folder is as they want it. */
function opened(
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

function withSettings(parts: Parts, settings: WorkspaceSettings): Parameters<typeof GitWorkspace.attach>[0] {
  const { carry, setup } = settings
  const travels = carry.length > 0 || setup !== undefined
  return {
    ...parts,
    carry,
    ...(travels ? { settings: { carry, ...(setup === undefined ? {} : { setup }) } } : {}),
  }
}

/** The files as the session left them here; undefined when it has not been here, or may not go on where it was. */
async function findPresent(
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

/**
 * A linked work tree without files, HEAD detached at `commit`. A half-made one is replaced. Anything else that lies in its place
 * is moved aside.
 */
async function createWorkTree(
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

/** The repository of a folder of this machine, if it is one. */
async function cloneOf(here: Here, folder: string | undefined): Promise<Repository | undefined> {
  if (folder === undefined) return undefined
  return findRepository(here.git, folder).catch(() => undefined)
}

async function chooseRepository(
  here: Here,
  clone: Repository | undefined,
  packs: PackList,
  checkpoint: Checkpoint,
): Promise<Repository> {
  const own = join(here.data, 'repos', `${here.sid}.git`)
  if (clone) {
    if (checkpoint.head !== '' && (await hasCommit(here.git, clone, checkpoint.head))) return clone
    if (await sharesHistory(here.git, clone, packs, checkpoint, `${own}.probe`)) return clone
  }
  return makeBare(here, own, formatOf(checkpoint))
}

function storeOf(here: Here, format: ObjectFormat): Promise<Repository> {
  return makeBare(here, join(here.data, 'shadow', `${here.sid}.git`), format)
}

async function makeBare(here: Here, path: string, format: ObjectFormat): Promise<Repository> {
  await mkdir(path, { recursive: true })
  const args = ['init', '--quiet', '--bare', '--template=', `--object-format=${format}`, path]
  await here.git.bytes(args, { cwd: here.data })
  // What an agent throws away by accident it can find again, as in any clone.
  await here.git.bytes(['config', 'core.logAllRefUpdates', 'true'], { cwd: path })
  return findRepository(here.git, path)
}

function formatOf({ commit }: Checkpoint): ObjectFormat {
  return commit.length === 64 ? 'sha256' : 'sha1'
}

async function gitFolder(git: GitProgram, root: string): Promise<string> {
  return git.text(['rev-parse', '--absolute-git-dir'], { cwd: root })
}
