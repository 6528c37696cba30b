import { BatonError, type ErrorCode } from '@baton/shared/errors.ts'
import { describe, expect, test } from 'vitest'
import { Sender, type Ask, type OutboxStorage } from '../src/net/sender.ts'
import { sendable, type NewOutboxItem, type OutboxItem, type Picture } from '../src/store/outbox.ts'
import { until } from './until.ts'

const SID = 'session-one-0000'

function prompt(id: string, sid = SID): NewOutboxItem {
  return { id, sid, ask: { what: 'command', kind: 'prompt', body: id }, shown: { as: 'prompt', text: id } }
}

function create(sid = SID): NewOutboxItem {
  return { id: sid, sid, ask: { what: 'create', meta: 'm', place: {} }, shown: { as: 'hidden' } }
}

function stop(id: string): NewOutboxItem {
  return { id, sid: SID, ask: { what: 'command', kind: 'stop', body: id }, shown: { as: 'stop' } }
}

class Disk implements OutboxStorage {
  readonly items = new Map<string, OutboxItem>()
  readonly drafts = new Map<string, string>()
  full = false
  /** Writes wait for it. */
  gate: Promise<void> | undefined

  async load(): Promise<OutboxItem[]> {
    return [...this.items.values()].map((item) => structuredClone(item))
  }

  async commit(put: readonly OutboxItem[], del: readonly string[], draft?: string): Promise<void> {
    await (this.gate ?? Promise.resolve())
    if (this.full) throw new Error('QuotaExceededError')
    for (const item of put) this.items.set(item.id, structuredClone(item))
    for (const id of del) this.items.delete(id)
    if (draft !== undefined) this.drafts.delete(draft)
  }
}

/** A relay that notes every ask, applies each id once, and can refuse or lose its answer. */
class Relay {
  readonly heard: string[] = []
  readonly applied = new Set<string>()
  next: (ErrorCode | 'lost-answer')[] = []

  readonly ask = (async (what: string, with_: { id?: string; sid: string }) => {
    await Promise.resolve()
    const id = with_.id ?? with_.sid
    this.heard.push(id)
    const fate = this.next.shift()
    if (fate && fate !== 'lost-answer') throw new BatonError(fate)
    this.applied.add(id)
    if (fate === 'lost-answer') throw new BatonError('offline')
    return what === 'create' ? {} : { n: this.heard.length, repeated: false }
  }) as unknown as Ask
}

async function connected(
  disk = new Disk(),
  relay = new Relay(),
): Promise<{ disk: Disk; relay: Relay; sender: Sender }> {
  const sender = new Sender(disk, relay.ask, { now: () => 1, retry_ms: 1 })
  await sender.load()
  sender.connected(true)
  return { disk, relay, sender }
}

const states = (sender: Sender): string[] => sender.items.get().map(({ id, state }) => `${id} ${state}`)
const settled = (sender: Sender): Promise<boolean> =>
  until('nothing is on its way', () =>
    sender.items.get().every(({ state }) => state === 'acknowledged' || state === 'refused'),
  )

