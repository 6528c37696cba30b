/** The agent's turns, in this runtime. */
import { ERRORS, isErrorCode } from '@baton/shared/errors.ts'
import { describe, expect, test } from 'vitest'
import { TODO } from '../src/agents/coder-errors.ts'
import main from '../src/agents/coder.ts'
import { say, Session, use } from './session.ts'

const reasons = (session: Session): unknown[] =>
  session.emitted('turn').flatMap(({ reason }) => (reason === undefined ? [] : [reason]))

describe('a turn', () => {
  test('prompts, calls the tools that the model asks for, and ends', async () => {
    const session = new Session(main)
    await session.prompt('fix the till\nplease')
    const first = await session.model([say('looking'), use('t1', 'read'), use('t2', 'bash')])
    expect(first.input).toMatchObject({
      ...{ tools: ['read', 'grep', 'edit', 'bash'], own_tools: [{ name: 'todo' }], model: 'm' },
      system: expect.stringContaining('workspace: shop'),
    })
    expect(await session.answer('tool', { text: 'one', is_error: false })).toMatchObject({
      input: { name: 'read', call: 't1' },
    })
    await session.answer('tool', { text: 'no such file', is_error: true })
    await session.model([say('done')])
    await session.next('prompt')
    expect(session.last).toEqual([
      { type: 'tool_result', tool_use_id: 't1', content: 'one' },
      { type: 'tool_result', tool_use_id: 't2', content: 'no such file', is_error: true },
    ])
    expect(session.emitted('title')).toEqual(['fix the till'])
    expect(session.emitted('turn')).toMatchObject([
      { turn: 1, state: 'start' },
      { turn: 1, state: 'end', reason: 'end_turn' },
    ])
  })

  test('what a person sends with pictures, and pictures of a tool, reach the model', async () => {
    const session = new Session(main)
    const image = { blob: 'a'.repeat(64), media_type: 'image/png' }
    await session.prompt(' ', { images: [image] })
    await session.model([use('t1', 'read')])
    const source = { type: 'blob', ...image }
    expect(session.last).toEqual([{ type: 'image', source }])
    await session.answer('tool', { text: 'a chart', is_error: false, images: [image] })
    await session.model([say('nice')])
    expect(session.last).toMatchObject([{ content: [say('a chart'), { type: 'image', source }] }])
    expect(session.emitted('title')).toEqual(['A picture'])
  })

  test('A4: model, effort and limit follow the settings, also in the middle of a session', async () => {
    const session = new Session(main)
    await session.prompt('go')
    expect((await session.model([use('t1', 'read')])).input).not.toHaveProperty('effort')
    const settings = { model: 'big', effort: 'max', max_tokens: 5 }
    session.send({ type: 'settings', now: 2, settings })
    await session.answer('tool', { text: 'one', is_error: false })
    expect((await session.model([say('ok')])).input).toMatchObject(settings)
    expect(session.names).toEqual(['main'])
  })

  test('tells what it used and cost; an answer without a known price makes the cost unknown', async () => {
    const session = new Session(main)
    const usage = { input_tokens: 5, output_tokens: 7, cache_read_tokens: 100, cache_write_tokens: 10 }
    await session.prompt('one')
    await session.model([use('t1', 'read')], { usage, cost_usd: 0.5, window: 300_000 })
    await session.answer('tool', { text: 'x', is_error: false })
    await session.model([say('ok')], { usage, cost_usd: 0.25, window: 300_000 })
    await session.prompt('two')
    await session.model([say('ok')], { usage })
    await session.settle()
    const [, first, , second] = session.emitted('turn')
    expect(first).toMatchObject({
      usage: {
        input_tokens: 10,
        output_tokens: 14,
        cache_read_tokens: 200,
        cache_write_tokens: 20,
        requests: 2,
      },
      cost_usd: 0.75,
      context: { tokens: 122, window: 300_000 },
    })
    expect(second).toMatchObject({ usage: { requests: 1 }, unpriced: 1, session: { usage: { requests: 3 } } })
    expect(second).not.toHaveProperty('cost_usd')
  })
})

