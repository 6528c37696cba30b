/** Takes the present state of a workspace: its files, and with a checkout HEAD, index, refs and the operation under way. */
import { join } from 'node:path'
import { carryPatterns, mayCarry } from './carry.ts'
import type { Checkout, Position } from './checkout.ts'
import { NO_EXTRAS, storeExtras, type Extras } from './extras.ts'
import type { Keeper } from './keeper.ts'
import type { Present } from './lay-out.ts'
import type { RefKeeper } from './made-refs.ts'
import type { Notes } from './notes.ts'
import type { WorkspaceSettings } from './settings.ts'
import { stampOf, type Shadow, type Stored } from './shadow.ts'
import type { Checkpoint } from './workspace.ts'

export interface TakingOptions {
  shadow: Shadow
  keeper: Keeper
  notes: Notes
  /** Absent: a plain folder. */
  checkout: Checkout | undefined
  refs: RefKeeper | undefined
  carry: readonly string[]
  settings?: Pick<WorkspaceSettings, 'carry' | 'setup'>
}

export class Taking {
  readonly #options: TakingOptions
  readonly #shadow: Shadow
  readonly #keeper: Keeper
  readonly #notes: Notes
  readonly #checkout: Checkout | undefined
  readonly #refs: RefKeeper | undefined
  #headDate: { head: string; seconds: string } | undefined
  #index: { stamp: string; paths: ReadonlySet<string> } | undefined
  #commit: { basis: string; oid: string } | undefined
  #state: { key: string; oid: string | undefined } | undefined
  #carried: string[] | undefined
  #modules: string[] = []

  constructor(options: TakingOptions) {
    this.#options = options
    this.#shadow = options.shadow
    this.#keeper = options.keeper
    this.#notes = options.notes
    this.#checkout = options.checkout
    this.#refs = options.refs
  }

  /** Submodules, as the index had them last. */
  get modules(): readonly string[] {
    return this.#modules
  }

  async setCarried(paths: string[]): Promise<void> {
    this.#carried = paths
    await this.#notes.setCarried(paths)
  }

  /** These travel as well, like those that are carried: in no commit or branch. True when there were any. */
  async cover(paths: Parameters<Shadow['include']>[0]): Promise<boolean> {
    const covered = await this.#shadow.include(paths)
    if (covered.length > 0) await this.setCarried([...(this.#carried ?? []), ...covered])
    return covered.length > 0
  }

  /** Stores the present state. Equal states on equal commits give equal checkpoints. */
  async take(): Promise<Present> {
    const { settings } = this.#options
    const kind = this.#checkout ? 'git' : 'folder'
    const [stored, position, look] = await Promise.all([this.#store(), this.#position(), this.#refs?.look()])
    const carried = this.#carried ?? []
    const [shown, extras] = await Promise.all([
      this.#shadow.treeWithout(carried),
      this.#extras(position, look, stored.empty, carried),
    ])
    const seconds = await this.#secondsOf(position.head)
    const basis = `${shown} ${position.head}`
    if (this.#commit?.basis !== basis) {
      this.#commit = {
        basis,
        oid: await this.#keeper.commit(shown, position.head, 'baton checkpoint', seconds),
      }
    }
    const commit = this.#commit.oid
    const files = shown === stored.tree ? undefined : stored.tree
    const key = keyOf(commit, files, extras)
    if (this.#state?.key !== key) {
      this.#state = { key, oid: await storeExtras(this.#shadow, extras, { commit, files, seconds }) }
    }
    const state = this.#state.oid
    const checkpoint: Checkpoint = {
      ...{ kind, commit, tree: stored.tree, ...position },
      ...(state === undefined ? {} : { state }),
      ...(settings === undefined ? {} : { settings }),
    }
    return { checkpoint, extras, stored }
  }

  /** The tree of all files, those included that only the session's own index lists (`git add -f`) and those that are carried. */
  async #store(): Promise<Stored> {
    await this.#readIndex()
    this.#carried ??= await this.#notes.carried()
    const fresh = await this.#toCarry()
    if (fresh.length > 0) await this.#shadow.include(fresh)
    const stored = await this.#shadow.store()
    const tracked = this.#index?.paths
    const all = [...new Set([...this.#carried, ...fresh])].filter((path) => !tracked?.has(path)).toSorted()
    if (all.join('\0') !== this.#carried.join('\0')) await this.setCarried(all)
    return stored
  }

  async #readIndex(): Promise<void> {
    if (!this.#checkout) return
    const stamp = await stampOf(join(this.#checkout.admin, 'index'))
    if (stamp === this.#index?.stamp) return
    const listed = await this.#checkout.indexPaths()
    const stored = await this.#shadow.keepModules(new Set(listed.modules))
    await this.#shadow.include(listed.all.filter((path) => !stored.has(path)))
    await this.#shadow.sparse(listed.sparse.filter((path) => stored.has(path)))
    this.#modules = listed.modules
    this.#index = { stamp, paths: new Set(listed.all) }
  }

  async #toCarry(): Promise<string[]> {
    const { carry } = this.#options
    if (carry.length === 0) return []
    return (await this.#shadow.ignored(carryPatterns(carry))).filter((path) => mayCarry(path, carry))
  }

  async #extras(
    position: Position,
    look: Awaited<ReturnType<RefKeeper['look']>> | undefined,
    empty: string[],
    carried: string[],
  ): Promise<Extras> {
    const checkout = this.#checkout
    if (!checkout || !this.#refs || !look) return { ...NO_EXTRAS, empty, carried }
    const operation = await checkout.operation()
    const heading = operation.get('rebase-merge/head-name') ?? operation.get('rebase-apply/head-name')
    const [staged, refs] = await Promise.all([
      checkout.staged(position.head, this.#index?.stamp ?? ''),
      this.#refs.made(look, position.branch, heading?.toString('utf8').trim()),
    ])
    return { staged, operation, refs, empty, carried }
  }

  async #position(): Promise<Position> {
    return (await this.#checkout?.position()) ?? { head: '', branch: '' }
  }

  async #secondsOf(head: string): Promise<string> {
    if (head === '') return '0'
    if (this.#headDate?.head !== head) {
      const seconds = await this.#shadow.text(['show', '-s', '--no-show-signature', '--format=%ct', head])
      this.#headDate = { head, seconds }
    }
    return this.#headDate.seconds
  }
}

/** Equal for states that need no new commit. */
function keyOf(commit: string, files: string | undefined, extras: Extras): string {
  const { staged, operation, refs, empty, carried } = extras
  return JSON.stringify([
    ...[commit, files, staged.info, staged.intents, refs.refs, refs.stashes, empty, carried],
    ...Array.from(operation, ([path, content]) => [path, content.toString('latin1')]),
  ])
}
