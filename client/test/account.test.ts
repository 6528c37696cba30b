import { createElement } from 'react'
import { renderToStaticMarkup } from 'react-dom/server'
import { callDigest } from '@baton/shared/digest.ts'
import { expect, test } from 'vitest'
import { ApprovalCard, whereWords } from '../src/parts/ApprovalCard.tsx'
import { destinationsOf } from '../src/parts/MoveSheet.tsx'
import { defaultsOf } from '../src/parts/NewSession.tsx'
import { Queue } from '../src/parts/Queue.tsx'
import { devicesInOrder, removedWords, type NamedDevice, type Runner } from '../src/store/account.ts'
import type { OutboxItem } from '../src/store/outbox.ts'

const device = (device: string, added_at: number, seen_at: number, revoked = false): NamedDevice => ({
  device,
  added_at,
  seen_at,
  revoked,
  body: '',
  about: undefined,
})

test('devices stand in the order in which they were paired, whoever was seen last', () => {
  const order = (...devices: NamedDevice[]): string[] => devicesInOrder(devices).map(({ device }) => device)
  expect(order(device('b', 2, 9), device('a', 1, 5), device('c', 3, 7))).toEqual(['a', 'b', 'c'])
  expect(order(device('c', 3, 99), device('b', 1, 0), device('a', 1, 5))).toEqual(['a', 'b', 'c'])
  expect(order(device('a', 1, 5), device('b', 2, 5, true))).toEqual(['a'])
})

test('the card names the runner alone only while that one has the session', () => {
  expect(whereWords('cloud-1', 'holds', '/home/ada/shop')).toBe('cloud-1 · shop')
  expect(whereWords('cloud-1', 'away', '/home/ada/shop')).toBe(
    'on the machine that takes it next (cloud-1 is away) · shop',
  )
  expect(whereWords('cloud-1', 'let-go', undefined)).toBe(
    'on the machine that takes it next (last on cloud-1)',
  )
  expect(whereWords(undefined, 'away', undefined)).toBe('')
})

test('C14: a device that was removed decides nothing, and says why; a broken line alone takes nothing away', () => {
  const reason = removedWords({ at: 'refused', code: 'device-revoked', message: '' })
  expect(reason).toBe('This device was removed and can send nothing more.')
  expect(removedWords({ at: 'closed' })).toBeUndefined()
  expect(removedWords({ at: 'refused', code: 'version-mismatch', message: '' })).toBeUndefined()

  const input = { command: 'npm test' }
  const approval = { effect: 1, digest: callDigest('bash', input), name: 'bash', input, at: 0 }
  const card = (removed: string | undefined): string =>
    renderToStaticMarkup(
      createElement(ApprovalCard, {
        approval,
        always: undefined,
        given: undefined,
        connected: false,
        runner: undefined,
        where: '',
        removed,
        onDecide: () => undefined,
        onRetry: () => undefined,
      }),
    )
  expect(card(reason).match(/<button[^>]* disabled=""[^>]*>(Deny|Approve)</g)).toHaveLength(2)
  expect(card(reason)).toContain(reason)
  expect(card(undefined)).not.toMatch(/ disabled=""[^>]*>(Deny|Approve)</)
})

test('C8: what a removed device had queued is not promised to go', () => {
  const queued: OutboxItem = {
    id: 'prompt-0',
    n: 1,
    sid: 's',
    ask: { what: 'command', kind: 'prompt', body: '' },
    shown: { as: 'prompt', text: 'hi' },
    state: 'queued',
    queued_at: 0,
  }
  const queue = (removed: string | undefined): string =>
    renderToStaticMarkup(
      createElement(Queue, {
        items: [queued],
        waiting: [],
        connected: false,
        busy: true,
        ended: false,
        removed,
        onRetry: () => undefined,
        onDiscard: () => undefined,
      }),
    )
  expect(queue(undefined)).toContain('sent when the connection is back')
  expect(queue('It was removed.')).toContain('Not sent. It was removed.')
  expect(queue('It was removed.')).not.toContain('sent when the connection is back')
})

test('a runner that is leaving is named as such, comes last, and begins nothing new by itself', () => {
  const runner = (device: string, capacity: number): Runner => ({
    ...{ device, online: true, since: 0, held: 2, capacity, tags: [], body: '' },
    about: {
      ...{ name: device, pools: ['cloud'], platform: 'linux', model: 'anthropic' },
      workspaces: [{ path: '/shop', name: 'shop' }],
    },
  })
  const runners = [runner('going', 0), runner('staying', 4)]
  const words = destinationsOf(runners, undefined, (pool) => pool).map(
    ({ label, about }) => `${label}: ${about}`,
  )
  expect(words).toEqual([
    'staying: online · 2 of 4 sessions',
    'going: leaving; it moves when it is back',
    'Any of cloud: 1 online',
  ])
  expect(defaultsOf(runners, {})?.runner).toBe('staying')
  // Used last, it is not chosen by itself; picked by a person, it is.
  expect(defaultsOf(runners, { runner: 'going' })?.runner).toBe('staying')
  expect(defaultsOf(runners, { runner: 'staying' }, 'going')?.runner).toBe('going')
})
