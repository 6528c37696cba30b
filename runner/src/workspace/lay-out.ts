/**
 * Lays a checkpoint out over files that somebody may be at work on (I11). What is there is looked at and kept, then git changes the
 * files only if they are still as they were when it looked: a save in between makes it refuse, and all begins again. A file that is
 * saved over and over, say a log, stays as it is.
 */
import { existsSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { BatonError } from '@baton/shared/errors.ts'
import { fullPath, listPaths, shownPath } from './byte-paths.ts'
import type { Extras } from './extras.ts'
import { findInTheWay } from './in-the-way.ts'
import type { Keeper, State } from './keeper.ts'
import type { LaidOver, Shadow, Stored } from './shadow.ts'
import type { Checkpoint } from './workspace.ts'

/** The present state, stored. */
export interface Present {
  checkpoint: Checkpoint
  extras: Extras
  stored: Stored
}

export interface Site {
  root: string
  shadow: Shadow
  keeper: Keeper
  look: () => Promise<Present>
  /** Takes ignored files that would be overwritten for known. True when there were any. */
  cover: (paths: readonly string[]) => Promise<boolean>
  /** Notes what whoever finds the files half laid out has to tell. */
  note: (told: readonly string[]) => Promise<void>
}

const ROUNDS = 5
/** Saved in between as often as this: left as it is. */
const BUSY = 2

/**
 * `known`: what need not be kept. `told`: sentences so far; more are added. Gives the state that was there last.
 * Throws BatonError `workspace-busy`, `checkpoint-torn` (F45).
 */
export async function layOut(
  site: Site,
  target: Checkpoint,
  known: State | undefined,
  first: Present,
  told: string[],
): Promise<Present> {
  const { root, shadow, keeper } = site
  /** How often each path was saved in between. */
  const saved = new Map<string, number>()
  let [here, base] = [first, known]
  for (let round = 1; ; round++) {
    const busy = [...saved.keys()].filter((path) => (saved.get(path) ?? 0) >= BUSY)
    const goal = await shadow.treeWith(target.tree, here.stored.tree, busy)
    const inTheWay = await findInTheWay(root, await shadow.coming(here.stored.tree, goal), () =>
      shadow.paths(),
    )
    if (await site.cover(await shadow.differing(here.stored.tree, goal, 'A'))) here = await site.look()
    const { tree, large } = here.stored
    told.push(...(await keeper.keep(here.checkpoint, { ...target, tree: goal }, base, here.extras.carried)))
    const aside = keeper.aside(root, inTheWay)
    const largeAside = await makeWay(site, here.stored, goal, inTheWay)
    told.push(...aside.told, ...largeAside.told)
    await site.note(told)
    await aside.move()
    await largeAside.move()
    const left = [...busy, ...large.map(({ path }) => path)]
    const laid: LaidOver =
      tree === goal ? { is: 'laid', undeleted: [] } : await shadow.layOver(tree, goal, left)
    if (laid.is === 'laid') {
      if (busy.length > 0) told.push(leftAlone(target, busy))
      if (laid.undeleted.length > 0) told.push(stillHere(laid.undeleted))
      return here
    }
    const before = laid.is === 'refused' ? tree : goal
    base = here.checkpoint
    here = await site.look()
    const fresh = await shadow.differing(before, here.stored.tree)
    for (const path of fresh) saved.set(path, (saved.get(path) ?? 0) + 1)
    if (round < ROUNDS) continue
    if (laid.is === 'differs' && here.stored.tree === base.tree)
      throw new BatonError('checkpoint-torn', `(not as stored: ${listPaths(fresh)})`)
    throw new BatonError(
      'workspace-busy',
      `(files in ${root} are saved all the time: ${listPaths([...saved.keys()])})`,
    )
  }
}

/** Files too large to be stored that something else comes for; not those that lie in what is moved anyway. */
async function makeWay(
  { root, shadow }: Site,
  { tree, large }: Stored,
  goal: string,
  moved: readonly string[],
): Promise<{ told: string[]; move: () => Promise<void> }> {
  if (large.length === 0) return { told: [], move: async () => {} }
  const changed = new Set(await shadow.differing(tree, goal))
  const moves = large
    .filter(({ path }) => changed.has(path) && !moved.some((above) => `${path}/`.startsWith(`${above}/`)))
    .map(({ path }) => ({ path, place: freeName(root, path) }))
  return {
    told: moves.map(
      ({ path, place }) =>
        `${shownPath(path)} was too large to be kept on a branch; it is now ${shownPath(place)}.`,
    ),
    move: async () => {
      for (const { path, place } of moves) await rename(fullPath(root, path), fullPath(root, place))
    },
  }
}

/** The same again after a kill, so that what was noted before it stays true. */
function freeName(root: string, path: string): string {
  for (let n = 1; ; n++) if (!existsSync(fullPath(root, `${path}.kept-${n}`))) return `${path}.kept-${n}`
}

function leftAlone({ kind, commit }: Checkpoint, busy: readonly string[]): string {
  const how = kind === 'git' ? `: git show ${commit.slice(0, 12)}:FILE` : '.'
  return `Saved all the time here, or not to be written, so left as they are: ${listPaths(busy)}. The session's are in its last checkpoint${how}`
}

function stillHere(paths: readonly string[]): string {
  return `Deleted in the session, but this machine does not allow it (are their folders write-protected?): ${listPaths(paths)}. They belong to the session again.`
}
