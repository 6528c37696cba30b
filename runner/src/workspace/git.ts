/**
 * A session's workspace as a linked work tree of a git repository.
 *
 *     <data>/worktrees/<sid>        the files, on branch baton/<first 8 of sid>
 *     <data>/checkpoints/<sid>      the shadow (shadow.ts), and what is known of the last checkpoint here
 *     <data>/repos/<sid>.git        the repository itself, on a runner that has no clone of it
 *     refs/baton/<sid>/checkpoint   in the repository: keeps the newest checkpoint from being collected
 *
 * A checkpoint holds files, HEAD and branch. What was staged is unstaged after a move, a merge or rebase under way is not
 * under way any more, other branches and stashes made meanwhile stay behind.
 */
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { BatonError } from '@baton/shared/errors.ts'
import { GitProgram } from './git-program.ts'
import { GitWorkspace, moveAside } from './git-workspace.ts'
import { applyPacks, PackList, sharesHistory, type PackSource } from './packs.ts'
import { findLinked, findRepository, hasCommit, type Repository } from './repository.ts'
import { Shadow } from './shadow.ts'
import type { Checkpoint } from './workspace.ts'

export interface OpenOptions {
  /** The person's clone; any folder in it. Its files and index are only read. */
  repository: string
  /** The runner's data folder. */
  data: string
  sid: string
  /** The git executable; `git` when absent. */
  git?: string
}

export interface RestoreOptions {
  /** A clone that may have the history already. Absent or of other history: a repository in the data folder is used. */
  repository?: string
  data: string
  sid: string
  /** Every pack of the checkpoint, oldest first. A function is called only when its pack is needed. */
  packs: PackSource
  checkpoint: Checkpoint
  git?: string
}

/**
 * Opens the workspace of a new session: HEAD of the repository plus whatever lies uncommitted in it, untracked files too.
 * Called again for the same session (its runner crashed before the first checkpoint) it returns the work tree as it is.
 * Throws BatonError `workspace-missing`, `workspace-not-git`, `workspace-no-commit`, `workspace-unreadable`, `disk-full`.
 */
export async function openGitWorkspace(options: OpenOptions): Promise<GitWorkspace> {
  const git = new GitProgram(options.git)
  const paths = placesOf(options.data, options.sid)
  const present = await findLinked(paths.root)
  if (present && (await isAt(paths.shadow, 'ready'))) {
    return GitWorkspace.attach({ git, sid: options.sid, data: options.data, ...paths, ...present })
  }

  const repository = await findRepository(git, options.repository)
  if (repository.top === undefined) {
    throw new BatonError('workspace-not-git', `${options.repository} is a bare repository: it has no files.`)
  }
  if (repository.head === undefined) throw new BatonError('workspace-no-commit', options.repository)
  const head = repository.head
  const tree = await storePersonsFiles(git, repository, head, repository.top, options.data, paths.shadow)
  const workspace = await createWorkTree(git, repository, options.data, options.sid, head)
  await workspace.fill(tree, head)
  await markStage(paths.shadow, 'ready')
  return workspace
}

/**
 * Brings a session's workspace to a checkpoint, on any runner. Local changes that no checkpoint knows are first kept on a
 * branch, whose name is `kept` (I11). Throws BatonError `checkpoint-torn` before any file was touched when packs are missing
 * or damaged (F46), or when a file is not as stored afterwards (F45); `disk-full`, `workspace-unreadable`.
 */
export async function restoreGitWorkspace(
  options: RestoreOptions,
): Promise<GitWorkspace & { kept?: string }> {
  const git = new GitProgram(options.git)
  const { checkpoint, sid, data } = options
  const paths = placesOf(data, sid)
  const packs = new PackList(options.packs)
  const present = await findLinked(paths.root)
  if (present && (await isAt(paths.shadow, 'ready'))) {
    const workspace = await GitWorkspace.attach({ git, sid, data, ...paths, ...present })
    if ((await workspace.knownCheckpoint())?.commit !== checkpoint.commit) {
      await applyPacks(git, present.repository, packs, checkpoint)
    }
    const kept = await workspace.adopt(checkpoint)
    await markStage(paths.shadow, 'ready')
    return kept === undefined ? workspace : Object.assign(workspace, { kept })
  }

  const repository = await chooseRepository(git, options, packs)
  await applyPacks(git, repository, packs, checkpoint)
  const workspace = await createWorkTree(git, repository, data, sid, checkpoint.head)
  await workspace.fill(checkpoint.tree, checkpoint.head, checkpoint.branch)
  await workspace.arrived(checkpoint)
  await markStage(paths.shadow, 'ready')
  return workspace
}

