import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Backoff } from '@baton/shared/backoff.ts'
import { watchClock } from '../src/power/clock.ts'
import { readLid, watchLid } from '../src/power/macos.ts'
import { watchNetwork } from '../src/power/network.ts'

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'Date', 'performance'],
  })
})
afterEach(() => {
  vi.useRealTimers()
})

describe('the clock', () => {
  function watched() {
    const jumps: number[] = []
    return { jumps, end: watchClock((away_ms) => jumps.push(away_ms)) }
  }

  it('Z5: a sleep, in which only the wall clock goes on, is noticed when it is over, and how long it was', async () => {
    const { jumps, end } = watched()
    await vi.advanceTimersByTimeAsync(10_000)
    vi.setSystemTime(Date.now() + 3_600_000)
    await vi.advanceTimersByTimeAsync(3_000)
    expect(jumps).toEqual([3_600_000])
    end()
  })

  it('Z5: a busy machine that is late by a second, and a clock that is set back, are no sleep', async () => {
    const { jumps, end } = watched()
    for (const change_ms of [1_000, -3_600_000, 2_000]) {
      vi.setSystemTime(Date.now() + change_ms)
      await vi.advanceTimersByTimeAsync(2_000)
    }
    expect(jumps).toEqual([])
    end()
  })
})

describe('the network', () => {
  const address = (of: string, internal = false) => ({
    ...{ address: of, internal, netmask: '255.255.255.0', mac: '00:00:00:00:00:00', cidr: null },
    family: 'IPv4' as const,
  })
  const local = { lo: [address('127.0.0.1', true)] }

  it('F9: another address, and one after there was none, are told once; to lose it is not', async () => {
    let now: Parameters<typeof watchNetwork>[1] extends (() => infer T) | undefined ? T : never = local
    let changes = 0
    const end = watchNetwork(
      () => changes++,
      () => now,
    )
    await vi.advanceTimersByTimeAsync(10_000)
    expect(changes).toBe(0)
    now = { ...local, wlan0: [address('192.168.1.7')] }
    await vi.advanceTimersByTimeAsync(10_000)
    expect(changes).toBe(1)
    now = local
    await vi.advanceTimersByTimeAsync(10_000)
    expect(changes).toBe(1)
    now = { ...local, wlan0: [address('10.0.0.7')] }
    await vi.advanceTimersByTimeAsync(10_000)
    expect(changes).toBe(2)
    end()
  })

  it('F9: a laptop that is shut but awake knocks a thousand times in a night, not eighteen thousand times', () => {
    const backoff = new Backoff({ random: () => 0 })
    const night_ms = 8 * 3_600_000
    let attempts = 0
    for (let at_ms = 0; at_ms < night_ms; at_ms += backoff.next()) attempts++
    // Half of the cap of 30 s is the least that it waits.
    expect(attempts).toBeLessThan(2_000)
  })
})

describe('the lid of a Mac', () => {
  // The form in which `ioreg -r -k AppleClamshellState -d 1` prints.
  const ioreg = (
    state: string,
    causes: string,
  ): string => `+-o IOPMrootDomain  <class IOPMrootDomain, id 0x100000112, registered, matched, active, busy 0 (0 ms), retain 38>
    {
      "IOPMUserIsActive" = Yes
      "AppleClamshellState" = ${state}
      "SystemPowerProfileOverrideDict" = {}
      "Supported Features" = {"Reduce Brightness"=16777231}
      "AppleClamshellCausesSleep" = ${causes}
      "SleepRequestedByPID" = 12
    }

`

  it.each([
    ['open', 'No', 'Yes', { isShut: false, causesSleep: true }],
    ['shut', 'Yes', 'Yes', { isShut: true, causesSleep: true }],
    ['shut, with an external screen', 'Yes', 'No', { isShut: true, causesSleep: false }],
  ])('is read from what ioreg prints: %s', (_, state, causes, lid) => {
    expect(readLid(ioreg(state, causes))).toEqual(lid)
  })

  it('is not there on a Mac without one', () => {
    expect(readLid('\n')).toBeUndefined()
  })

  function watched() {
    const happened: string[] = []
    const state = { text: ioreg('No', 'Yes'), fails: false }
    const end = watchLid({
      log: (message) => happened.push(message.split(':')[0] ?? ''),
      events: { going: async (why) => void happened.push(why), back: () => void happened.push('back') },
      look: async () => {
        if (state.fails) throw new Error('no ioreg')
        return state.text
      },
      hold: () => {
        happened.push('held')
        return () => happened.push('let go')
      },
    })
    return { happened, state, end }
  }

  it('Z1: shut, it is held back while sessions are handed over, once; open again, the runner comes back', async () => {
    const { happened, state, end } = watched()
    await vi.advanceTimersByTimeAsync(3_000)
    expect(happened).toEqual([])
    state.text = ioreg('Yes', 'Yes')
    await vi.advanceTimersByTimeAsync(5_000)
    expect(happened).toEqual(['held', 'sleep', 'let go'])
    // Once missed, it is still watched.
    state.fails = true
    await vi.advanceTimersByTimeAsync(2_000)
    state.fails = false
    state.text = ioreg('No', 'Yes')
    await vi.advanceTimersByTimeAsync(2_000)
    expect(happened).toEqual(['held', 'sleep', 'let go', 'back'])
    end()
  })

  it('with an external screen, nothing happens', async () => {
    const { happened, state, end } = watched()
    state.text = ioreg('Yes', 'No')
    await vi.advanceTimersByTimeAsync(5_000)
    expect(happened).toEqual([])
    end()
  })

  it('Z7: where there is none, that is said once', async () => {
    const { happened, state, end } = watched()
    state.fails = true
    await vi.advanceTimersByTimeAsync(10_000)
    expect(happened).toEqual(['no notice of sleep on this machine'])
    end()
  })
})
