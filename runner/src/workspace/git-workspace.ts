/**
 * One session's files at one runner: checkpoints taken from them, and checkpoints brought into them. With a checkout they are a work
 * tree of a git repository; without one a plain folder, of which only the shadow knows.
 */
import { mkdir, rmdir } from 'node:fs/promises'
import { arch, platform } from 'node:os'
import { join } from 'node:path'
import { BatonError } from '@baton/shared/errors.ts'
import { Attempts } from '../tools/attempts.ts'
import { fullPath, listPaths } from './byte-paths.ts'
import type { Claim } from './claims.ts'
import { Checkout, type Position } from './checkout.ts'
import { NO_EXTRAS, readExtras, type Extras } from './extras.ts'
import type { GitProgram } from './git-program.ts'
import { Keeper } from './keeper.ts'
import { layOut, type Site } from './lay-out.ts'
import { Left, type LeftBehind } from './left.ts'
import { RefKeeper } from './made-refs.ts'
import { isSame, Notes, type Known } from './notes.ts'
import { isUnderWay, ownStateOf } from './own-state.ts'
import { makePack } from './packs.ts'
import type { Repository } from './repository.ts'
import type { WorkspaceSettings } from './settings.ts'
import { Shadow } from './shadow.ts'
import { Taking } from './taking.ts'
import type { Checkpoint, PackFile, Workspace, WorkspaceAbout } from './workspace.ts'

export interface GitWorkspaceOptions {
  git: GitProgram
  sid: string
  data: string
  root: string
  /** Folder of the shadow. */
  shadow: string
  repository: Repository
  /** The work tree's git folder; absent: a plain folder. */
  admin?: string
  /** The person's own folder, not one of the session's. */
  inPlace: boolean
  carry: readonly string[]
  settings?: Pick<WorkspaceSettings, 'carry' | 'setup'>
  /** Gives back what the workspace holds, once it is closed. */
  release?: Claim['release']
  /** The person's own folder: the session gave it back itself when it was last at work here. */
  wasClosed?: boolean
}

export class GitWorkspace implements Workspace {
  readonly root: string
  readonly inPlace: boolean
  readonly attempts: Attempts
  ready?: Promise<string[]>
  readonly #options: GitWorkspaceOptions
  readonly #checkout: Checkout | undefined
  readonly #refs: RefKeeper | undefined
  readonly #shadow: Shadow
  readonly #keeper: Keeper
  readonly #left: Left
  readonly #closing = new AbortController()
  readonly #notes: Notes
  readonly #taking: Taking
  /** The last checkpoint that was taken here or came here. */
  #last: Known | undefined
  #packs = 0
  #queue: Promise<unknown> = Promise.resolve()
  #packing: Promise<unknown> = Promise.resolve()

  private constructor(options: GitWorkspaceOptions) {
    const { root, admin } = options
    this.root = root
    this.inPlace = options.inPlace
    this.#options = options
    this.#checkout = admin === undefined ? undefined : new Checkout({ ...options, admin })
    this.#refs = this.#checkout && new RefKeeper(this.#checkout, options.sid, options.shadow)
    this.#shadow = new Shadow({ ...options, dir: options.shadow })
    this.attempts = new Attempts(options.shadow)
    this.#keeper = new Keeper({ ...options, attempts: this.attempts }, this.#shadow)
    this.#notes = new Notes(options.shadow)
    this.#taking = new Taking({
      ...{ shadow: this.#shadow, keeper: this.#keeper, notes: this.#notes },
      ...{ checkout: this.#checkout, refs: this.#refs, carry: options.carry },
      ...(options.settings ? { settings: options.settings } : {}),
    })
    this.#left = new Left(options.git, root, join(options.shadow, 'told'))
  }