function placesOf(data: string, sid: string): { root: string; shadow: string } {
  return { root: join(data, 'worktrees', sid), shadow: join(data, 'checkpoints', sid) }
}

/** How far the making of a work tree got, so that a half-made one is never taken for whole. */
type Stage = 'making' | 'ready'

async function markStage(shadow: string, stage: Stage): Promise<void> {
  await writeFile(join(shadow, 'stage'), stage)
}

async function isAt(shadow: string, stage: Stage): Promise<boolean> {
  return (await readFile(join(shadow, 'stage'), 'utf8').catch(() => '')) === stage
}

/** The tree of what the person sees: tracked, staged and untracked files; not the ignored ones. */
async function storePersonsFiles(
  git: GitProgram,
  repository: Repository,
  head: string,
  top: string,
  data: string,
  dir: string,
): Promise<string> {
  const shadow = new Shadow({ git, dir, root: top, repository, index: 'index.start' })
  await shadow.prepare(repository, data)
  try {
    await shadow.list(head)
    const listed = await git.bytes(['ls-files', '-t', '-s', '-z'], { cwd: top })
    const entries = [...listed.toString('utf8').matchAll(/(.) (\d+ [0-9a-f]+) (\d)\t([^\0]*)\0/g)]
    await shadow.include(entries.filter(([, tag]) => tag === 'H').map((entry) => entry[4] ?? ''))
    const tree = await shadow.store()
    // A sparse checkout leaves files out on purpose: absent is not deleted.
    const sparse = entries.filter(([, tag]) => tag === 'S').map((entry) => `${entry[2]}\t${entry[4]}\0`)
    if (sparse.length === 0) return tree
    await shadow.run(['update-index', '-z', '--index-info'], { input: sparse.join('') })
    return await shadow.text(['write-tree'])
  } finally {
    await rm(join(dir, 'index.start'), { force: true })
  }
}

/**
 * A linked work tree without files, HEAD detached at `head`. A half-made one is replaced: nobody has worked in it. Anything else
 * that lies in its place is moved aside.
 */
async function createWorkTree(
  git: GitProgram,
  repository: Repository,
  data: string,
  sid: string,
  head: string,
): Promise<GitWorkspace> {
  const paths = placesOf(data, sid)
  if (await isAt(paths.shadow, 'making')) await rm(paths.root, { recursive: true, force: true })
  else await moveAside(paths.root)
  await rm(paths.shadow, { recursive: true, force: true })
  await mkdir(paths.shadow, { recursive: true })
  await markStage(paths.shadow, 'making')
  await mkdir(join(data, 'worktrees'), { recursive: true })
  const args = ['worktree', 'add', '--force', '--no-checkout', '--detach', paths.root, head]
  await git.bytes(args, { cwd: repository.common })
  const linked = await findLinked(paths.root)
  if (!linked) throw new BatonError('internal', `git made no work tree at ${paths.root}.`)
  return GitWorkspace.attach({ git, sid, data, ...paths, ...linked })
}

async function chooseRepository(
  git: GitProgram,
  options: RestoreOptions,
  packs: PackList,
): Promise<Repository> {
  const own = join(options.data, 'repos', `${options.sid}.git`)
  const given = options.repository && (await findRepository(git, options.repository).catch(() => undefined))
  if (given) {
    if (await hasCommit(git, given, options.checkpoint.head)) return given
    if (await sharesHistory(git, given, packs, options.checkpoint, `${own}.probe`)) return given
  }
  const format = options.checkpoint.head.length === 64 ? 'sha256' : 'sha1'
  await mkdir(join(options.data, 'repos'), { recursive: true })
  const args = ['init', '--quiet', '--bare', '--template=', `--object-format=${format}`, own]
  await git.bytes(args, { cwd: options.data })
  return findRepository(git, own)
}
