import { describe, expect, test } from 'vitest'
import { handoffWords } from '../src/view/words.ts'
import type { Handoff, Item, ToolItem } from '../src/view/items.ts'
import {
  EMPTY,
  isThinking,
  liveThought,
  pendingApprovals,
  reduce,
  withDelta,
} from '../src/view/transcript.ts'
import { Journal } from './journal.ts'

const transcriptOf = (journal: Journal): ReturnType<typeof reduce> => reduce(EMPTY, journal.entries)
const kinds = (items: readonly Item[]): string[] => items.map(({ kind }) => kind)
const tools = (items: readonly Item[]): ToolItem[] => items.filter((item) => item.kind === 'tool')
const handoffs = (items: readonly Item[]): Handoff[] => items.filter((item) => item.kind === 'handoff')

/** A journal with everything in it, for properties that hold of any. */
function long(): Journal {
  return new Journal()
    .lease('claimed', 'laptop')
    .prompt('fix it')
    .llm(1)
    .says(1, 'Looking.')
    .call(2, 'read', { path: 'a.ts' })
    .did(2, 'text')
    .asks(3, 'bash', { command: 'npm test' })
    .asks(4, 'bash', { command: 'rm -r build' })
    .snapshot(41 << 10)
    .lease('released', 'laptop')
    .later(64)
    .lease('claimed', 'cloud')
    .decided(4, false)
    .decided(3, true)
    .call(5, 'bash', { command: 'npm test' }, 3)
    .unreadable()
    .did(5, 'ok')
    .llm(6)
    .lease('expired', 'cloud')
    .later(11_000)
    .lease('claimed', 'laptop')
    .llm(6, 2)
    .says(6, 'Done.', { repeated: 1 })
    .add('event', { type: 'notice', data: { message: 'A note.' } })
}

describe('order and repetition', () => {
  test('F13, C1: an entry that comes twice, or again after a reconnect, shows once', () => {
    const { entries } = long()
    const once = reduce(EMPTY, entries)
    expect(reduce(once, entries)).toBe(once)
    expect(reduce(EMPTY, [...entries.slice(0, 9), ...entries.slice(4)])).toEqual(once)
    expect(once.items.filter((item) => item.kind === 'text')).toHaveLength(2)
  })

  test('C1: however the entries are cut into batches, the transcript is the same', () => {
    const { entries } = long()
    const whole = reduce(EMPTY, entries)
    for (let cut = 0; cut <= entries.length; cut++) {
      const halves = reduce(reduce(EMPTY, entries.slice(0, cut)), entries.slice(cut))
      expect(halves, `cut at ${cut}`).toEqual(whole)
    }
    expect(entries.reduce((so_far, entry) => reduce(so_far, [entry]), EMPTY)).toEqual(whole)
  })

  test('C1: reducing changes no transcript that was handed out before', () => {
    const { entries } = long()
    const before = reduce(EMPTY, entries.slice(0, 8))
    const copy = structuredClone(before)
    reduce(before, entries.slice(8))
    expect(before).toEqual(copy)
  })

  test('I4: a second outcome of one effect changes nothing', () => {
    const journal = new Journal().llm(1).says(1, 'Yes.')
    const once = transcriptOf(journal)
    expect(transcriptOf(journal.says(1, 'No.')).items).toEqual(once.items)
  })
})

