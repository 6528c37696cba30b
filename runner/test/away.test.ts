import { describe, expect, it } from 'vitest'
import type { SessionInfo } from '@baton/shared/protocol.ts'
import { Away } from '../src/daemon/away.ts'

const HERE = 'h'.repeat(43)
const THERE = 't'.repeat(43)
const TAG = 'p'.repeat(22)

/** A session of this runner, which it let go at epoch 3. */
function setUp() {
  const away = new Away(HERE, [TAG])
  away.left('session-1', 3, 'released')
  const see = (change: Partial<SessionInfo>): string[] => {
    away.see({
      ...{ sid: 'session-1', meta: '', status: 'running', seq: 9, epoch: 4, place: { prefer: HERE } },
      ...{ pending: 0, created_at: 0, changed_at: 0 },
      ...change,
    })
    return away.sids
  }
  return { away, see }
}

describe('Z6: what is away', () => {
  it('is what another runner holds, and what rests after another runner had it', () => {
    expect(setUp().see({ holder: THERE })).toEqual(['session-1'])
    expect(setUp().see({ status: 'idle' })).toEqual(['session-1'])
  })

  it('is not what rests as it was left, is on its way, has ended, or is here', () => {
    expect(setUp().see({ epoch: 3, status: 'idle' })).toEqual([])
    expect(setUp().see({ status: 'moving' })).toEqual([])
    expect(setUp().see({ status: 'done' })).toEqual([])
    expect(setUp().see({ holder: HERE, epoch: 5 })).toEqual([])
  })

  it('is not what somebody sent elsewhere, nor what is at home in a pool and was never here', () => {
    expect(setUp().see({ holder: THERE, place: { prefer: THERE } })).toEqual([])
    expect(setUp().see({ holder: THERE, place: { pool: 'q'.repeat(22) } })).toEqual([])
    expect(setUp().see({ sid: 'session-2', holder: THERE, place: { pool: TAG } })).toEqual([])
    expect(setUp().see({ holder: THERE, place: { pool: TAG } })).toEqual(['session-1'])
  })

  it('is not what only lost its lease: that ends with an epoch of its own', () => {
    const { away, see } = setUp()
    away.left('session-1', 3, 'lost')
    expect(see({ epoch: 4 })).toEqual([])
    expect(see({ epoch: 5 })).toEqual(['session-1'])
  })

  it('is told as changed only when it has', () => {
    const { away, see } = setUp()
    see({ holder: THERE })
    const info: SessionInfo = {
      ...{ sid: 'session-1', meta: '', status: 'running', seq: 10, epoch: 4, place: { prefer: HERE } },
      ...{ pending: 0, created_at: 0, changed_at: 0, holder: THERE },
    }
    expect(away.see(info)).toBe(false)
    expect(away.see({ ...info, holder: HERE })).toBe(true)
  })
})
