/** Which of several runners a person at this machine means. */
import { isTaking } from '@baton/shared/view/runners.ts'
import type { NamedRunner } from './account.ts'

/** Those that are online: first the one of this machine, then those outside pools, those that are leaving last. */
export function nearestFirst(runners: readonly NamedRunner[], here: string): NamedRunner[] {
  const rank = (runner: NamedRunner): number => {
    if (!isTaking(runner)) return 3
    if (runner.device === here) return 0
    return runner.about.pools.length === 0 ? 1 : 2
  }
  return runners.filter(({ online }) => online).toSorted((a, b) => rank(a) - rank(b))
}