describe('streaming', () => {
  test('F13, C2: live text gives way to the outcome, and a late delta does not bring it back', () => {
    const journal = new Journal().prompt('hi').llm(1)
    const live = withDelta(transcriptOf(journal), 1, 'Hel')
    expect(live.live.get(1)).toBe('Hel')
    const done = reduce(live, journal.says(1, 'Hello.').entries)
    expect(done.live.size).toBe(0)
    expect(kinds(done.items)).toEqual(['prompt', 'text'])
    expect(withDelta(done, 1, 'Hello')).toBe(done)
  })

  test('C2: what a model thinks just now goes with what it says, its outcome and the next attempt', () => {
    const journal = new Journal().prompt('hi').llm(1)
    const thinks = withDelta(transcriptOf(journal), 1, '', 'Is it the cache?')
    expect([liveThought(thinks), thinks.live.get(1)]).toEqual(['Is it the cache?', ''])
    expect(withDelta(thinks, 1, '', 'Is it the cache?')).toBe(thinks)
    expect(liveThought(withDelta(thinks, 1, 'It is'))).toBeUndefined()
    expect(liveThought(withDelta(thinks, 9, '', 'of an effect that nobody knows'))).toBe('Is it the cache?')
    expect(liveThought(reduce(thinks, new Journal().prompt('hi').llm(1).llm(1, 2).entries))).toBeUndefined()
    expect(liveThought(reduce(thinks, journal.says(1, 'It is.').entries))).toBeUndefined()
  })

  test('C2: a delta may overtake its intent', () => {
    const early = withDelta(transcriptOf(new Journal().prompt('hi')), 1, 'Hel')
    expect(early.live.get(1)).toBe('Hel')
  })

  test('C2: what a lost runner had streamed is void when the next one asks again', () => {
    const journal = new Journal().llm(1)
    const live = withDelta(transcriptOf(journal), 1, 'Half an ans')
    const again = reduce(live, journal.llm(1, 2).entries)
    expect(again.live.size).toBe(0)
    expect(isThinking(again)).toBe(true)
  })
})

describe('stopping', () => {
  test('what was on the screen when a person stopped the model stays, above the line of the stop', () => {
    const journal = new Journal().prompt('hi').llm(1)
    const live = withDelta(transcriptOf(journal), 1, 'Half an ans')
    const done = reduce(live, journal.stop().failed(1, 'stopped', { partial: 'Half an ans' }).entries)
    expect(done.live.size).toBe(0)
    expect(done.items.map((item) => (item.kind === 'text' ? item.text : item.kind))).toEqual([
      'prompt',
      'Half an ans',
      'stop',
    ])
    expect(new Set(done.items.map(({ id }) => id)).size).toBe(3)
  })

  test('a call that is open below the stopped answer ends on its own line', () => {
    const journal = new Journal()
      .asks(1, 'bash', { command: 'one' })
      .llm(2)
      .stop()
      .asks(3, 'bash', { command: 'three' })
      .asks(4, 'bash', { command: 'four' })
      .decided(4, true)
      .failed(2, 'stopped', { partial: 'Half' })
      .call(5, 'bash', { command: 'four' }, 4)
      .did(5, 'four done')
      .decided(3, false)
    const { items } = transcriptOf(journal)
    expect(kinds(items)).toEqual(['tool', 'text', 'stop', 'tool', 'tool'])
    expect(tools(items).map(({ input, state }) => [input['command'], state])).toEqual([
      ['one', 'approval'],
      ['three', 'denied'],
      ['four', 'ok'],
    ])
  })

  test('an older stop is not the one: without one of its own the text comes last', () => {
    const journal = new Journal().llm(1).stop().failed(1, 'stopped').later(5).llm(2)
    const { items } = transcriptOf(journal.failed(2, 'stopped', { partial: 'Half' }))
    expect(kinds(items)).toEqual(['stop', 'text'])
  })

  test('nothing was said: no empty text', () => {
    const { items } = transcriptOf(new Journal().llm(1).stop().failed(1, 'stopped', { partial: ' ' }))
    expect(kinds(items)).toEqual(['stop'])
  })
})

