/** Keeps what is in no checkpoint, before a checkpoint takes its place (I11): on a branch, or for a plain folder as files. */
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { joinPaths, listPaths } from './byte-paths.ts'
import type { Attempts } from '../tools/attempts.ts'
import type { GitProgram } from './git-program.ts'
import { identity } from './identity.ts'
import { moveTo } from './in-the-way.ts'
import { areLeftByCalls } from './left-by-calls.ts'
import { describeOwnState, type OwnState } from './own-state.ts'
import { isAncestor, readRef, type Repository } from './repository.ts'
import type { Shadow } from './shadow.ts'
import type { Checkpoint } from './workspace.ts'

interface KeeperOptions {
  git: GitProgram
  sid: string
  data: string
  repository: Repository
  attempts: Pick<Attempts, 'changes'>
}

export type State = Pick<Checkpoint, 'commit' | 'tree' | 'head' | 'state'>

export class Keeper {
  readonly #options: KeeperOptions
  readonly #shadow: Shadow

  constructor(options: KeeperOptions, shadow: Shadow) {
    this.#options = options
    this.#shadow = shadow
  }

  /**
   * Keeps the files and commits of `here` that neither `known`, the last checkpoint here, nor `target`, the one that comes, has.
   * `hidden`: ignored files, which are kept as files, never on a branch that might be published. Where all that differs is known to be
   * what calls that were cut off left, nothing is kept.
   * Returns sentences that say where, which files, and which of them were changed on both sides.
   */
  async keep(
    here: Checkpoint,
    target: State,
    known: State | undefined,
    hidden: readonly string[],
  ): Promise<string[]> {
    const { git, repository } = this.#options
    const filesKnown = here.tree === target.tree || here.tree === known?.tree
    const headKnown =
      here.head === '' ||
      here.head === known?.head ||
      (target.head !== '' && (await isAncestor(git, repository, here.head, target.head)))
    if (filesKnown && headKnown) return []
    const [changed, theirs, differing] = await Promise.all([
      this.#shadow.differing(known?.tree ?? target.tree, here.tree),
      this.#shadow.differing(known?.tree ?? target.tree, target.tree),
      this.#shadow.differing(here.tree, target.tree),
    ])
    const [theirSet, differingSet, secret] = [new Set(theirs), new Set(differing), new Set(hidden)]
    // What is as the target has it is kept by that, say what a killed runner had laid out already.
    const mine = changed.filter((path) => differingSet.has(path))
    const both = mine.filter((path) => theirSet.has(path))
    if (headKnown && (mine.length === 0 || (await this.areOwn(mine, here, known)))) return []
    const [open, covert] = [mine.filter((path) => !secret.has(path)), mine.filter((path) => secret.has(path))]
    const told: string[] = []
    const compare: string[] = []
    if (here.kind === 'git' && (open.length > 0 || covert.length === 0)) {
      const branch = await this.#branch(here)
      const files = open.length > 0 ? listPaths(open) : 'commits'
      told.push(
        `Changes here that are in no checkpoint of the session are kept on branch ${branch}: ${files}.`,
      )
      compare.push(`git diff ${branch}`)
    }
    const plain = here.kind === 'git' ? covert : mine
    if (plain.length > 0) {
      const place = await this.#folder(here.tree, plain)
      told.push(
        `Files here that are in no checkpoint of the session are kept in ${place}: ${listPaths(plain)}.`,
      )
      compare.push(`diff -r . ${place}`)
    }
    if (both.length > 0) {
      const how = compare.join(' and ')
      told.push(`Changed on both sides: ${listPaths(both)}. The session's are in place; compare with: ${how}`)
    }
    return told
  }

  /**
   * Files, links and folders that are in no checkpoint and lie where one has something else: `told` says where they will be once
   * `move`, which may throw `workspace-busy`, has ended.
   */
  aside(root: string, paths: readonly string[]): { told: string[]; move: () => Promise<void> } {
    if (paths.length === 0) return { told: [], move: async () => {} }
    const place = this.#freePlace()
    return {
      told: [
        `These lay where the session has something else, and are kept with all that is in them in ${place}: ${listPaths(paths)}.`,
      ],
      move: async () => {
        for (const path of paths) await moveTo(root, path, place)
      },
    }
  }

  /** Keeps what is staged or under way in `here`, of which no checkpoint knows. Returns a sentence that says where. */
  async keepState({ state = '' }: Checkpoint, own: OwnState): Promise<string> {
    const ref = `refs/baton/${this.#options.sid}/kept/${state}`
    await this.pin(ref, state)
    const words = describeOwnState(own)
    return `Here was ${words}, of which the session knows nothing: it is kept in ${ref}. "Coming home" in docs/workspaces.md tells how to get it back.`
  }

  /** Equal trees on equal parents give equal commits: the date is the parent's. */
  commit(tree: string, head: string, message: string, seconds: string): Promise<string> {
    const parent = head === '' ? [] : ['-p', head]
    return this.#options.git.text(['commit-tree', tree, ...parent, '-m', message], {
      cwd: this.#options.repository.common,
      env: identity(seconds),
    })
  }

  /** Keeps an object from being collected. */
  async pin(ref: string, oid: string): Promise<void> {
    const { git, repository } = this.#options
    await git.bytes(['update-ref', ref, oid], { cwd: repository.common, env: identity() })
  }

  /** Do these files differ only by what calls left that were cut off, and that the session makes again? */
  async areOwn(paths: readonly string[], here: State, known: State | undefined): Promise<boolean> {
    const changes = known ? await this.#options.attempts.changes() : []
    if (!known || changes.length === 0) return false
    return areLeftByCalls(this.#shadow, changes, paths, { known: known.tree, here: here.tree })
  }

  async #branch({ commit: present, head }: Checkpoint): Promise<string> {
    const { git, repository, sid } = this.#options
    const message = 'Kept by baton: changes that no checkpoint holds'
    const commit = await this.commit(`${present}^{tree}`, head, message, '0')
    for (let n = 1; ; n++) {
      const branch = `baton/kept/${sid.slice(0, 8)}-${n}`
      const at = await readRef(git, repository, `refs/heads/${branch}`)
      if (at !== undefined && at !== commit) continue
      await this.pin(`refs/heads/${branch}`, commit)
      return branch
    }
  }

  /** Only the files that differ; deletions are in the sentence. */
  async #folder(tree: string, paths: readonly string[]): Promise<string> {
    const place = this.#freePlace()
    await mkdir(place, { recursive: true })
    const env = { GIT_INDEX_FILE: join(this.#shadow.dir, 'index.kept') }
    await this.#shadow.run(['read-tree', tree], { env })
    const present = new Set(
      (await this.#shadow.run(['ls-files', '-z'], { env })).toString('latin1').split('\0'),
    )
    await this.#shadow.run(['checkout-index', '-f', '-z', '--stdin', `--prefix=${place}/`], {
      env,
      input: joinPaths(paths.filter((path) => present.has(path))),
    })
    return place
  }

  #freePlace(): string {
    const { data, sid } = this.#options
    for (let n = 1; ; n++) {
      const place = join(data, 'kept', `${sid.slice(0, 8)}-${n}`)
      if (!existsSync(place)) return place
    }
  }
}
