/** One session's work tree at one runner: checkpoints taken from it, and checkpoints brought into it. */
import { existsSync } from 'node:fs'
import { readFile, readdir, rename, rm, writeFile } from 'node:fs/promises'
import { arch, platform } from 'node:os'
import { join } from 'node:path'
import * as v from 'valibot'
import { BatonError } from '@baton/shared/errors.ts'
import type { GitProgram } from './git-program.ts'
import { makePack } from './packs.ts'
import { isAncestor, readRef, type Repository } from './repository.ts'
import { Shadow, splitPaths, stampOf } from './shadow.ts'
import type { Checkpoint, Workspace, WorkspaceAbout } from './workspace.ts'

/** Files in which git keeps an operation under way. They tell of another state than the one that is laid out. */
const UNDER_WAY = [
  'MERGE_HEAD',
  'MERGE_MSG',
  'MERGE_MODE',
  'CHERRY_PICK_HEAD',
  'REVERT_HEAD',
  'rebase-merge',
  'rebase-apply',
  'sequencer',
  'index.lock',
  'HEAD.lock',
]

const KnownCheckpoint = v.object({
  commit: v.string(),
  tree: v.string(),
  head: v.string(),
  branch: v.string(),
})

interface Position {
  head: string
  /** Empty: detached. */
  branch: string
}

export interface GitWorkspaceOptions {
  git: GitProgram
  sid: string
  data: string
  root: string
  /** Folder of the shadow. */
  shadow: string
  repository: Repository
  /** The work tree's folder in the repository: .git/worktrees/<name>. */
  admin: string
}

export class GitWorkspace implements Workspace {
  readonly root: string
  readonly #git: GitProgram
  readonly #sid: string
  readonly #repository: Repository
  readonly #admin: string
  readonly #shadow: Shadow
  readonly #record: string
  #last: Checkpoint | undefined
  #headDate: { head: string; seconds: string } | undefined
  #indexStamp: string | undefined
  #queue: Promise<unknown> = Promise.resolve()
  #packing: Promise<unknown> = Promise.resolve()

  private constructor(options: GitWorkspaceOptions) {
    this.root = options.root
    this.#git = options.git
    this.#sid = options.sid
    this.#repository = options.repository
    this.#admin = options.admin
    this.#shadow = new Shadow({ ...options, dir: options.shadow })
    this.#record = join(options.shadow, 'checkpoint.json')
  }