describe('approvals', () => {
  test('F34, F35, C3: every approval without outcome is pending, with the call it is about', () => {
    const journal = new Journal()
      .asks(3, 'bash', { command: 'a' })
      .asks(4, 'write', { path: 'b', content: 'c' })
    const pending = pendingApprovals(transcriptOf(journal))
    expect(pending.map(({ effect, name }) => [effect, name])).toEqual([
      [3, 'bash'],
      [4, 'write'],
    ])
    expect(pendingApprovals(transcriptOf(journal.decided(3, true))).map(({ effect }) => effect)).toEqual([4])
    expect(pendingApprovals(transcriptOf(journal.decided(4, false)))).toEqual([])
  })

  test('F36, C3: a journal read anew pends what it pended before', () => {
    const { entries } = new Journal().asks(3, 'bash', { command: 'a' })
    expect(pendingApprovals(reduce(EMPTY, structuredClone(entries)))).toEqual(
      pendingApprovals(reduce(EMPTY, entries)),
    )
  })

  test('a call and its approval are one line, from the question to the result', () => {
    const journal = new Journal().asks(3, 'bash', { command: 'a' })
    const states: string[] = []
    const look = (): void =>
      void states.push(
        tools(transcriptOf(journal).items)
          .map(({ state }) => state)
          .join(),
      )
    look()
    journal.decided(3, true)
    look()
    journal.call(4, 'bash', { command: 'a' }, 3)
    look()
    journal.did(4, 'out')
    look()
    expect(states).toEqual(['approval', 'approved', 'running', 'ok'])
  })

  test('a denied call says so and keeps what it wanted', () => {
    const [tool] = tools(
      transcriptOf(new Journal().asks(3, 'bash', { command: 'a' }).decided(3, false)).items,
    )
    expect(tool).toMatchObject({
      state: 'denied',
      input: { command: 'a' },
      approval: { decided: { approved: false } },
    })
  })

  test('calls approved out of order end on their own lines', () => {
    const journal = new Journal()
      .asks(1, 'bash', { command: 'one' })
      .asks(2, 'bash', { command: 'two' })
      .decided(2, true)
      .call(3, 'bash', { command: 'two' }, 2)
      .did(3, 'two done')
      .decided(1, true)
      .call(4, 'bash', { command: 'one' }, 1)
      .did(4, 'one done')
    const lines = tools(transcriptOf(journal).items).map(({ input, result }) => [
      input['command'],
      result?.text,
    ])
    expect(lines).toEqual([
      ['one', 'one done'],
      ['two', 'two done'],
    ])
  })

  test('what was asked for before a handoff and runs after it stands after the divider', () => {
    const journal = new Journal()
      .lease('claimed', 'laptop')
      .asks(1, 'bash', { command: 'one' })
      .asks(2, 'bash', { command: 'two' })
      .lease('released', 'laptop')
      .lease('claimed', 'cloud')
      .decided(1, true)
      .call(3, 'bash', { command: 'one' }, 1)
      .decided(2, true)
      .call(4, 'bash', { command: 'two' }, 2)
      .did(4, 'two done')
      .did(3, 'one done')
    const { items } = transcriptOf(journal)
    expect(kinds(items)).toEqual(['handoff', 'tool', 'tool'])
    expect(tools(items).map(({ result }) => result?.text)).toEqual(['one done', 'two done'])
  })
})

