/** What a transcript tells beside its items: what runs, what is retried, documents, rules, usage. */
import { BatonError, explain } from '../src/errors.ts'
import type { Json } from '../src/guest.ts'
import { readTodos, todoWords } from '../src/view/documents.ts'
import {
  EMPTY,
  liveOutputs,
  liveTexts,
  reduce,
  retryOf,
  withDelta,
  type Transcript,
} from '../src/view/transcript.ts'
import { readModelText } from '../src/view/results.ts'
import { contextWords, usageWords } from '../src/view/usage.ts'
import { retryWords, todoOf } from '../src/view/words.ts'
import { describe, expect, test } from 'vitest'
import { Journal } from './journal.ts'

const HASH = 'a'.repeat(64)
const read = (journal: Journal): Transcript => reduce(EMPTY, journal.entries)

/** The model could not be asked: the next attempt is 8 s away. */
const retried = (journal: Journal, attempt: number): Journal =>
  journal.add('intent', {
    effect: 1,
    kind: 'llm',
    replay: 'safe',
    digest: HASH,
    attempt,
    now: 500_000,
    retry: { code: 'model-busy', message: 'The model is busy.', not_before: 508_000 },
  })

describe('live output of a call', () => {
  test('C23: shows at its call, never as the model’s words, and is gone with the outcome', () => {
    const journal = new Journal().prompt('hi').call(1, 'bash', { command: 'make' })
    const live = withDelta(read(journal), 1, 'cc a.c')
    expect([...liveOutputs(live)]).toEqual([[1, 'cc a.c']])
    expect(liveTexts(live)).toEqual([])
    const done = reduce(live, journal.did(1, 'all of it').entries)
    expect(liveOutputs(done).size).toBe(0)
    expect(withDelta(done, 1, 'late')).toBe(done)
  })

  test('C23: of an effect that is not known yet nothing shows until it is', () => {
    const journal = new Journal().prompt('hi')
    const early = withDelta(read(journal), 1, 'out')
    expect([liveTexts(early), [...liveOutputs(early)]]).toEqual([[], []])
    const known = reduce(early, journal.llm(1).entries)
    expect(liveTexts(known)).toEqual([[1, 'out']])
  })
})

describe('retries', () => {
  test('F27, C26: an attempt that waits is counted down, on the relay’s clock', () => {
    const journal = retried(new Journal().llm(1), 3)
    const retry = retryOf(read(journal))
    // The entries of a Journal are at 1000; the runner’s own clock does not matter.
    expect(retry).toMatchObject({ attempt: 3, from: 9_000 })
    expect(retry && retryWords(retry, 1_000)).toBe('The model is busy: attempt 3 of 5, in 8 s')
    expect(retry && retryWords(retry, 9_000)).toBe('The model is busy: attempt 3 of 5')
  })

  test('C26: it ends with the first word of the answer, and with the outcome', () => {
    const journal = retried(new Journal().llm(1), 2)
    expect(retryOf(withDelta(read(journal), 1, 'Well'))).toBeUndefined()
    expect(retryOf(read(journal.says(1, 'Well.')))).toBeUndefined()
  })

  test('C26: a failure that the outcome and the agent tell of is one line, with what to do', () => {
    const journal = new Journal().llm(1).failed(1, 'model-busy')
    const told = { code: 'model-busy', message: 'The model is busy.', todo: 'Have a coffee.' }
    const { items } = read(journal.add('event', { effect: 2, type: 'error', data: told }))
    expect(items).toMatchObject([{ tone: 'error', text: 'The model is busy.', todo: 'Have a coffee.' }])
    expect(items.map((item) => item.kind === 'event' && todoOf(item))).toEqual(['Have a coffee.'])
    // Where the text has it already it is not said again.
    const message = explain(new BatonError('model-busy'))
    const failed = read(new Journal().add('event', { type: 'failed', data: { code: 'model-busy', message } }))
    expect(failed.items.map((item) => item.kind === 'event' && todoOf(item))).toEqual([''])
    const another = read(new Journal().llm(1).failed(1, 'model-busy').llm(2).failed(2, 'model-key'))
    expect(another.items).toHaveLength(2)
    expect(another.items.map((item) => item.kind === 'event' && todoOf(item) !== '')).toEqual([true, true])
  })
})