  /** For a linked work tree that exists. Touches neither its files nor HEAD. */
  static async attach(options: GitWorkspaceOptions): Promise<GitWorkspace> {
    const workspace = new GitWorkspace(options)
    if (await workspace.#shadow.exists()) await workspace.#shadow.unlock()
    else await workspace.#shadow.prepare(options.repository, options.data)
    return workspace
  }

  /** Lays the first state into a work tree that is empty. `branch` is the wanted name. */
  fill(tree: string, head: string, branch?: string): Promise<void> {
    return this.#alone(async () => {
      const heading = this.#freeBranch(head, branch).then((name) => this.#moveHead(head, name))
      await Promise.all([this.#shadow.lay(tree), heading])
    })
  }

  checkpoint(): Promise<Checkpoint | undefined> {
    return this.#alone(async () => {
      const [tree, { head, branch }] = await Promise.all([this.#store(), this.#position()])
      const last = this.#last
      if (last && last.tree === tree && last.head === head && last.branch === branch) return undefined
      const checkpoint = { commit: await this.#commit(tree, head, 'baton checkpoint'), tree, head, branch }
      await this.#remember(checkpoint)
      return checkpoint
    })
  }

  pack(commit: string, since: string | undefined): Promise<Uint8Array> {
    // Only reads objects, and may take long: checkpoints need not wait for it.
    const packing = makePack(this.#shadow, this.#repository, commit, since)
    this.#packing = Promise.allSettled([this.#packing, packing])
    return packing
  }

  /**
   * Makes files, HEAD and branch those of a checkpoint whose objects are in the repository. What is here and in no checkpoint
   * is first kept on a branch; its name is returned.
   */
  adopt(target: Checkpoint): Promise<string | undefined> {
    return this.#alone(async () => {
      const known = await this.knownCheckpoint()
      if (!(await this.#shadow.exists())) await this.#shadow.list(known?.commit ?? target.head)
      const [stored, here] = await Promise.all([this.#store(), this.#position()])
      const covered = await this.#includeCovered(stored, target.tree)
      const tree = covered ? await this.#shadow.store() : stored
      const kept = await this.#keep(tree, here, target, known)
      if (tree !== target.tree) await this.#shadow.lay(target.tree)
      // Another runner on the same clone moves our HEAD with its branch, but not our index.
      const still = tree === target.tree && known?.head === target.head
      if (!still || here.head !== target.head || here.branch !== target.branch) {
        await this.#moveHead(target.head, await this.#freeBranch(target.head, target.branch, here.branch))
      }
      if (known?.commit === target.commit) this.#last = target
      else await this.#remember(target)
      return kept
    })
  }

  /** Notes that the work tree is as in this checkpoint. */
  arrived(checkpoint: Checkpoint): Promise<void> {
    return this.#alone(() => this.#remember(checkpoint))
  }

  /** The last checkpoint that was taken or brought in here. Its objects are whole. */
  async knownCheckpoint(): Promise<Checkpoint | undefined> {
    const text = await readFile(this.#record, 'utf8').catch(() => undefined)
    return text === undefined ? undefined : v.parse(KnownCheckpoint, JSON.parse(text))
  }

  async about(): Promise<WorkspaceAbout> {
    const { branch } = await this.#alone(() => this.#position())
    return { path: this.root, branch: branch || '(detached)', platform: `${platform()} ${arch()}` }
  }

  async close(): Promise<void> {
    await Promise.all([this.#queue, this.#packing])
  }

  /** The tree of all files, those included that only the session's own index lists (`git add -f`). */
  async #store(): Promise<string> {
    const stamp = await stampOf(join(this.#admin, 'index'))
    if (stamp !== this.#indexStamp) {
      const [listed, stored] = await Promise.all([this.#own(['ls-files', '-z']), this.#shadow.paths()])
      await this.#shadow.include([...splitPaths(listed)].filter((path) => !stored.has(path)))
      this.#indexStamp = stamp
    }
    return this.#shadow.store()
  }

  async #position(): Promise<Position> {
    const [result, link] = await Promise.all([
      this.#git.run(['--git-dir', this.#admin, 'rev-parse', '--verify', '--quiet', 'HEAD^{commit}'], {
        cwd: this.root,
      }),
      readFile(join(this.#admin, 'HEAD'), 'utf8').catch(() => ''),
    ])
    const branch = /^ref: refs\/heads\/(.+)$/m.exec(link)?.[1] ?? ''
    if (result.code === 0) return { head: result.stdout.toString('utf8').trim(), branch }
    // A branch without a commit (git checkout --orphan): the commit before it stands in.
    const last = this.#last ?? (await this.knownCheckpoint())
    if (last) return { head: last.head, branch: last.branch }
    throw new BatonError('workspace-no-commit', this.root)
  }

  /**
   * Puts a commit on a branch of its own when its files or its history are in no checkpoint.
   * A commit that leads to the target is in the target's history.
   */
  async #keep(
    tree: string,
    here: Position,
    target: Checkpoint,
    known: Checkpoint | undefined,
  ): Promise<string | undefined> {
    const filesKnown = tree === target.tree || tree === known?.tree
    const headKnown =
      here.head === known?.head || (await isAncestor(this.#git, this.#repository, here.head, target.head))
    if (filesKnown && headKnown) return undefined
    const commit = await this.#commit(tree, here.head, 'Kept by baton: changes that no checkpoint holds')
    for (let n = 1; ; n++) {
      const branch = `baton/kept/${this.#sid.slice(0, 8)}-${n}`
      const at = await readRef(this.#git, this.#repository, `refs/heads/${branch}`)
      if (at !== undefined && at !== commit) continue
      await this.#refs(['update-ref', `refs/heads/${branch}`, commit])
      return branch
    }
  }

  /** Ignored files that the target would overwrite are stored too. True when there were any. */
  async #includeCovered(tree: string, target: string): Promise<boolean> {
    if (tree === target) return false
    const args = ['diff-tree', '-r', '-z', '--name-only', '--no-renames', '--diff-filter=A', tree, target]
    return this.#shadow.include([...splitPaths(await this.#shadow.run(args))])
  }

  /** Equal trees on equal parents give equal commits: the date is the parent's. */
  async #commit(tree: string, head: string, message: string): Promise<string> {
    if (this.#headDate?.head !== head) {
      const seconds = await this.#shadow.text(['show', '-s', '--format=%ct', head])
      this.#headDate = { head, seconds }
    }
    return this.#git.text(['commit-tree', tree, '-p', head, '-m', message], {
      cwd: this.#repository.common,
      env: identity(this.#headDate.seconds),
    })
  }

  async #moveHead(head: string, branch: string): Promise<void> {
    await Promise.all(UNDER_WAY.map((name) => rm(join(this.#admin, name), { recursive: true, force: true })))
    const pointing =
      branch === ''
        ? [this.#own(['update-ref', '--no-deref', 'HEAD', head])]
        : [
            this.#refs(['update-ref', `refs/heads/${branch}`, head]),
            this.#own(['symbolic-ref', 'HEAD', `refs/heads/${branch}`]),
          ]
    await Promise.all([...pointing, this.#own(['read-tree', '--reset', head])])
  }

  /**
   * A name for the session's branch: the wanted one when it is new, at `head` already, the present one, or ours and behind
   * `head`; else one under baton/ that is. A person's branch is never moved. Empty: detached, as wanted.
   */
  async #freeBranch(head: string, wanted?: string, present?: string): Promise<string> {
    if (wanted === '') return ''
    const own = `baton/${this.#sid.slice(0, 8)}`
    const names = wanted === undefined || wanted === own ? [own] : [wanted, own]
    for (let n = 0; ; n++) {
      const name = names[n] ?? `${own}-${n}`
      if (name === present) return name
      const at = await readRef(this.#git, this.#repository, `refs/heads/${name}`)
      if (at === undefined || at === head) return name
      if (name.startsWith('baton/') && (await isAncestor(this.#git, this.#repository, at, head))) return name
    }
  }

  async #remember(checkpoint: Checkpoint): Promise<void> {
    await this.#refs(['update-ref', `refs/baton/${this.#sid}/checkpoint`, checkpoint.commit])
    const temporary = `${this.#record}.new`
    await writeFile(temporary, JSON.stringify(checkpoint))
    await rename(temporary, this.#record)
    this.#last = checkpoint
  }

  /** Git on the session's own HEAD and index. */
  #own(args: string[]): Promise<Buffer> {
    return this.#git.bytes(['--git-dir', this.#admin, '--work-tree', this.root, ...args], { cwd: this.root })
  }

  #refs(args: string[]): Promise<Buffer> {
    return this.#git.bytes(args, { cwd: this.#repository.common, env: identity('0') })
  }

  /** One thing at a time. */
  #alone<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work)
    this.#queue = result.catch(() => {})
    return result
  }
}

/** Moves what lies at the place of a work tree aside, to `<root>.kept-<n>`; a bare link to a lost repository is removed. */
export async function moveAside(root: string): Promise<void> {
  const names = await readdir(root).catch(() => undefined)
  if (names === undefined) return
  if (names.every((name) => name === '.git')) return rm(root, { recursive: true })
  for (let n = 1; ; n++) {
    const place = `${root}.kept-${n}`
    if (existsSync(place)) continue
    return rename(root, place)
  }
}

function identity(seconds: string): Record<string, string> {
  const date = `@${seconds} +0000`
  return {
    GIT_AUTHOR_NAME: 'Baton',
    GIT_AUTHOR_EMAIL: 'baton@localhost',
    GIT_AUTHOR_DATE: date,
    GIT_COMMITTER_NAME: 'Baton',
    GIT_COMMITTER_EMAIL: 'baton@localhost',
    GIT_COMMITTER_DATE: date,
  }
}
