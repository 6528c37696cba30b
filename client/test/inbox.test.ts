import type { SessionInfo } from '@baton/shared/protocol.ts'
import { expect, test } from 'vitest'
import { inboxRows } from '../src/store/inbox.ts'
import type { OutboxItem } from '../src/store/outbox.ts'

function session(sid: string, status: SessionInfo['status'], more: Partial<SessionInfo> = {}): SessionInfo {
  return {
    sid,
    meta: sid,
    status,
    seq: 1,
    epoch: 1,
    place: {},
    pending: 0,
    created_at: 1,
    changed_at: 1,
    ...more,
  }
}

const meta = (sid: string): { title: string; agent: string; mode: 'ask'; workspace: string } => ({
  title: `title of ${sid}`,
  agent: 'coder',
  mode: 'ask',
  workspace: '/w',
})

function item(values: Partial<OutboxItem> & Pick<OutboxItem, 'id' | 'sid' | 'ask'>): OutboxItem {
  return { n: 1, state: 'queued', queued_at: 9, shown: { as: 'hidden' }, ...values }
}

const sids = (rows: { sid: string }[]): string[] => rows.map(({ sid }) => sid)

test('C9: what needs a person, what runs and what is parked stand apart, newest first', () => {
  const rows = inboxRows(
    [
      session('idle', 'idle'),
      session('busy', 'running'),
      session('asks', 'waiting', { changed_at: 5 }),
      session('broken', 'failed', { changed_at: 7 }),
      session('moves', 'moving', { changed_at: 3 }),
      session('over', 'done', { changed_at: 4 }),
      session('woken', 'idle', { pending: 1, changed_at: 2 }),
    ],
    meta,
    [],
  )
  // What failed waits for nothing: it stands below.
  expect(sids(rows['needs-you'])).toEqual(['asks', 'broken'])
  expect(sids(rows.running)).toEqual(['moves', 'woken', 'busy'])
  expect(sids(rows.parked)).toEqual(['over', 'idle'])
})

test('C9: a session that only this device knows yet is listed, also between creation and its first notice', () => {
  const created = item({ id: 'new', sid: 'new', ask: { what: 'create', meta: 'm', place: {} } })
  const prompt = item({ id: 'p', sid: 'new', ask: { what: 'command', kind: 'prompt', body: 'b' } })
  expect(inboxRows([], meta, [created, prompt]).running).toMatchObject([
    { sid: 'new', unsent: 2, title: 'title of new' },
  ])
  const acknowledged: OutboxItem = { ...created, state: 'acknowledged' }
  expect(inboxRows([], meta, [acknowledged, prompt]).running).toMatchObject([{ sid: 'new', unsent: 1 }])
  expect(inboxRows([session('new', 'idle')], meta, [acknowledged]).parked).toHaveLength(1)
})

test('C9: an ended session can be dismissed from the list; one that goes on stays, whatever was said', () => {
  const sessions = [session('broken', 'failed'), session('over', 'done'), session('asks', 'waiting')]
  const rows = inboxRows(sessions, meta, [], new Set(['broken', 'asks']))
  expect(sids(rows.dismissed)).toEqual(['broken'])
  expect(sids(rows['needs-you'])).toEqual(['asks'])
  expect(sids(rows.parked)).toEqual(['over'])
})

test('a refused message brings its session to the top', () => {
  const prompt = item({
    id: 'p',
    sid: 'idle',
    state: 'refused',
    ask: { what: 'command', kind: 'prompt', body: 'b' },
  })
  expect(sids(inboxRows([session('idle', 'idle')], meta, [prompt])['needs-you'])).toEqual(['idle'])
})

test('a session of unreadable metadata is still listed', () => {
  const rows = inboxRows([session('odd', 'idle')], () => undefined, [])
  expect(rows.parked[0]?.title).toMatch(/can’t read/)
})
