import { describe, expect, it } from 'vitest'
import { Connection } from '../src/connection.ts'
import { Feed } from '../src/feed.ts'
import type { AskWith, Entry } from '../src/protocol.ts'

const entry = (seq: number): Entry => ({ seq, epoch: 1, kind: 'event', at: 0, size: 0, body: '', blobs: [] })
const entries = (from: number, to: number): Entry[] =>
  Array.from({ length: to - from + 1 }, (_, i) => entry(from + i))

function setUp(cursor = 0) {
  const watches: number[] = []
  const seen: number[] = []
  const gaps: string[] = []
  const connection = {
    state: { at: 'open' },
    ask: (_: string, { from }: AskWith<'watch'>) => {
      watches.push(from)
      return Promise.resolve({ tail: 0 })
    },
  } as unknown as Connection
  const feed = new Feed(connection, 'session-1', cursor, {
    entries: (fresh) => seen.push(...fresh.map(({ seq }) => seq)),
    gap: (reason) => gaps.push(reason),
  })
  const hear = (fresh: Entry[], tail = 99): void =>
    feed.notice({ t: 'entries', sid: 'session-1', entries: fresh, tail })
  return { feed, watches, seen, gaps, hear }
}

describe('a feed', () => {
  it('F3: asks from its cursor, again after every reconnect', () => {
    const { feed, watches, hear } = setUp(4)
    hear(entries(5, 9))
    feed.resume()
    expect(watches).toEqual([5, 10])
  })

  it('F13: hands on each entry once, however often it comes', () => {
    const { seen, hear } = setUp()
    hear(entries(1, 3))
    hear(entries(2, 5))
    hear(entries(1, 5))
    expect(seen).toEqual([1, 2, 3, 4, 5])
  })

  it('F26: never skips: a hole makes it ask again', () => {
    const { watches, seen, hear } = setUp()
    hear(entries(1, 2))
    hear(entries(5, 6))
    expect(seen).toEqual([1, 2])
    expect(watches).toEqual([1, 3])
  })

  it('F3: a gap is told, and the feed starts over from where it says', () => {
    const { feed, watches, gaps, seen, hear } = setUp(50)
    feed.notice({ t: 'gap', sid: 'session-1', reason: 'rolled-back', from: 1, tail: 20 })
    expect(gaps).toEqual(['rolled-back'])
    expect(watches).toEqual([51, 1])
    hear(entries(1, 20))
    expect(seen).toHaveLength(20)
  })

  it('ignores other sessions', () => {
    const { feed, seen } = setUp()
    feed.notice({ t: 'entries', sid: 'session-2', entries: entries(1, 2), tail: 2 })
    expect(seen).toEqual([])
  })
})