describe('calls', () => {
  test('I5: a call that may have run says that it was interrupted', () => {
    const [tool] = tools(
      transcriptOf(new Journal().call(1, 'bash', { command: 'a' }).failed(1, 'interrupted')).items,
    )
    expect(tool).toMatchObject({ state: 'interrupted', error: { code: 'interrupted' } })
  })

  test('H18: a call carries by what it was allowed, also where the agent had asked for it', () => {
    const intent = { kind: 'tool', replay: 'never', digest: 'a'.repeat(64), attempt: 1, now: 0 } as const
    const allowed = { mode: 'full' } as const
    const journal = new Journal()
      .asks(1, 'bash', {})
      .add('outcome', { effect: 1, now: 0, result: { approved: true } })
      .add('intent', { ...intent, effect: 2, tool: { name: 'bash', input: {}, approval: 1 }, allowed })
      .add('intent', { ...intent, effect: 3, tool: { name: 'bash', input: {} }, allowed })
    expect(tools(transcriptOf(journal).items)).toMatchObject([{ allowed }, { allowed }])
  })

  test('a later attempt of one effect is the same line', () => {
    const items = tools(
      transcriptOf(new Journal().call(1, 'read', {}).call(1, 'read', {}, undefined, 2).did(1, 'x')).items,
    )
    expect(items).toHaveLength(1)
    expect(items[0]).toMatchObject({ state: 'ok', attempt: 2 })
  })

  test('a result of an unknown form is shown as text', () => {
    const journal = new Journal().call(1, 'odd', {}).add('outcome', { effect: 1, now: 0, result: [1, 2] })
    expect(tools(transcriptOf(journal).items)[0]?.result?.text).toBe('[\n  1,\n  2\n]')
  })

  test('a long result stands as its blob', () => {
    const blob = { hash: 'b'.repeat(64), bytes: 100_000, head: 'first', tail: 'last' }
    const journal = new Journal()
      .call(1, 'bash', { command: 'a' })
      .add('outcome', { effect: 1, now: 0, blob })
    expect(tools(transcriptOf(journal).items)[0]).toMatchObject({ state: 'ok', blob })
  })
})

