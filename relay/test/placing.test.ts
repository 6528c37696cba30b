import type { Placement, RunnerInfo } from '@baton/shared/protocol.ts'
import { describe, expect, test } from 'vitest'
import { rank } from '../src/placing.ts'

const POOL = 'poolpoolpoolpoolpoolpo'
const runner = (device: string, more: Partial<RunnerInfo> = {}): RunnerInfo => ({
  ...{ device, online: true, since: 0, capacity: 2, held: 0, tags: [], body: '', ...more },
})
const names = (
  place: Placement,
  checkpoint: number,
  runners: RunnerInfo[],
  holders: string[] = [],
): string[] => rank({ place, checkpoint, unstored: '', holders }, runners).map(({ device }) => device)

describe('rank', () => {
  test('S1: the preferred runner first, then the pool, then by how little they hold', () => {
    const runners = [
      runner('busy', { held: 1 }),
      runner('free'),
      runner('pool-busy', { tags: [POOL], held: 1 }),
      runner('pool', { tags: [POOL] }),
      runner('home', { held: 1 }),
    ]
    expect(names({ prefer: 'home', pool: POOL }, 7, runners)).toEqual([
      'home',
      'pool',
      'pool-busy',
      'free',
      'busy',
    ])
    expect(names({ pool: POOL }, 0, runners)).toEqual(['pool', 'pool-busy', 'free', 'busy', 'home'])
    expect(names({}, 0, runners)).toEqual(['free', 'pool', 'busy', 'home', 'pool-busy'])
  })

  test('S1: who is away does not count', () => {
    expect(names({ prefer: 'away' }, 7, [runner('away', { online: false }), runner('other')])).toEqual([
      'other',
    ])
  })

  test('S1: a pinned session, and one without a checkpoint, stays where it is', () => {
    const runners = [runner('home', { online: false }), runner('other'), runner('pool', { tags: [POOL] })]
    expect(names({ prefer: 'home', pin: true }, 7, runners)).toEqual([])
    expect(names({ prefer: 'home' }, 0, runners)).toEqual([])
    expect(names({ pool: POOL, pin: true }, 7, runners)).toEqual(['pool'])
  })

  test('S9: among those alike, who held it before comes first, the last one before earlier ones', () => {
    const runners = ['a', 'b', 'c', 'd'].map((name) =>
      runner(name, { tags: [POOL], held: name === 'd' ? 1 : 0 }),
    )
    expect(names({ pool: POOL }, 7, runners, ['d', 'b'])).toEqual(['d', 'b', 'a', 'c'])
    // Not before its place: a pool runner that held it does not come before the preferred one.
    expect(names({ prefer: 'a', pool: POOL }, 7, runners, ['d'])).toEqual(['a', 'd', 'b', 'c'])
  })
})
