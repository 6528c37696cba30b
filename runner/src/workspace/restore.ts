/** Brings a session's files to a checkpoint, on any runner. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import {
  createWorkTree,
  findPresent,
  FOLDER_IGNORES,
  makeBare,
  opened,
  storeOf,
  withSettings,
  type Opened,
  type SurroundingsOf,
} from './attach.ts'
import type { ObjectFormat } from './bundle.ts'
import { GitWorkspace } from './git-workspace.ts'
import { applyPacks, PackList, sharesHistory } from './packs.ts'
import { makeRoom, markReady, placesOf, readPlace, type Here } from './places.ts'
import { findLinked, findRepository, hasCommit, type Repository } from './repository.ts'
import { DEFAULT_SETTINGS, type WorkspaceSettings } from './settings.ts'
import type { Checkpoint, Pieces } from './workspace.ts'

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

function formatOf({ commit }: Checkpoint): ObjectFormat {
  return commit.length === 64 ? 'sha256' : 'sha1'
}
