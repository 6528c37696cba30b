/** Which runners may take a session, and which of them is the best place for it. Pure; claim.lua knows the first half too. */
import type { Placement, RunnerInfo } from '@baton/shared/protocol.ts'

export interface Placed {
  place: Placement
  /** Seq of the newest one, 0 for none. */
  checkpoint: number
  /** The runner that alone has the newest files, because they could not be stored; '' for none. */
  unstored: string
  /** Runners that held it, the last one first: they may still have its work tree. */
  holders: readonly string[]
}

/**
 * A pinned session stays with its runner or pool. One without a checkpoint stays with its preferred runner, and one whose newest
 * files could not be stored with the runner that has them: they exist nowhere else.
 */
export function mayTake(
  { place, checkpoint, unstored }: Placed,
  runner: Pick<RunnerInfo, 'device' | 'tags'>,
): boolean {
  const { prefer, pool, pin = false } = place
  if (unstored !== '' && unstored !== runner.device) return false
  if (prefer !== undefined) return runner.device === prefer || !(pin || checkpoint === 0)
  return !pin || pool === undefined || runner.tags.includes(pool)
}

/**
 * Runners that are there and may take the session, best first: the preferred one, then those of its pool, then any; among
 * those alike, who held it before, then who holds least. Whether they have room is not asked.
 */
export function rank(placed: Placed, runners: readonly RunnerInfo[]): RunnerInfo[] {
  const { prefer, pool } = placed.place
  const nearness = ({ device, tags }: RunnerInfo): number => {
    if (device === prefer) return 0
    return pool !== undefined && tags.includes(pool) ? 1 : 2
  }
  const recency = ({ device }: RunnerInfo): number => {
    const at = placed.holders.indexOf(device)
    return at < 0 ? placed.holders.length : at
  }
  return runners
    .filter((runner) => runner.online && mayTake(placed, runner))
    .toSorted(
      (a, b) =>
        nearness(a) - nearness(b) ||
        recency(a) - recency(b) ||
        a.held - b.held ||
        (a.device < b.device ? -1 : 1),
    )
}