  /** For a work tree or folder that exists. Touches neither its files nor HEAD. `ignore`: patterns, for a fresh shadow. */
  static async attach(options: GitWorkspaceOptions, ignore: readonly string[] = []): Promise<GitWorkspace> {
    const workspace = new GitWorkspace(options)
    if (await workspace.#shadow.isWhole()) await workspace.#shadow.unlock()
    else await workspace.#shadow.prepare(options.repository, options.data, ignore)
    return workspace
  }

  /** Before anything is done in the repository: notes which branches, tags and stashes are not the session's. */
  begin(): Promise<void> {
    return this.#alone(async () => this.#refs?.begin())
  }

  /** Takes the files as they are for the first state, those of `tree` as known. */
  start(tree: string): Promise<void> {
    return this.#alone(() => this.#shadow.list(tree))
  }

  /** Lays files into a folder that is empty. `carried`: ignored ones among them. `arrive` or `settle` does the rest. */
  fill(tree: string, carried: string[] = []): Promise<void> {
    return this.#alone(async () => {
      await this.#taking.setCarried(carried)
      await this.#shadow.lay(tree)
    })
  }

  /**
   * Puts a new session on a branch of its own, and keeps what it began with as `refs/baton/<sid>/start`: the difference to a
   * checkpoint is the agent's part. `behind`: what its work tree lacks.
   */
  settle(head: string, behind: LeftBehind): Promise<void> {
    return this.#alone(async () => {
      this.#left.noteFirst(behind)
      if (this.#checkout) await this.#checkout.move({ head, branch: await this.#checkout.freeBranch(head) })
      const { checkpoint } = await this.#taking.take()
      await this.#keeper.pin(`refs/baton/${this.#options.sid}/start`, checkpoint.commit)
    })
  }

  checkpoint(): Promise<Checkpoint | undefined> {
    return this.#alone(async () => {
      const { checkpoint, stored } = await this.#taking.take()
      if (this.#last && isSame(this.#last, checkpoint)) return undefined
      await this.#pin(checkpoint)
      this.#last = checkpoint
      await this.#left.note(stored, this.#taking.modules)
      return checkpoint
    })
  }

  async confirm(checkpoint: Checkpoint): Promise<void> {
    const { kind, commit, tree, head, branch, state } = checkpoint
    const known = { kind, commit, tree, head, branch, ...(state === undefined ? {} : { state }) }
    // Unwritten, it costs a branch too many one day, never a file.
    await this.#alone(() => this.#notes.setKnown(known)).catch(() => undefined)
  }

  async hold(): Promise<void> {
    await this.#notes.setNewest()
  }

  left(): string[] {
    return this.#left.take()
  }

  async pack(tip: string, since: string | undefined, bytes_max: number): Promise<PackFile> {
    // Only reads objects, and may take long: checkpoints need not wait for it.
    const path = join(this.#options.shadow, `pack-${process.pid}-${this.#packs++}`)
    const packing = makePack(this.#shadow, this.#options.repository, path, { tip, since, bytes_max })
    this.#packing = Promise.allSettled([this.#packing, packing])
    return packing
  }

  /**
   * Makes files, HEAD, branch, index, refs and operation those of a checkpoint whose objects are in the repository. What is here and in
   * no checkpoint is kept first. In the person's own folder, where the session rested and has been nowhere else meanwhile, nothing is
   * laid out: what is there is what it goes on with. Returns sentences for the person.
   */
  adopt(target: Checkpoint): Promise<string[]> {
    return this.#alone(async () => {
      const known = await this.#notes.known()
      const restedHere = known !== undefined && isSame(known, target)
      if (restedHere && this.#notes.isNewest) return []
      if (!(await this.#shadow.exists())) {
        await this.#shadow.list(known?.tree ?? target.tree).catch(() => this.#shadow.list(target.tree))
      }
      if (restedHere && this.inPlace && this.#options.wasClosed) return this.#goOn(target)
      const [coming, last] = await Promise.all([
        readExtras(this.#shadow, target.state),
        // Lost, it is as if all of it were the person's.
        readExtras(this.#shadow, known?.state).catch(() => NO_EXTRAS),
      ])
      const first = await this.#taking.take()
      if (restedHere && isSame(first.checkpoint, target)) {
        this.#last = target
        await this.#notes.setKnown(target)
        return []
      }
      const told = await this.#notes.untold()
      const own = ownStateOf(first.extras, [last, coming])
      if (own && this.inPlace && !restedHere && isUnderWay(own)) {
        const words = `${own.operation} is under way in ${this.root}, of which the session knows nothing: end or abort it`
        throw new BatonError('workspace-busy', `(${words})`)
      }
      if (own) told.push(await this.#keeper.keepState(first.checkpoint, own))
      const here = await layOut(this.#site(), target, known, first, told)
      const position = { head: here.checkpoint.head, branch: here.checkpoint.branch }
      await this.#setEmpty(here.extras.empty, coming.empty)
      await this.#taking.setCarried(coming.carried)
      told.push(...(await this.#arrange(target, coming, { position, known, last })))
      await this.#remember(target)
      await this.#notes.allTold()
      return [...new Set(told)]
    })
  }

  /** The person worked on while the session rested: the next checkpoint takes in what is here. */
  async #goOn(last: Checkpoint): Promise<string[]> {
    const { checkpoint } = await this.#taking.take()
    this.#last = last
    const changed = await this.#shadow.differing(last.tree, checkpoint.tree)
    const told: string[] = []
    if (changed.length > 0 && !(await this.#keeper.areOwn(changed, checkpoint, last))) {
      told.push(
        `Changed in ${this.root} since the session was last at work there, and left as they are: ${listPaths(changed)}.`,
      )
    }
    if (checkpoint.branch !== last.branch) {
      told.push(`${this.root} is on ${nameOf(checkpoint)} now; it was on ${nameOf(last)}.`)
    } else if (checkpoint.head !== last.head) {
      told.push(`${this.root} is at another commit now: ${checkpoint.head.slice(0, 12) || 'none'}.`)
    }
    return told
  }

  /** Notes that the files, just filled, are as in this checkpoint; puts in place what it holds beside them. */
  arrive(checkpoint: Checkpoint): Promise<string[]> {
    return this.#alone(async () => {
      const extras = await readExtras(this.#shadow, checkpoint.state)
      await this.#setEmpty([], extras.empty)
      await this.#taking.setCarried(extras.carried)
      const told = await this.#arrange(checkpoint, extras, { last: NO_EXTRAS })
      await this.#remember(checkpoint)
      return told
    })
  }

  /** The last checkpoint of the journal that was taken here or came here. */
  async knownCommit(): Promise<string | undefined> {
    const known = await this.#notes.known()
    return known && (known.state ?? known.commit)
  }

  /** Lets the first tool wait for `work`, which closing ends. */
  prepare(work: (signal: AbortSignal) => Promise<string[]>): void {
    this.ready = work(this.#closing.signal).catch(() => [])
  }

  async about(): Promise<WorkspaceAbout> {
    const branch = this.#checkout ? (await this.#checkout.position()).branch : ''
    return { path: this.root, branch, platform: `${platform()}-${arch()}` }
  }

  async close(): Promise<void> {
    this.#closing.abort(new BatonError('interrupted'))
    await Promise.all([this.#queue, this.#packing, this.ready])
    await this.#options.release?.()
  }

  /** It came to nothing: others may have the folder. */
  async abandon(): Promise<void> {
    await this.#options.release?.('unused')
  }

  /** Index, HEAD, refs and operation as a checkpoint tells them. */
  async #arrange(
    target: Checkpoint,
    coming: Extras,
    from: { position?: Position; known?: Known | undefined; last: Extras },
  ): Promise<string[]> {
    const checkout = this.#checkout
    if (!checkout || !this.#refs) return []
    const { position, known, last } = from
    const branch = await checkout.freeBranch(target.head, target.branch, position, known)
    await checkout.move({ head: target.head, branch }, coming.staged)
    const { told, renamed } = await this.#refs.bring(coming.refs, last.refs, branch)
    await checkout.resume(withNewNames(coming.operation, renamed))
    const mine = position && checkout.inPlace && position.branch !== branch ? position.branch : ''
    if (mine !== '') {
      told.push(
        `Your branch ${mine} has commits of its own and stays as it is; the session's are on ${branch}.`,
      )
    }
    return told
  }

  #site(): Site {
    return {
      root: this.root,
      shadow: this.#shadow,
      keeper: this.#keeper,
      look: () => this.#taking.take(),
      cover: (paths) => this.#taking.cover(paths),
      // Whoever finds the files half laid out tells where the others are.
      note: (told) => this.#notes.setUntold(told),
    }
  }

  async #setEmpty(before: readonly string[], wanted: readonly string[]): Promise<void> {
    const keep = new Set(wanted)
    // One that has got something in it stays.
    for (const path of before)
      if (!keep.has(path)) await rmdir(fullPath(this.root, path)).catch(() => undefined)
    for (const path of wanted)
      await mkdir(fullPath(this.root, path), { recursive: true }).catch(() => undefined)
  }

  async #remember(checkpoint: Checkpoint): Promise<void> {
    await this.#pin(checkpoint)
    await this.#notes.setKnown(checkpoint)
    this.#last = checkpoint
  }

  async #pin({ commit, state }: Checkpoint): Promise<void> {
    const name = `refs/baton/${this.#options.sid}`
    await this.#keeper.pin(`${name}/checkpoint`, commit)
    if (state !== undefined) await this.#keeper.pin(`${name}/state`, state)
  }

  /** One thing at a time. */
  #alone<T>(work: () => Promise<T>): Promise<T> {
    const result = this.#queue.then(work)
    this.#queue = result.catch(() => {})
    return result
  }
}

function nameOf({ branch }: Position): string {
  return branch === '' ? 'a detached HEAD' : `branch ${branch}`
}

/** A rebase under way names the branch that it will move: the one that the branch has become here. */
function withNewNames(
  operation: Map<string, Buffer>,
  renamed: ReadonlyMap<string, string>,
): Map<string, Buffer> {
  const result = new Map(operation)
  for (const path of ['rebase-merge/head-name', 'rebase-apply/head-name']) {
    const name = renamed.get(operation.get(path)?.toString('utf8').trim() ?? '')
    if (name !== undefined) result.set(path, Buffer.from(`${name}\n`))
  }
  return result
}