describe('a prompt during a turn', () => {
  test('A1: joins the conversation at the next step, behind the results', async () => {
    const session = new Session(main)
    await session.prompt('go')
    await session.model([use('t1', 'read')])
    await session.steer('use tabs')
    await session.answer('tool', { text: 'one', is_error: false })
    await session.model([say('with tabs')])
    await session.next('prompt')
    expect(session.conversation.at(-2)?.content).toMatchObject([{ type: 'tool_result' }])
    expect(session.last).toEqual([say('use tabs')])
    expect(reasons(session)).toEqual(['end_turn'])
  })

  test('A1: goes on with the turn when the model was about to end it', async () => {
    const session = new Session(main)
    await session.prompt('go')
    await session.settle()
    await session.steer('and tests')
    await session.model([say('done')])
    await session.model([say('tested')])
    await session.next('prompt')
    expect(session.conversation.map(({ role }) => role)).toEqual(['user', 'assistant', 'user'])
    expect(reasons(session)).toEqual(['end_turn'])
  })

  test('A1: begins a new turn when the last one has just ended, and is listened for again', async () => {
    const session = new Session(main)
    await session.prompt('go')
    await session.model([say('done')])
    expect(await session.waiting()).toEqual(['prompt'])
    await session.steer('one more')
    const open = await session.next('prompt')
    await session.steer('quickly')
    await session.model([say('working')])
    await session.model([say('done, quickly')])
    await session.settle()
    expect(reasons(session)).toEqual(['end_turn', 'end_turn'])
    // The prompt that was open all the time serves the next one.
    session.result(open.id, { text: 'bye', command: 'c' })
    await session.next('llm')
  })

  test('A1: steers also when it answers the wait for the next turn; any other waits for the end of the turn', async () => {
    for (const steer of [true, false]) {
      const session = new Session(main)
      await session.prompt('go')
      await session.model([say('done')])
      const open = await session.next('prompt')
      await session.steer('one more')
      await session.settle()
      session.result(open.id, { text: 'hint', command: 'c', ...(steer && { steer }) })
      await session.model([say('done again')])
      await session.model([say('and again')])
      await session.next('prompt')
      expect(session.last).toEqual([say('hint')])
      expect(reasons(session)).toHaveLength(steer ? 2 : 3)
    }
  })

  test('A1: before a stop it becomes part of the conversation and begins nothing', async () => {
    const session = new Session(main)
    await session.prompt('go')
    await session.settle()
    await session.steer('wait')
    await session.stop()
    await session.prompt('again')
    await session.model([say('ok')])
    expect(session.conversation.flatMap(({ content }) => content)).toEqual([
      say('go'),
      say('wait'),
      say('again'),
    ])
    await session.settle()
    expect(reasons(session)).toEqual(['stopped', 'end_turn'])
  })
})

describe('a stop', () => {
  test('F51: a turn stopped in the middle of its calls keeps a valid conversation', async () => {
    const session = new Session(main, 'ask')
    await session.prompt('go')
    await session.model([use('t1', 'bash'), use('t2', 'bash'), use('t3', 'read')])
    await session.answer('approve', { approved: true, device: 'd' })
    expect(await session.waiting()).toEqual(['approve bash', 'tool bash'])
    await session.stop()
    await session.prompt('again')
    await session.model([say('ok')])
    expect(reasons(session)).toEqual(['stopped'])
    expect(session.conversation.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'user'])
    expect(session.conversation[2]?.content.map((block) => block['is_error'])).toEqual([true, true, true])
  })

  test('during the model call ends the turn quietly', async () => {
    const session = new Session(main)
    await session.prompt('go')
    await session.stop()
    await session.next('prompt')
    expect(session.emitted('error')).toEqual([])
    expect(reasons(session)).toEqual(['stopped'])
  })
})

