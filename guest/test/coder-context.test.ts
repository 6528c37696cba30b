/** What the model gets to see: plan mode, thinking, documents, compaction. */
import { describe, expect, test } from 'vitest'
import type { Message } from '@baton/shared/guest.ts'
import { tokensOf } from '../src/agents/coder-blocks.ts'
import { newest } from '../src/agents/coder-compact.ts'
import main from '../src/agents/coder.ts'
import { say, Session, use } from './session.ts'

const fine = (text: string) => ({ text, is_error: false })
const used = (input_tokens: number) => ({
  usage: { input_tokens, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 },
})
const textOf = (messages: readonly Message[]): string => JSON.stringify(messages)

describe('thinking', () => {
  test('A6: is kept in its place with its signature, through results and steering', async () => {
    const session = new Session(main)
    await session.prompt('go')
    for (let n = 1; n <= 3; n++) {
      await session.model([await session.thinking(`thought ${n}`), use(`t${n}`, 'read')])
      await session.steer(`hint ${n}`)
      await session.answer('tool', fine('x'))
    }
    await session.model([await session.thinking('last'), say('ok')])
    await session.prompt('again')
    await session.model([say('ok')])
    expect(session.names).toEqual(['main'])
    expect(textOf(session.conversation).split('"thinking":"')).toHaveLength(5)
  })
})

describe('plan mode', () => {
  test('A7: offers what looks, writes the plan down and asks; approved, it goes on in the mode that is set', async () => {
    const session = new Session(main, 'plan')
    await session.prompt('mend it')
    const asked = await session.model([await session.thinking('hm'), use('t1', 'read')])
    expect(asked.input).toMatchObject({
      ...{ tools: ['read', 'grep'], own_tools: [{ name: 'todo' }, { name: 'propose_plan' }] },
      system: expect.stringContaining('plan mode'),
    })
    await session.answer('tool', fine('x'))
    await session.model([await session.thinking('so'), use('p1', 'propose_plan', { plan: '1. Mend.' })])
    const { id, input } = await session.next('approve')
    expect(input).toMatchObject({ name: 'propose_plan', input: { plan: '1. Mend.' } })
    expect(session.emitted('document').at(-1)).toMatchObject({
      ...{ name: 'plan', version: 1, value: { text: '1. Mend.', state: 'proposed' } },
    })
    session.mode('edit')
    session.result(id, { approved: true, note: 'go ahead', device: 'd' })
    const next = await session.model([use('t2', 'edit')])
    expect(next.input.tools).toEqual(['read', 'grep', 'edit', 'bash'])
    expect(next.input.own_tools?.map(({ name }) => name)).toEqual(['todo'])
    expect(next.input.system).not.toContain('plan mode')
    expect(session.last).toMatchObject([
      { content: expect.stringMatching(/approved.*go ahead.*Carry it out/) },
    ])
    expect(session.emitted('document').at(-1)).toMatchObject({ version: 2, value: { state: 'approved' } })
    // Thinking is bound to the tools it was thought with.
    expect(session.names).toEqual(['main', 'main-2'])
    expect(textOf(session.conversation)).not.toContain('thinking')
    expect(await session.waiting()).toEqual(['tool edit'])
  })

  test('A7: a declined plan is told with the words of the person, who is asked anew', async () => {
    const session = new Session(main, 'plan')
    await session.prompt('mend it')
    await session.model([use('p1', 'propose_plan', { plan: 'A' })])
    await session.answer('approve', { approved: false, note: 'smaller', device: 'd' })
    await session.model([use('p2', 'propose_plan', { plan: 'B' })])
    expect(session.last).toMatchObject([{ content: expect.stringContaining('smaller'), is_error: true }])
    await session.answer('approve', { approved: true, device: 'd' })
    await session.model([say('waiting')])
    expect(session.last).toMatchObject([{ content: expect.stringContaining('still in plan mode') }])
    expect(session.emitted('document').map(({ value }) => value)).toMatchObject([
      ...[{ state: 'proposed' }, { state: 'declined' }, { state: 'proposed' }, { state: 'approved' }],
    ])
  })

  test('A7: outside of plan mode nobody is asked for a plan', async () => {
    const session = new Session(main, 'plan')
    await session.prompt('mend it')
    await session.settle()
    session.mode('full')
    await session.model([use('p1', 'propose_plan', { plan: 'A' })])
    await session.model([say('ok')])
    expect(session.last).toMatchObject([{ tool_use_id: 'p1', is_error: true }])
    expect(textOf(session.conversation)).toContain('not-now: The session is not in plan mode.')
    expect(session.emitted('document')).toEqual([])
    expect(session.emitted('note')).toHaveLength(1)
  })

  test('F51: a stop ends the wait for the decision on a plan', async () => {
    const session = new Session(main, 'plan')
    await session.prompt('mend it')
    await session.model([use('p1', 'propose_plan', { plan: 'A' })])
    await session.stop()
    await session.prompt('again')
    await session.model([say('ok')])
    expect(session.conversation[2]?.content).toMatchObject([{ tool_use_id: 'p1', is_error: true }])
  })
})