describe('documents', () => {
  const event = (version: number, more: object = {}) => ({
    effect: version,
    type: 'document',
    data: { name: 'todo', version, value: [{ text: `v${version}`, state: 'open' }], ...more },
  })

  test('C24, C25: the newest version shows, and the answer to each change of a person’s is kept', () => {
    const journal = new Journal()
      .add('event', event(1))
      .add('event', event(2, { command: 'c1' }))
      .add('event', { ...event(2, { command: 'c2', refused: 'It is older.' }), effect: 3 })
      .add('event', { ...event(3), effect: 4 })
    const { documents, answers, items } = read(journal)
    expect(documents.get('todo')).toEqual({
      name: 'todo',
      version: 3,
      value: [{ text: 'v3', state: 'open' }],
    })
    expect([...answers]).toEqual([
      ['c1', ''],
      ['c2', 'It is older.'],
    ])
    expect(items).toEqual([])
  })

  test('the state of a to-do list in a line', () => {
    const todos = readTodos([
      { text: 'a', state: 'done' },
      { text: 'b', state: 'doing' },
      { text: 'c', state: 'open' },
    ])
    expect(todos && todoWords(todos)).toBe('1 of 3 · b')
    expect(todoWords([])).toBeUndefined()
    expect(readTodos([{ text: 'a', state: 'later' }])).toBeUndefined()
  })
})

describe('usage', () => {
  const end = (cost_usd?: number) => ({
    type: 'turn',
    data: {
      turn: 1,
      state: 'end',
      reason: 'end_turn',
      usage: { input_tokens: 1200, output_tokens: 2300, cache_read_tokens: 98_000, cache_write_tokens: 4000 },
      ...(cost_usd === undefined ? {} : { cost_usd }),
    },
  })

  test('adds up over the turns of a session, in words', () => {
    const journal = new Journal()
      .add('event', { effect: 1, ...end(0.084) })
      .add('event', { effect: 2, ...end(0.05) })
    const { usage } = read(journal)
    expect(usage && usageWords(usage.turn)).toBe('103k in (98k from the cache) · 2.3k out · $0.05')
    expect(usage && usageWords(usage.session)).toBe('206k in (196k from the cache) · 4.6k out · $0.13')
  })

  test('a cost that is not known is not made up', () => {
    const { usage } = read(
      new Journal().add('event', { effect: 1, ...end(0.084) }).add('event', { effect: 2, ...end() }),
    )
    expect(usage && usageWords(usage.turn)).toBe('103k in (98k from the cache) · 2.3k out')
    expect(usage && usageWords(usage.session)).toMatch(/at least \$0\.08$/)
  })

  test('what the agent says of the whole session counts before the sum; how full the context is stands beside it', () => {
    const { data } = end(0.084)
    const session = { usage: { ...data.usage, output_tokens: 9000 }, cost_usd: 1 }
    const context = { tokens: 31_000, window: 200_000 }
    const told = { effect: 1, type: 'turn', data: { ...data, session, context } }
    const { usage } = read(new Journal().add('event', told))
    expect(usage && usageWords(usage.session)).toBe('103k in (98k from the cache) · 9.0k out · $1.00')
    expect(usage?.context && contextWords(usage.context)).toBe('31k of 200k tokens')
  })

  test('a turn that begins or says nothing of it changes nothing', () => {
    const quiet = new Journal()
      .add('event', { effect: 1, type: 'turn', data: { turn: 1, state: 'start' } })
      .add('event', { effect: 2, type: 'turn', data: { turn: 1, state: 'end', reason: 'stopped' } })
    expect(read(quiet)).not.toHaveProperty('usage')
  })
})