describe('sending', () => {
  test('F10, C6: what is queued is on the disk before it is sent, and the draft goes in the same write', async () => {
    const disk = new Disk()
    disk.drafts.set(SID, 'hello')
    const relay = new Relay()
    const sender = new Sender(disk, relay.ask)
    await sender.load()
    sender.connected(true)
    const queued = sender.enqueue([prompt('p1')], SID)
    expect(relay.heard).toEqual([])
    await queued
    expect([...disk.items.keys()]).toEqual(['p1'])
    expect(disk.drafts.size).toBe(0)
    await settled(sender)
    expect(relay.heard).toEqual(['p1'])
  })

  test('F10, C6: what is not on the disk yet is not sent, even when something else is', async () => {
    const { disk, relay, sender } = await connected()
    const gate = Promise.withResolvers<void>()
    disk.gate = gate.promise
    const slow = sender.enqueue([prompt('p1')])
    disk.gate = undefined
    await sender.enqueue([prompt('q1', 'session-two-0000')])
    await until('the other has gone', () => relay.heard.includes('q1'))
    expect(relay.heard).toEqual(['q1'])
    gate.resolve()
    await slow
    await settled(sender)
    expect(relay.heard).toEqual(['q1', 'p1'])
  })

  test('I11, C6: when the browser can’t store it, nothing is queued and the caller learns it', async () => {
    const { disk, relay, sender } = await connected()
    disk.full = true
    await expect(sender.enqueue([prompt('p1')], SID)).rejects.toThrow('Quota')
    expect(sender.items.get()).toEqual([])
    expect(relay.heard).toEqual([])
  })

  test('F12, I6, C7: an answer that was lost is asked for again, with the same id', async () => {
    const { relay, sender } = await connected()
    relay.next = ['lost-answer']
    await sender.enqueue([prompt('p1')])
    await settled(sender)
    expect(relay.heard).toEqual(['p1', 'p1'])
    expect([...relay.applied]).toEqual(['p1'])
  })

  test('I11, C7: what has not left can be taken back; what may have arrived can not', async () => {
    const { disk, relay, sender } = await connected()
    relay.next = ['lost-answer']
    const passed = sender.enqueue([prompt('p1')])
    sender.connected(false)
    await passed
    await sender.enqueue([prompt('p2')])
    expect(sender.takeBack('p2')).toBe(true)
    sender.connected(true)
    await settled(sender)
    expect(relay.heard).not.toContain('p2')
    expect(sender.takeBack('p1')).toBe(false)
    // It went, and no answer came: after a reload it counts as arrived, too.
    relay.next = ['lost-answer']
    await sender.enqueue([prompt('p3')])
    await until('it has gone', () => disk.items.get('p3')?.tried === true)
    const later = new Sender(disk, relay.ask)
    await later.load()
    expect(later.takeBack('p3')).toBe(false)
    expect(later.items.get().map(({ id }) => id)).toContain('p3')
  })

  test('F14, C7: a reload in the middle of sending sends again, with the same id', async () => {
    const { disk, sender } = await connected()
    sender.connected(false)
    await sender.enqueue([prompt('p1')])
    sender.close()
    const stored = disk.items.get('p1')
    if (stored) disk.items.set('p1', { ...stored, state: 'sent' })
    const again = await connected(disk)
    await settled(again.sender)
    expect(again.relay.heard).toEqual(['p1'])
    expect(states(again.sender)).toEqual(['p1 acknowledged'])
  })

  test('C7: one session’s items go in order, one at a time; sessions do not wait for each other', async () => {
    const { relay, sender } = await connected()
    relay.next = ['too-fast']
    const other = 'session-two-0000'
    await sender.enqueue([create(), prompt('p1'), prompt('p2'), prompt('q1', other)])
    await settled(sender)
    expect(relay.heard.filter((id) => id !== 'q1')).toEqual([SID, SID, 'p1', 'p2'])
    expect(relay.heard.indexOf('q1')).toBeLessThan(relay.heard.lastIndexOf(SID))
  })

  test('C8: a refusal that waiting can’t heal is shown, and can be retried or discarded', async () => {
    const { disk, relay, sender } = await connected()
    relay.next = ['inbox-full']
    await sender.enqueue([prompt('p1'), prompt('p2'), stop('s1')])
    await until('the stop got through', () => relay.applied.has('s1'))
    expect(states(sender)).toEqual(['p1 refused', 'p2 queued', 's1 acknowledged'])
    expect(sender.items.get()[0]?.error).toMatchObject({ code: 'inbox-full' })
    expect(disk.items.get('p1')?.state).toBe('refused')
    sender.retry('p1')
    await settled(sender)
    expect(relay.heard).toEqual(['p1', 's1', 'p1', 'p2'])
    relay.next = ['inbox-full']
    await sender.enqueue([prompt('p3')])
    await until('it is refused', () => states(sender).includes('p3 refused'))
    sender.discard('p3')
    expect(states(sender)).not.toContain('p3 refused')
    await until('the disk forgets it', () => !disk.items.has('p3'))
  })

  test('C8: a session that was refused holds all of its items back, even a stop', async () => {
    const { relay, sender } = await connected()
    relay.next = ['session-limit']
    await sender.enqueue([create(), prompt('p1'), stop('s1')])
    await until('it is refused', () => states(sender)[0] === `${SID} refused`)
    expect(sendable(sender.items.get())).toEqual([])
    sender.discard(SID)
    expect(sender.items.get()).toEqual([])
  })
})

describe('being done', () => {
  test('C7: an acknowledged item stays until the journal shows it as applied', async () => {
    const { disk, sender } = await connected()
    await sender.enqueue([prompt('p1'), prompt('p2')])
    await settled(sender)
    sender.applied(new Set(['p1']))
    expect(states(sender)).toEqual(['p2 acknowledged'])
    await until('the disk forgets it', () => !disk.items.has('p1'))
  })

  test('a session that is not on screen is done when the relay says that nothing waits', async () => {
    const { sender } = await connected()
    await sender.enqueue([create(), prompt('p1')])
    await settled(sender)
    sender.listed(SID, 1)
    expect(states(sender)).toEqual(['p1 acknowledged'])
    sender.listed(SID, 0)
    expect(states(sender)).toEqual([])
  })
})

describe('pictures', () => {
  const picture = (hash: string): Picture => ({ hash, box: new Uint8Array([1]), media_type: 'image/jpeg' })
  const shown = (id: string, ...hashes: string[]): NewOutboxItem => ({
    ...prompt(id),
    pictures: hashes.map(picture),
  })

  async function uploading(fates: (ErrorCode | undefined)[] = []): Promise<{
    relay: Relay
    disk: Disk
    sender: Sender
  }> {
    const relay = new Relay()
    const disk = new Disk()
    const upload = async (_sid: string, { hash }: { hash: string }): Promise<void> => {
      await Promise.resolve()
      relay.heard.push(hash)
      const fate = fates.shift()
      if (fate) throw new BatonError(fate)
    }
    const sender = new Sender(disk, relay.ask, { now: () => 1, retry_ms: 1, upload })
    await sender.load()
    sender.connected(true)
    return { relay, disk, sender }
  }

  test('C22: are stored before their prompt goes, and stand on the disk until it has gone', async () => {
    const { relay, disk, sender } = await uploading()
    await sender.enqueue([create(), shown('p1', 'one', 'two')])
    expect(disk.items.get('p1')?.pictures).toHaveLength(2)
    await settled(sender)
    expect(relay.heard).toEqual([SID, 'one', 'two', 'p1'])
    sender.applied(new Set(['p1']))
    await until('it is gone', () => !disk.items.has('p1'))
  })

  test('C22: after a break only what is missing goes again', async () => {
    const { relay, sender } = await uploading([undefined, 'offline'])
    await sender.enqueue([shown('p1', 'one', 'two')])
    await settled(sender)
    expect(relay.heard).toEqual(['one', 'two', 'two', 'p1'])
  })

  test('I11, C8: one that the relay refuses holds its prompt back, with the reason', async () => {
    const { relay, sender } = await uploading(['too-large'])
    await sender.enqueue([shown('p1', 'one')])
    await settled(sender)
    expect(relay.heard).toEqual(['one'])
    expect(sender.items.get()).toMatchObject([{ state: 'refused', error: { code: 'too-large' } }])
    sender.retry('p1')
    await until('it has gone', () => relay.heard.includes('p1'))
  })
})