describe('the to-do list', () => {
  test('is written by the model, checked, changed by a person, and the model hears of it', async () => {
    const session = new Session(main)
    await session.prompt('go')
    const items = [{ text: 'look', state: 'doing' }]
    await session.model([
      use('t1', 'todo', { items }),
      use('t2', 'todo', { items: [{ text: 'x', state: 'later' }] }),
    ])
    const changed = [...items, { text: 'tests', state: 'open' }]
    await session.settle()
    session.send({ type: 'document', now: 4, command: 'd1', name: 'todo', version: 1, value: changed })
    session.send({ type: 'document', now: 4, command: 'd2', name: 'todo', version: 1, value: [] })
    await session.model([say('ok')])
    expect(session.last).toMatchObject([
      { content: 'The list is updated.' },
      { content: 'bad-input: [0].state must be one of "open", "doing", "done".', is_error: true },
    ])
    await session.prompt('next')
    await session.model([say('ok')])
    expect(session.conversation.at(-2)?.content).toEqual([
      say('The user changed the to-do list. It is now:\n- [doing] look\n- [open] tests'),
    ])
    expect(session.emitted('document')).toMatchObject([
      { name: 'todo', version: 1, value: items },
      { version: 2, value: changed, command: 'd1' },
      { version: 2, value: changed, command: 'd2', refused: expect.stringContaining('you saw version 1') },
    ])
  })
})

