import type { SessionInfo } from '@baton/shared/protocol.ts'
import { expect, test } from 'vitest'
import type { Runner } from '../src/store/account.ts'
import { homecomings, homecomingWords } from '../src/store/home.ts'
import type { OutboxItem } from '../src/store/outbox.ts'

const runner = (device: string, away: string[], online = true): Runner =>
  ({ device, online, capacity: 4, about: { name: device, pools: [], away } }) as unknown as Runner
const session = (sid: string, holder: string | undefined, status = 'running'): SessionInfo =>
  ({ sid, holder, status }) as unknown as SessionInfo

const sessions = [
  session('a', 'cloud'),
  session('b', undefined, 'idle'),
  session('c', 'laptop'),
  session('d', 'cloud', 'done'),
  session('e', 'cloud'),
]

test('C27: a runner that is back offers what went on elsewhere: not what has ended, is there or is not known', () => {
  const [one] = homecomings([runner('laptop', ['a', 'b', 'c', 'd', 'z'])], sessions, [], new Set())
  expect(one).toEqual({ device: 'laptop', name: 'laptop', sids: ['a', 'b'] })
  expect(one && homecomingWords(one)).toBe('laptop is back. 2 of its sessions went on elsewhere.')
})

test('C27: what is on its way or put off is offered no more; a runner that is away, or leaving, offers nothing', () => {
  const back = [runner('laptop', ['a', 'e'])]
  const moving = [{ sid: 'a', shown: { as: 'move', label: 'laptop' }, state: 'sent' }] as OutboxItem[]
  expect(homecomings(back, sessions, moving, new Set()).map(({ sids }) => sids)).toEqual([['e']])
  expect(homecomings(back, sessions, moving, new Set(['e']))).toEqual([])
  expect(homecomings([runner('laptop', ['a'], false)], sessions, [], new Set())).toEqual([])
  const leaving = { ...runner('laptop', ['a']), capacity: 0 }
  expect(homecomings([leaving], sessions, [], new Set())).toEqual([])
})