describe('trouble', () => {
  test('A5: an error of the model is told with what to do, and the next prompt goes on', async () => {
    const session = new Session(main)
    await session.prompt('go')
    await session.model([use('t1', 'read')])
    await session.answer('tool', { text: 'one', is_error: false })
    await session.fail('llm', 'model-busy')
    await session.prompt('again')
    await session.model([say('ok')])
    expect(session.emitted('error')).toEqual([
      { code: 'model-busy', message: 'words of model-busy', todo: ERRORS['model-busy'].todo },
    ])
    expect(session.conversation).toHaveLength(4)
    expect(reasons(session)).toEqual(['error'])
  })

  test('what to do is said in the words of the table of errors', () => {
    for (const [code, todo] of Object.entries(TODO)) {
      expect(isErrorCode(code) && ERRORS[code].todo, code).toBe(todo)
    }
  })

  test('F75: the same error again and again ends the turn and asks for help', async () => {
    const session = new Session(main)
    await session.prompt('go')
    for (let n = 1; n <= 8; n++) {
      await session.model([use(`a${n}`, 'edit', { n }), use(`b${n}`, 'read')])
      await session.answer('tool', { text: 'no match', is_error: true })
      await session.answer('tool', { text: 'fine', is_error: false })
    }
    await session.next('prompt')
    expect(reasons(session)).toEqual(['agent-stuck'])
    expect(session.emitted('error')).toMatchObject([{ code: 'agent-stuck', message: 'edit: no match' }])
  })

  test('F75: a tool that works in between starts the count anew', async () => {
    const session = new Session(main)
    await session.prompt('go')
    for (let n = 1; n <= 15; n++) {
      await session.model([use(`a${n}`, 'edit')])
      await session.answer('tool', { text: 'x', is_error: n !== 8 })
    }
    await session.model([say('done')])
    await session.next('prompt')
    expect(reasons(session)).toEqual(['end_turn'])
  })

  test('a declined answer is told, and the conversation goes on without what was said of it', async () => {
    const session = new Session(main)
    await session.prompt('go')
    await session.model([say('Well, '), use('t1', 'bash')], { stop_reason: 'refusal' })
    await session.prompt('something else')
    await session.model([say('ok')])
    expect(session.emitted('error')).toMatchObject([{ code: 'model-refused' }])
    expect(reasons(session)).toEqual(['refusal'])
    expect(session.conversation[1]?.content).toEqual([say('[I declined to answer this.]')])
  })

  test('an answer that was cut off is gone on with, three times at most', async () => {
    const session = new Session(main)
    await session.prompt('go')
    await session.model([say('one ')], { stop_reason: 'max_tokens' })
    await session.model([say('two')])
    await session.prompt('more')
    for (let n = 1; n <= 3; n++) await session.model([say('long')], { stop_reason: 'max_tokens' })
    await session.next('prompt')
    expect(reasons(session)).toEqual(['end_turn', 'answer-cut'])
    expect(session.emitted('error')).toMatchObject([{ code: 'answer-cut' }])
  })

  test('a pause of the service is gone on from at once', async () => {
    const session = new Session(main)
    const search = { type: 'server_tool_use', id: 's1', name: 'web_search', input: {} }
    await session.prompt('go')
    await session.model([search], { stop_reason: 'pause_turn' })
    await session.model([say('found')])
    await session.next('prompt')
    expect(session.conversation.map(({ role }) => role)).toEqual(['user', 'assistant'])
    expect(reasons(session)).toEqual(['end_turn'])
  })

  test('F27: a service that pauses again and again is told of, and the next prompt goes on', async () => {
    const session = new Session(main)
    await session.prompt('go')
    for (let n = 1; n <= 9; n++) {
      const search = { type: 'server_tool_use', id: `s${n}`, name: 'web_search', input: {} }
      await session.model([search], { stop_reason: 'pause_turn' })
    }
    await session.settle()
    expect(reasons(session)).toEqual(['model-error'])
    expect(session.emitted('error')).toMatchObject([{ message: expect.stringContaining('9 times in a row') }])
    await session.prompt('go on')
    await session.model([say('done')])
    await session.next('prompt')
    expect(reasons(session)).toEqual(['model-error', 'end_turn'])
  })
})