describe('compaction', () => {
  test('F31: happens before the window is full, whatever it holds', async () => {
    const session = new Session(main)
    await session.prompt('a long task')
    for (const [n, tokens] of [100_000, 150_000, 158_000].entries()) {
      await session.settle()
      expect(JSON.stringify(session.last)).not.toContain('Summarise the conversation')
      await session.model([use(`t${n}`, 'read')], { ...used(tokens), window: 200_000 })
      await session.answer('tool', fine('x'.repeat(7000)))
    }
    await session.settle()
    expect(JSON.stringify(session.last)).toContain('Summarise the conversation')
    expect(session.names).toEqual(['main'])
    await session.model([say('SUMMARY')], { window: 1_000_000 })
    await session.model([use('t9', 'read')], { ...used(700_000), window: 1_000_000 })
    await session.answer('tool', fine('x'))
    await session.model([say('ok')])
    expect(session.names).toEqual(['main', 'main-2'])
    expect(session.emitted('compacted')).toHaveLength(1)
  })

  async function longSession(): Promise<Session> {
    const session = new Session(main, 'full', { settings: { compact_at: 10_000 } })
    await session.prompt('the task')
    await session.model([use('t0', 'todo', { items: [{ text: 'step', state: 'open' }] })])
    for (let n = 1; n <= 5; n++) {
      await session.model([await session.thinking('hm'), use(`t${n}`, 'read')], used(1900 * n))
      await session.answer('tool', fine(`result ${n} `.padEnd(2800, 'x')))
    }
    await session.settle()
    expect(JSON.stringify(session.last)).toContain('Summarise the conversation')
    return session
  }

  test('A8: goes on with the summary, the to-do list and the newest messages, whole pairs only', async () => {
    const session = await longSession()
    const old = session.conversation.length
    await session.model([say('SUMMARY')], used(11_000))
    await session.model([say('done')])
    await session.next('prompt')
    expect(session.names).toEqual(['main', 'main-2'])
    const [first, ...kept] = session.conversation
    expect(JSON.stringify(first)).toMatch(/SUMMARY.*to-do list.*\[open\] step/)
    expect(kept.map(({ role }) => role)).toEqual(['assistant', 'user', 'assistant', 'user'])
    expect(textOf(kept)).toContain('result 5')
    expect(textOf(kept)).not.toMatch(/thinking|Summarise|result 3/)
    expect(kept.length).toBeLessThan(old)
    const [told] = session.emitted('compacted')
    expect(told).toMatchObject({ conversation: 'main-2', message: expect.stringContaining('compacted') })
    expect(Number(told?.['after'])).toBeLessThan(Number(told?.['before']) / 2)
  })

  const NO_SUMMARIES = [
    { content: [say('Let me look first.'), use('bad', 'bash')], stop_reason: 'tool_use' },
    { content: [say('The user wants')], stop_reason: 'max_tokens' },
    { content: [say('Let me see.')], stop_reason: 'pause_turn' },
  ]

  test.each(NO_SUMMARIES)(
    'A8: an answer that ends with $stop_reason is no summary: it is asked for once more',
    async ({ content, stop_reason }) => {
      const session = await longSession()
      await session.model(content, { ...used(11_000), stop_reason })
      await session.settle()
      expect(session.names).toEqual(['main'])
      expect(textOf(session.conversation)).toContain('That was no summary')
      await session.model([say('SUMMARY')])
      await session.model([say('done')])
      expect(textOf(session.conversation)).toMatch(/^(?!.*(Let me|The user wants)).*SUMMARY.*result 5/)
    },
  )

  test.each(NO_SUMMARIES)(
    'A8 I11: two answers that end with $stop_reason leave the conversation as it was',
    async ({ content, stop_reason }) => {
      const session = await longSession()
      const before = session.conversation.slice(0, -1)
      for (let n = 1; n <= 2; n++) await session.model(content, { stop_reason })
      await session.settle()
      expect(session.emitted('error')).toMatchObject([{ code: 'model-error' }])
      await session.prompt('go on')
      await session.settle()
      expect(session.names).toEqual(['main'])
      expect(session.conversation.slice(0, before.length)).toEqual(before)
    },
  )

  test.each(NO_SUMMARIES)(
    'A8: what was too long, too, is asked for once more after $stop_reason',
    async ({ content, stop_reason }) => {
      const session = await tooLong()
      await session.model(content, { stop_reason })
      await session.model([say('SUMMARY')])
      await session.model([say('ok')])
      expect(textOf(session.conversation)).toMatch(/^(?!.*Let me).*SUMMARY/)
    },
  )

  test('F75: what can not be made smaller is not compacted again and again', async () => {
    const session = new Session(main, 'full', { settings: { compact_at: 10 } })
    await session.prompt('go')
    await session.model([say('SUMMARY')])
    await session.settle()
    const after = Number(session.emitted('compacted')[0]?.['after'])
    for (let n = 1; n <= 4; n++) {
      await session.model([use(`t${n}`, 'read')], used(after))
      await session.answer('tool', fine('x'))
    }
    await session.model([use('t5', 'read')], used(after * 2))
    await session.answer('tool', fine('x'))
    expect(session.emitted('compacted')).toHaveLength(1)
    await session.model([say('SUMMARY')])
    await session.model([say('done')])
    expect(session.emitted('compacted')).toHaveLength(2)
  })

  test('F51: a stop or a failure on the way loses nothing', async () => {
    const session = await longSession()
    await session.stop()
    await session.prompt('go on')
    await session.fail('llm', 'model-busy')
    expect(session.names).toEqual(['main'])
    expect(session.emitted('compacted')).toEqual([])
    await session.prompt('go on now')
    await session.model([say('SUMMARY')])
    await session.model([say('ok')])
    expect(textOf(session.conversation)).toMatch(/SUMMARY.*go on.*go on now/)
    expect(textOf(session.conversation)).not.toContain('Summarise')
  })

  test.each(['stopped', 'failed'])(
    'A8: a request for a summary that is %s is taken back before the next prompt',
    async (how) => {
      const session = new Session(main)
      await session.prompt('go')
      await session.model([say('ok')])
      session.send({ type: 'compact', now: 3 })
      await session.settle()
      if (how === 'stopped') await session.stop()
      else await session.fail('llm', 'model-busy')
      await session.prompt('and now?')
      await session.model([say('ok')])
      expect(session.names).toEqual(['main'])
      expect(textOf(session.conversation)).toMatch(/Summarise.*No summary is needed any more.*and now\?/)
      session.send({ type: 'compact', now: 4 })
      await session.model([say('SUMMARY')])
      await session.prompt('go on')
      await session.model([say('ok')])
      expect(textOf(session.conversation)).toMatch(/SUMMARY.*and now\?.*go on/)
      expect(textOf(session.conversation)).not.toMatch(/Summarise|No summary/)
    },
  )

  test('A8: a conversation that the service finds too long is compacted and asked again, once', async () => {
    const session = new Session(main)
    await session.prompt('read it')
    await session.model([use('t1', 'read')])
    await session.answer('tool', fine('big '.repeat(50_000)))
    await session.fail('llm', 'context-full')
    await session.model([say('SUMMARY')])
    expect(tokensOf(session.conversation)).toBeLessThan(3000)
    await session.fail('llm', 'context-full')
    await session.prompt('again')
    await session.model([say('ok')])
    expect(session.emitted('error')).toMatchObject([{ code: 'context-full' }])
    expect(session.emitted('turn').find(({ state }) => state === 'end')).toMatchObject({ reason: 'error' })
  })

  const TASK = 'ORIGINAL: leave secrets.txt alone'
  async function tooLong(): Promise<Session> {
    const session = new Session(main)
    await session.prompt(TASK)
    for (let n = 1; n <= 60; n++) {
      await session.model([use(`t${n}`, 'read')], used(450 * n))
      await session.answer('tool', fine(`result ${n} `.padEnd(1400, 'x')))
    }
    await session.fail('llm', 'context-full')
    await session.settle()
    expect(session.names.at(-1)).toMatch(/^apart/)
    return session
  }

  test.each(['model-busy', 'context-full', 'stopped', 'empty'])(
    'A8 I11: a summary of what was too long that ends with %s takes nothing from the conversation',
    async (how) => {
      const session = await tooLong()
      const whole = session.of('main')
      expect(whole).toHaveLength(121)
      if (how === 'stopped') await session.stop()
      else if (how === 'empty') await session.model([say(' ')])
      else while ((await session.waiting())[0] === 'llm') await session.fail('llm', how)
      expect(session.emitted('compacted')).toEqual([])
      await session.prompt('again')
      await session.settle()
      expect(session.name).toBe('main')
      expect(session.conversation.slice(0, 121)).toEqual(whole)
      expect(session.last).toEqual([say('again')])
    },
  )

  test('A8: what was too long is summed up from less and less, with what the user said at the beginning', async () => {
    const session = await tooLong()
    const first = tokensOf(session.conversation)
    expect(textOf(session.conversation)).toContain(TASK)
    await session.fail('llm', 'context-full')
    await session.settle()
    expect(tokensOf(session.conversation)).toBeLessThan(first * 0.6)
    expect(textOf(session.conversation)).toMatch(/ORIGINAL.*result 60.*Summarise/)
    await session.model([say('SUMMARY')])
    await session.model([say('ok')])
    expect(textOf(session.conversation)).toContain('SUMMARY')
    expect(session.emitted('compacted')).toHaveLength(1)
  })

  test('A8: with nothing said there is nothing to compact, and the model is not asked', async () => {
    const session = new Session(main)
    await session.settle()
    session.send({ type: 'compact', now: 3 })
    expect(await session.waiting()).toEqual(['prompt'])
    expect(session.emitted('note')).toEqual([{ message: 'There is nothing to compact yet.' }])
    await session.prompt('go')
    await session.model([say('ok')])
    expect(session.names).toEqual(['main'])
  })

  test('A8: a person may ask for it, while the agent works or waits', async () => {
    const session = new Session(main)
    await session.prompt('go')
    await session.model([use('t1', 'read')])
    session.send({ type: 'compact', now: 3 })
    await session.answer('tool', fine('x'))
    await session.model([say('FIRST')])
    await session.model([say('ok')])
    expect(textOf(session.conversation)).toContain('FIRST')
    const open = await session.next('prompt')
    session.send({ type: 'compact', now: 3 })
    await session.model([say('SECOND')])
    await session.settle()
    expect(session.emitted('compacted')).toHaveLength(2)
    session.result(open.id, { text: 'and now?', command: 'c' })
    await session.model([say('ok')])
    expect(session.names).toEqual(['main', 'main-2', 'main-3'])
    expect(textOf(session.conversation)).toMatch(/SECOND.*and now\?/)
  })

  test('what belongs together is kept together, shortened when it is too large for itself', () => {
    const pair = (n: number, size: number): Message[] => [
      { role: 'assistant', content: [use(`t${n}`, 'read')] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: `t${n}`, content: 'y'.repeat(size) }] },
    ]
    const all: Message[] = [{ role: 'user', content: [say('go')] }, ...pair(1, 9000), ...pair(2, 900)]
    expect(newest(all, 1_000_000)).toEqual(all)
    expect(newest(all, 500)).toEqual(all.slice(3))
    const short = newest(all.slice(0, 3), 500)
    expect(short.map(({ role }) => role)).toEqual(['assistant', 'user'])
    expect(tokensOf(short)).toBeLessThan(600)
    expect(newest([], 500)).toEqual([])
  })
})

test('instructions of the repository are part of what the model is told', async () => {
  const about = { workspace: 'shop', instructions: 'Always use tabs.' }
  const session = new Session(main, 'full', { about })
  await session.prompt('go')
  const { system } = (await session.model([say('ok')])).input
  expect(system).toMatch(/AGENTS\.md.*nearest one counts most\.\n\nAlways use tabs\./s)
  expect(system).not.toContain('instructions:')
})
