import type { BodyOf } from '@baton/shared/entries.ts'
import { newAccount, sessionKey } from '@baton/shared/keys.ts'
import type { Entry, SealedKind } from '@baton/shared/protocol.ts'
import { place, sealJson } from '@baton/shared/seal.ts'
import { describe, expect, test } from 'vitest'
import { glance, troubled } from '../src/net/glance.ts'
import type { Ask } from '../src/net/sender.ts'

const SID = 'session-one-0000'
const HASH = 'a'.repeat(64)
const KEY = sessionKey(newAccount(), SID)

/** A sealed journal behind a relay that gives at most `page` entries an answer. */
class Sealed {
  readonly entries: Entry[] = []
  readonly asked: number[] = []
  page = 500

  add<K extends SealedKind>(kind: K, body: BodyOf<K>): this {
    const seq = this.entries.length + 1
    const sealed = sealJson(KEY, body, place.entry(SID, kind, seq))
    this.entries.push({ seq, epoch: 1, kind, at: seq, size: 0, body: sealed, blobs: [] })
    return this
  }

  leases(count: number): this {
    for (let i = 0; i < count; i++) {
      const change = i % 2 === 0 ? 'released' : 'claimed'
      const seq = this.entries.length + 1
      const lease = { change, holder: 'laptop' } as const
      this.entries.push({ seq, epoch: 1, kind: 'lease', at: seq, size: 0, body: '', blobs: [], lease })
    }
    return this
  }

  asks(effect: number): this {
    const approve = { name: 'bash', input: { command: `make ${effect}` }, digest: HASH }
    return this.add('intent', {
      effect,
      kind: 'approve',
      replay: 'safe',
      digest: HASH,
      attempt: 1,
      now: 0,
      approve,
    })
  }

  decided(effect: number): this {
    return this.add('outcome', { effect, now: 0, result: { approved: true, device: 'phone' } })
  }

  readonly ask = (async (_what: 'read', { from, limit = 500 }: { from: number; limit?: number }) => {
    await Promise.resolve()
    this.asked.push(from)
    const count = Math.min(limit, this.page)
    return { entries: this.entries.slice(from - 1, from - 1 + count), tail: this.entries.length }
  }) as unknown as Ask

  async seen(seq = this.entries.length): Promise<number[]> {
    return (await glance(this.ask, KEY, SID, seq)).map(({ effect }) => effect)
  }
}

test('a session that rests is in trouble while the error of its last turn is the last that was said', async () => {
  const journal = new Sealed().leases(60)
  const seen = (): Promise<boolean> => troubled(journal.ask, KEY, SID, journal.entries.length)
  expect(await seen()).toBe(false)
  journal.add('event', { type: 'error', data: { code: 'model-busy', message: 'Busy.' }, effect: 4 })
  journal.leases(3)
  expect(await seen()).toBe(true)
  journal.add('received', { kind: 'prompt', id: 'p', device: 'phone', now: 0, command: { text: 'Again' } })
  expect(await seen()).toBe(false)
})

describe('what a waiting session asks', () => {
  test('F34: is found behind any number of lease entries, up to a thousand', async () => {
    for (const behind of [0, 39, 40, 41, 120, 900, 999]) {
      const journal = new Sealed().leases(300).asks(7).leases(behind)
      expect(await journal.seen(), `${behind} entries behind`).toEqual([7])
      expect(journal.asked.length).toBeLessThan(10)
    }
  })

  test('F34: is found when a window does not fit one answer, and its outcome counts though it is the newest', async () => {
    const journal = new Sealed().leases(5).asks(1).leases(30).asks(2)
    journal.page = 7
    expect(await journal.seen()).toEqual([1, 2])
    expect(await journal.decided(1).seen()).toEqual([2])
  })

  test('F34: is up to date with entries newer than the list', async () => {
    const journal = new Sealed().leases(50).asks(1).decided(1).asks(2)
    journal.page = 10
    expect(await journal.seen(51)).toEqual([2])
  })

  test('the look back ends at the first entry, or after a thousand', async () => {
    expect(await new Sealed().seen()).toEqual([])
    expect(await new Sealed().asks(1).decided(1).leases(60).seen()).toEqual([])
    const long = new Sealed().asks(1).leases(3000)
    expect(await long.seen()).toEqual([])
    expect(Math.min(...long.asked)).toBe(2002)
  })
})
