/**
 * Files of scratch sessions while they rest, in the memory of the runner. A checkpoint of theirs is only a name; who has the tree of
 * that name has the files, everybody else knows that they are gone.
 */
import type { Tree } from './tree.ts'

/** Sessions whose trees are kept. */
const KEPT_MAX = 16

export interface ScratchTree {
  tree(name: string): Tree | undefined
  keep(name: string, tree: Tree): void
}

export class ScratchTrees {
  readonly #kept = new Map<string, { name: string; tree: Tree }>()

  of(sid: string): ScratchTree {
    return {
      tree: (name) => {
        const kept = this.#kept.get(sid)
        return kept?.name === name ? kept.tree : undefined
      },
      keep: (name, tree) => {
        // The oldest stands first.
        this.#kept.delete(sid)
        this.#kept.set(sid, { name, tree })
        const [oldest] = this.#kept.keys()
        if (this.#kept.size > KEPT_MAX && oldest !== undefined) this.#kept.delete(oldest)
      },
    }
  }
}