describe('what nobody was asked for', () => {
  test('C21: a decision by a rule or the mode is one quiet line, and nothing waits', () => {
    const ruled = (approved: boolean): Transcript =>
      read(
        new Journal()
          .asks(1, 'bash', { command: 'ls' })
          .add('outcome', { effect: 1, now: 0, result: { approved } }),
      )
    expect(ruled(true).items).toMatchObject([
      { kind: 'tool', state: 'approved', approval: { decided: { device: '' } } },
    ])
    expect(ruled(false).items).toMatchObject([
      { kind: 'tool', state: 'denied', approval: { decided: { device: '' } } },
    ])
  })

  test('C20: the rules in force are those of the config, then those that people gave; one that came late is none', () => {
    const rule = (prefix: string) => ({ tool: 'bash', prefix, action: 'allow' as const })
    const given = (prefix: string, late?: string) => ({
      kind: 'decision' as const,
      id: `decision-${prefix}`,
      device: 'phone',
      now: 0,
      command: {
        effect: 1,
        digest: HASH,
        approved: true,
        always: rule(prefix),
        device: 'phone',
        certificate: '',
        signature: '',
      },
      ...(late === undefined ? {} : { late }),
    })
    const journal = new Journal()
      .add('received', {
        kind: 'start',
        id: 'start-00',
        device: 'phone',
        now: 0,
        command: { agent: 'coder', workspace: '/w', mode: 'ask' },
        rules: [rule('make')],
      })
      .add('received', given('npm test'))
      .add('received', given('rm', 'It was decided already.'))
    expect(read(journal).rules.map(({ prefix }) => prefix)).toEqual(['make', 'npm test'])
  })

  test('C19: only a change of mode that counted counts; one that came late says so', () => {
    const change = (mode: 'edit' | 'full', revision: number, late?: string) => ({
      kind: 'mode' as const,
      id: `mode-${mode}-000`,
      device: 'phone',
      now: 0,
      command: { mode, revision, device: 'phone', certificate: '', signature: '' },
      ...(late === undefined ? {} : { late }),
    })
    const { mode, revision, items } = read(
      new Journal()
        .add('received', change('edit', 0))
        .add('received', change('full', 0, 'The mode was changed meanwhile.')),
    )
    expect([mode, revision]).toEqual(['edit', 1])
    expect(items).toMatchObject([
      { text: 'Mode: Edit files.' },
      { text: 'The mode was not changed: The mode was changed meanwhile.' },
    ])
  })

  test('compaction divides what is above from what is below', () => {
    const { items } = read(
      new Journal().add('event', { effect: 1, type: 'compacted', data: { before: 152_000, after: 9100 } }),
    )
    expect(items).toMatchObject([{ divides: true, text: 'compacted · 152k → 9.1k tokens' }])
    const grown = new Journal().add('event', {
      ...{ effect: 1, type: 'compacted', data: { before: 5700, after: 7100 } },
    })
    expect(read(grown).items).toMatchObject([{ text: 'compacted · now 7.1k tokens' }])
  })

  test('a plan is done with its decision: no tool runs after it', () => {
    const tools = [{ name: 'bash', access: 'run' as const }]
    const journal = new Journal()
      .add('received', {
        kind: 'start',
        id: 'start-00',
        device: 'phone',
        now: 0,
        command: { agent: 'coder', workspace: '/w', mode: 'plan' },
        start: { tools } as never,
      })
      .asks(1, 'propose_plan', { plan: 'First this.' })
      .decided(1, true)
    expect(read(journal).items).toMatchObject([{ state: 'ok' }])
    expect(read(journal).granted.size).toBe(0)
  })
})

const start = (more: object) => ({
  kind: 'start' as const,
  id: 'start-00',
  device: 'phone',
  now: 0,
  command: { agent: 'coder', workspace: '/w', mode: 'full' as const },
  ...more,
})

test('a copy keeps the mode, rules and tools that its history tells of', () => {
  const journal = new Journal().add(
    'received',
    start({
      command: { agent: 'coder', workspace: '/there', mode: 'plan' },
      start: { tools: [{ name: 'bash', access: 'run' }] },
      rules: [{ tool: 'bash', action: 'ask' }],
    }),
  )
  const before = read(journal)
  const copied = { seed: HASH, snapshot: 0, blobs: {} }
  expect(read(journal.add('received', start({ copied })))).toEqual({ ...before, seq: 2, workspace: '/w' })
})

test('C22: the pictures of a prompt and of a result are named in the transcript', () => {
  const image = { blob: HASH, media_type: 'image/jpeg' as const }
  const journal = new Journal()
    .add('received', {
      kind: 'prompt',
      id: 'prompt-0',
      device: 'phone',
      now: 0,
      command: { text: '', images: [image] },
    })
    .call(1, 'read', { path: 'a.jpg' })
    .add('outcome', { effect: 1, now: 0, result: { text: 'a picture', is_error: false, images: [image] } })
  expect(read(journal).items).toMatchObject([{ images: [image] }, { result: { images: [image] } }])
})

test('X9: pictures of a copied history are named as they are stored in the copy, also in a copy of a copy', () => {
  const [origin = '', first = '', second = '', other = ''] = ['a', 'b', 'c', 'd'].map((c) => c.repeat(64))
  const image = (blob: string) => ({ blob, media_type: 'image/jpeg' as const })
  const prompt = (journal: Journal, blob: string): Journal =>
    journal.add('received', {
      ...{ kind: 'prompt', id: `prompt-${journal.seq}`, device: 'phone', now: 0 },
      command: { text: '', images: [image(blob)] },
    })
  const copied = (journal: Journal, blobs: Record<string, string>): Journal =>
    journal.add('received', start({ copied: { seed: HASH, snapshot: 0, blobs } }))
  const journal = prompt(new Journal(), origin)
    .call(1, 'read', { path: 'a.jpg' })
    .add('outcome', { effect: 1, now: 0, result: { text: '', is_error: false, images: [image(origin)] } })
  copied(journal, { [origin]: first })
  expect(read(journal).items).toMatchObject([
    { images: [image(first)] },
    { result: { images: [image(first)] } },
  ])
  prompt(journal, other)
  copied(journal, { [origin]: second, [first]: second })
  expect(read(journal).items).toMatchObject([
    { images: [image(second)] },
    { result: { images: [image(second)] } },
    { images: [image(other)] },
  ])
})