describe('handoffs', () => {
  const name = (device: string): string => device

  test('C4: a move says where to, how long the gap was and how much went along', () => {
    const journal = new Journal()
      .lease('claimed', 'laptop')
      .snapshot(41 << 10)
      .lease('released', 'laptop')
      .later(64)
      .lease('claimed', 'cloud-2')
    const [handoff] = handoffs(transcriptOf(journal).items)
    expect(handoff && handoffWords(handoff, name)).toBe('moved to cloud-2 · 64 ms · 41 KB')
  })

  test('C4: a session that was parked and wakes elsewhere was not on its way all the time', () => {
    const words = (gap_ms: number): string | undefined => {
      const journal = new Journal()
        .lease('claimed', 'laptop')
        .lease('released', 'laptop')
        .later(gap_ms)
        .lease('claimed', 'cloud-2')
      const [handoff] = handoffs(transcriptOf(journal).items)
      return handoff && handoffWords(handoff, name)
    }
    expect(words(2_999)).toBe('moved to cloud-2 · 3.0 s')
    expect(words(3_000)).toBe('moved to cloud-2')
    expect(words(120_000)).toBe('moved to cloud-2')
  })

  test('C4: a runner that comes back after its lease had expired says so, without a time', () => {
    const journal = new Journal()
      .lease('claimed', 'laptop')
      .lease('expired', 'laptop')
      .later(1200)
      .lease('claimed', 'laptop')
    const [handoff] = handoffs(transcriptOf(journal).items)
    expect(handoff && handoffWords(handoff, name)).toBe('laptop went away and came back')
  })

  test('C4: a takeover names both', () => {
    const journal = new Journal()
      .lease('claimed', 'laptop')
      .lease('expired', 'laptop')
      .later(1200)
      .lease('claimed', 'cloud')
    const [handoff] = handoffs(transcriptOf(journal).items)
    expect(handoff && handoffWords(handoff, name)).toBe('laptop went away; cloud took over')
  })

  test('C4: parked and woken on one runner is no handoff; the first claim is none either', () => {
    const journal = new Journal()
      .lease('claimed', 'laptop')
      .lease('released', 'laptop')
      .later(9e6)
      .lease('claimed', 'laptop')
    expect(handoffs(transcriptOf(journal).items)).toEqual([])
  })

  test('a move that was asked for shows until the next runner has it', () => {
    const journal = new Journal().lease('claimed', 'laptop').add('received', {
      kind: 'move',
      id: 'move-000',
      device: 'phone',
      now: 0,
      command: { label: 'cloud-2' },
      place: {},
    })
    expect(transcriptOf(journal).moving).toMatchObject({ label: 'cloud-2', waits: false })
    journal.add('event', { type: 'moving', data: { to: 'cloud-2', waits: ['llm'] } })
    expect(transcriptOf(journal).moving).toMatchObject({ label: 'cloud-2', waits: true })
    journal.lease('released', 'laptop').lease('claimed', 'cloud-2')
    expect(transcriptOf(journal).moving).toBeUndefined()
  })

  test('the end of a move is an arrival, also of one that the new holder received; it is no row', () => {
    const journal = new Journal()
      .lease('claimed', 'laptop')
      .lease('released', 'laptop')
      .lease('claimed', 'cloud-1')
      .move('Any of cloud', 'cloud-2')
    const before = transcriptOf(journal)
    expect(before.moving).toBeDefined()
    const after = transcriptOf(journal.add('event', { type: 'arrived', data: null }))
    expect(after.moving).toBeUndefined()
    expect(after.items).toEqual(before.items)
  })

  test('an event of the agent that happens to be called so is a row, and ends no move', () => {
    const journal = new Journal()
      .lease('claimed', 'laptop')
      .move('cloud-2', 'cloud-2')
      .add('event', { effect: 1, type: 'arrived', data: 'at the shop' })
    const transcript = transcriptOf(journal)
    expect(transcript.moving).toBeDefined()
    expect(transcript.items).toMatchObject([{ kind: 'event', text: 'at the shop' }])
  })

  test('a move to the runner that holds the session changes nothing', () => {
    const held = new Journal().lease('claimed', 'laptop').move('laptop', 'laptop')
    expect(transcriptOf(held).moving).toBeUndefined()
    const let_go = new Journal()
      .lease('claimed', 'laptop')
      .lease('expired', 'laptop')
      .move('laptop', 'laptop')
    expect(transcriptOf(let_go).moving).toMatchObject({ label: 'laptop' })
  })

  test('I8: a request that was cut off and asked again is counted', () => {
    const journal = new Journal().llm(1).llm(1, 2).says(1, 'Hi.', { repeated: 1 })
    expect(transcriptOf(journal).items).toMatchObject([{ kind: 'text', repeated: 1 }])
  })

  test('I8: also of an answer without words, say only a call, and of one that failed in the end', () => {
    const content = [{ type: 'tool_use', id: 't', name: 'read', input: {} }]
    const called = new Journal()
      .llm(1)
      .llm(1, 2)
      .add('outcome', { effect: 1, now: 0, result: { content }, repeated: 1 })
    const told = { kind: 'event', tone: 'quiet', text: 'One request was cut off and asked again.' }
    expect(transcriptOf(called).items).toMatchObject([told])
    const error = { code: 'model-busy', message: 'busy' }
    const failed = new Journal().llm(1).llm(1, 2).add('outcome', { effect: 1, now: 0, error, repeated: 1 })
    expect(transcriptOf(failed).items).toMatchObject([told, { kind: 'event', tone: 'error' }])
  })
})

test('C5: an entry that can’t be read has a place of its own and hurts no other', () => {
  const { items } = transcriptOf(new Journal().prompt('a').unreadable().prompt('b'))
  expect(kinds(items)).toEqual(['prompt', 'unreadable', 'prompt'])
})

test('C5: a command that nobody could read says why, quietly, in its place', () => {
  const why = 'A command of kind prompt could not be read and was dropped.'
  const journal = new Journal()
    .prompt('a')
    .add('received', {
      kind: 'unreadable',
      id: 'command-0',
      device: 'phone',
      now: 0,
      command: { kind: 'prompt' },
      why,
    })
    .prompt('b')
  const { items } = transcriptOf(journal)
  expect(items.map((item) => ('text' in item ? item.text : item.kind))).toEqual(['a', why, 'b'])
  expect(items[1]).toMatchObject({ kind: 'event', tone: 'quiet' })
})
