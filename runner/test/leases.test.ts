import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { BatonError } from '@baton/shared/errors.ts'
import { Leases } from '../src/daemon/leases.ts'
import { moment } from '../src/power/moment.ts'
import type { RelayLink } from '../src/session/link.ts'

const TTL_MS = 9_000

/** A relay that answers renewals as the test says, and one session that tells when it is lost. */
function setUp(answer: () => Promise<{ lost: string[] }>) {
  let asked = 0
  let silences = 0
  let lost = 0
  const link = {
    ask: () => {
      asked++
      return answer()
    },
  } as unknown as RelayLink
  const leases = new Leases(link, () => silences++)
  leases.add({ sid: 's', epoch: 1, lose: () => lost++ }, TTL_MS, moment())
  return { leases, asked: () => asked, silences: () => silences, lost: () => lost }
}

const never = (): Promise<{ lost: string[] }> => new Promise(() => undefined)

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'],
  })
})
afterEach(() => {
  vi.useRealTimers()
})

describe('leases', () => {
  it('F22: are renewed for as long as they are held', async () => {
    const { leases, asked, lost } = setUp(async () => ({ lost: [] }))
    await vi.advanceTimersByTimeAsync(10 * TTL_MS)
    expect(asked()).toBeGreaterThanOrEqual(25)
    expect(lost()).toBe(0)
    leases.close()
  })

  it('I8: one that could not be renewed in time is given up here, before anybody says so', async () => {
    const { leases, lost } = setUp(() => Promise.reject(new BatonError('offline')))
    await vi.advanceTimersByTimeAsync(TTL_MS - 500)
    expect(lost()).toBe(0)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(lost()).toBeGreaterThan(0)
    leases.close()
  })

  it('I8: a sleep counts, which the monotonic clock does not see', async () => {
    const { leases, lost } = setUp(never)
    vi.setSystemTime(Date.now() + TTL_MS + 1)
    await vi.advanceTimersByTimeAsync(500)
    expect(lost()).toBeGreaterThan(0)
    leases.close()
  })

  it('I1: one that the relay calls lost ends its session at once', async () => {
    const { leases, lost } = setUp(async () => ({ lost: ['s'] }))
    leases.renew()
    await vi.advanceTimersByTimeAsync(0)
    expect(lost()).toBe(1)
    leases.close()
  })

  it('F2: a renewal that is not answered makes the connection look whether it still lives', async () => {
    const { leases, silences } = setUp(never)
    leases.renew()
    await vi.advanceTimersByTimeAsync(3_000)
    expect(silences()).toBe(1)
    leases.close()
  })
})