describe('C28: what a model said while it thought', () => {
  const says = (content: Json[], repeated = 0): Transcript =>
    read(new Journal().llm(1).add('outcome', { effect: 1, now: 0, result: { content }, repeated }))
  const thinking = (text: string): Json => ({ type: 'thinking', thinking: text, signature: 'c2ln' })
  const redacted = { type: 'redacted_thinking', data: 'ZGF0YQ' }
  const text = (words: string): Json => ({ type: 'text', text: words })

  test('stands apart from the answer, in its order', () => {
    const content = [
      ...[thinking('First the tests.'), thinking('Then the mend.'), text('I'), text('look.')],
      ...[{ type: 'tool_use', id: 'a', name: 'read', input: {} }, thinking('One more.'), text('Done.')],
    ]
    const { items } = says(content, 1)
    expect(items).toMatchObject([
      { kind: 'thought', text: 'First the tests.\n\nThen the mend.' },
      { kind: 'text', text: 'I\n\nlook.', repeated: 1 },
      { kind: 'thought', text: 'One more.' },
      { kind: 'text', text: 'Done.', repeated: 0 },
    ])
    expect(new Set(items.map(({ id }) => id)).size).toBe(4)
  })

  test('is no answer, and what nobody is to read shows nowhere', () => {
    const content = [
      redacted,
      thinking('Hm.'),
      thinking(''),
      { type: 'tool_use', id: 'a', name: 'x', input: {} },
    ]
    expect(says(content).items.map(({ kind }) => kind)).toEqual(['thought'])
    expect(readModelText({ content })).toBe('')
    expect(JSON.stringify(says(content).items)).not.toMatch(/c2ln|ZGF0YQ/)
    expect(says([redacted]).items).toEqual([])
  })

  test('of an answer too long for its entry shows by its beginning; a short text is whole without its blob', () => {
    const blob = { hash: HASH, bytes: 90_000, head: 'I write it.', tail: '', thoughts: 'It is long.' }
    const items = (of: typeof blob) =>
      read(new Journal().llm(1).add('outcome', { effect: 1, now: 0, blob: of })).items
    expect(items(blob)).toMatchObject([
      { kind: 'thought', text: 'It is long.' },
      { kind: 'text', text: 'I write it.' },
    ])
    expect(items(blob)[1]).not.toHaveProperty('blob')
    expect(items({ ...blob, head: '' }).map(({ kind }) => kind)).toEqual(['thought'])
    expect(items({ ...blob, tail: 'the end' })[1]).toMatchObject({ text: '', blob: { tail: 'the end' } })
  })
})

test('C15: a prompt that steers looks undelivered until the model is asked next', () => {
  const steer = {
    kind: 'prompt',
    id: 's',
    device: 'phone',
    now: 0,
    command: { text: 'Not so', steer: true },
  } as const
  const waits = (journal: Journal): unknown[] =>
    read(journal).items.flatMap((item) => (item.kind === 'prompt' ? [item.waits ?? false] : []))
  const journal = new Journal().prompt('Tidy up').llm(1).add('received', steer)
  expect(waits(journal)).toEqual([false, true])
  // The same request, asked again, does not carry it.
  expect(waits(journal.llm(1, 2))).toEqual([false, true])
  expect(waits(journal.llm(2))).toEqual([false, false])
})

test('a job counts as running from its start until the agent saw its end, or the session left its machine', () => {
  const told = (journal: Journal, effect: number, detail: { [key: string]: string | boolean }): Journal =>
    journal.add('outcome', { effect, now: 0, result: { text: '', is_error: false, detail } })
  const started = (): Journal => {
    const journal = new Journal().call(1, 'bash', { command: 'npm run dev', background: true })
    return told(journal, 1, { job: 'job-1' })
  }
  const jobs = (journal: Journal): string[] => [...(read(journal).jobs?.values() ?? [])]
  expect(jobs(started())).toEqual(['npm run dev'])
  const looked = started().call(2, 'job', { action: 'status', id: 'job-1' })
  expect(jobs(told(looked, 2, { job: 'job-1', running: true }))).toEqual(['npm run dev'])
  looked.call(3, 'job', { action: 'stop', id: 'job-1' })
  expect(jobs(told(looked, 3, { job: 'job-1', running: false }))).toEqual([])
  expect(jobs(started().lease('released', 'laptop'))).toEqual([])
})
