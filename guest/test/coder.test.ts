/** The agent as it is, in this runtime, against a host made of a few lines. */
import { createHash } from 'node:crypto'
import type { EffectRequest, GuestMessage, Json, LlmInput, Message, ToolSpec } from '@baton/shared/guest.ts'
import { describe, expect, test } from 'vitest'
import main from '../src/agents/coder.ts'
import { runWith } from '../src/sdk/runtime.ts'

const tools: ToolSpec[] = [
  { name: 'read', description: '', schema: {}, replay: 'safe', access: 'read' },
  { name: 'bash', description: '', schema: {}, replay: 'never', access: 'run' },
]
const text = (value: string): Message['content'] => [{ type: 'text', text: value }]
const use = (id: string, name: string): Message['content'][number] => ({
  type: 'tool_use',
  id,
  name,
  input: { id },
})

class Session {
  readonly asked: EffectRequest[] = []
  readonly conversation: Message[] = []
  ended: string | undefined
  readonly #deliver: (message: string) => void
  #seen = 0

  constructor(mode: 'ask' | 'full') {
    this.#deliver = runWith(
      {
        ask: (request) => void this.asked.push(JSON.parse(request) as EffectRequest),
        block: () => {
          throw new Error('no blocking here')
        },
        sha256: (value) => createHash('sha256').update(value).digest('hex'),
        end: (outcome) => (this.ended = outcome),
      },
      main,
    )
    this.send({
      ...{ type: 'start', seed: '0'.repeat(64), now: 0, mode, tools },
      ...{ about: { workspace: 'shop', branch: 'main' }, settings: { model: 'm' } },
    })
  }

  send(message: GuestMessage): void {
    this.#deliver(JSON.stringify(message))
  }

  /** The next effect that is not an `emit`; checks the numbering and keeps the conversation as a runner does. */
  async next<K extends EffectRequest['kind']>(kind: K): Promise<Extract<EffectRequest, { kind: K }>> {
    for (let tries = 0; tries < 50; tries++) {
      await Promise.resolve()
      while (this.#seen < this.asked.length) {
        const request = this.asked[this.#seen++]!
        expect(request.id).toBe(this.#seen)
        if (request.kind === 'emit') continue
        expect(request.kind).toBe(kind)
        if (request.kind === 'llm') this.#extend(request.input)
        return request as Extract<EffectRequest, { kind: K }>
      }
    }
    throw new Error(`the agent asked for no ${kind}; it ended with ${this.ended}`)
  }

  async answer(kind: EffectRequest['kind'], result: Json): Promise<EffectRequest> {
    const request = await this.next(kind)
    this.send({ type: 'outcome', effect: request.id, now: 1, result })
    return request
  }

  async fail(kind: EffectRequest['kind'], code: string): Promise<void> {
    const request = await this.next(kind)
    this.send({ type: 'outcome', effect: request.id, now: 1, error: { code, message: code } })
  }

  model(content: Message['content'], stop_reason = 'end_turn'): Promise<EffectRequest> {
    const usage = { input_tokens: 1, output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0 }
    return this.answer('llm', { content, stop_reason, model: 'm', usage })
  }

  emitted(type: string): Json[] {
    return this.asked.flatMap((r) => (r.kind === 'emit' && r.input.type === type ? [r.input.data] : []))
  }

  #extend(input: LlmInput): void {
    expect(input.prior).toBe(this.conversation.length)
    this.conversation.push(...input.add)
    assertPaired(this.conversation)
  }
}

/** F51: every tool_use is answered in the next message, and nothing else is. */
function assertPaired(messages: Message[]): void {
  const ids = (message: Message | undefined, type: string, key: string): Json[] =>
    (message?.content ?? []).filter((block) => block.type === type).map((block) => block[key] ?? null)
  expect(messages[0]?.role).toBe('user')
  for (const [i, message] of messages.entries()) {
    if (message.role === 'assistant')
      expect(ids(messages[i + 1], 'tool_result', 'tool_use_id')).toEqual(ids(message, 'tool_use', 'id'))
    else if (messages[i - 1]?.role !== 'assistant')
      expect(ids(message, 'tool_result', 'tool_use_id')).toEqual([])
  }
}

describe('coder', () => {
  test('prompts, calls the tools that the model asks for, and ends the turn', async () => {
    const session = new Session('full')
    await session.answer('prompt', { text: 'fix the till\nplease', command: 'c' })
    const first = await session.model([...text('looking'), use('t1', 'read'), use('t2', 'bash')], 'tool_use')
    expect(first).toMatchObject({
      input: { tools: ['read', 'bash'], model: 'm', system: expect.stringContaining('workspace: shop') },
    })
    expect(await session.answer('tool', { text: 'one', is_error: false })).toMatchObject({
      input: { name: 'read', call: 't1' },
    })
    await session.answer('tool', { text: 'no such file', is_error: true })
    await session.model(text('done'))
    await session.next('prompt')
    expect(session.conversation.at(-1)?.content).toEqual([
      { type: 'tool_result', tool_use_id: 't1', content: 'one' },
      { type: 'tool_result', tool_use_id: 't2', content: 'no such file', is_error: true },
    ])
    expect(session.emitted('title')).toEqual(['fix the till'])
    expect(session.emitted('turn')).toEqual([
      { turn: 1, state: 'start' },
      { turn: 1, state: 'end', reason: 'end_turn' },
    ])
  })

  test('I10: in mode ask a gated call is approved first, by its digest, and carries the approval', async () => {
    const session = new Session('ask')
    await session.answer('prompt', { text: 'go', command: 'c' })
    await session.model([use('t1', 'read'), use('t2', 'bash'), use('t3', 'bash')], 'tool_use')
    await session.answer('tool', { text: 'one', is_error: false })
    const asked = await session.answer('approve', { approved: true, device: 'd' })
    const digest = createHash('sha256').update('["bash",{"id":"t2"}]').digest('hex')
    expect(asked).toMatchObject({ input: { name: 'bash', input: { id: 't2' }, digest } })
    expect(await session.answer('tool', { text: 'two', is_error: false })).toMatchObject({
      input: { approval: asked.id },
    })
    await session.answer('approve', { approved: false, note: 'not there', device: 'd' })
    await session.model(text('fine'))
    const last = session.conversation.at(-1)?.content.at(-1)
    expect(last).toMatchObject({
      tool_use_id: 't3',
      is_error: true,
      content: expect.stringContaining('not there'),
    })
  })

  test('F51: a turn stopped in the middle of its calls keeps a valid conversation', async () => {
    const session = new Session('ask')
    await session.answer('prompt', { text: 'go', command: 'c' })
    await session.model([use('t1', 'bash'), use('t2', 'bash'), use('t3', 'read')], 'tool_use')
    await session.answer('approve', { approved: true, device: 'd' })
    session.send({ type: 'stop', now: 2 })
    await session.fail('tool', 'stopped')
    await session.answer('prompt', { text: 'again', command: 'c' })
    await session.model(text('ok'))
    expect(session.emitted('turn').at(1)).toMatchObject({ reason: 'stopped' })
    expect(session.conversation.map(({ role }) => role)).toEqual(['user', 'assistant', 'user', 'user'])
    expect(session.conversation[2]?.content.map((block) => block['is_error'])).toEqual([true, true, true])
  })

  test('a stop during the model call ends the turn quietly', async () => {
    const session = new Session('full')
    await session.answer('prompt', { text: 'go', command: 'c' })
    session.send({ type: 'stop', now: 2 })
    await session.fail('llm', 'stopped')
    await session.next('prompt')
    expect(session.emitted('error')).toEqual([])
    expect(session.emitted('turn').at(-1)).toMatchObject({ reason: 'stopped' })
  })

  test('an error of the model is told, and a person can prompt again', async () => {
    const session = new Session('full')
    await session.answer('prompt', { text: 'go', command: 'c' })
    await session.fail('llm', 'model-error')
    await session.answer('prompt', { text: 'again', command: 'c' })
    await session.model(text('ok'))
    expect(session.emitted('error')).toEqual([{ code: 'model-error', message: 'model-error' }])
  })

  test('I5: a call that may have run is told to the model as such', async () => {
    const session = new Session('full')
    await session.answer('prompt', { text: 'go', command: 'c' })
    await session.model([use('t1', 'bash')], 'tool_use')
    await session.fail('tool', 'interrupted')
    await session.model(text('ok'))
    expect(session.conversation.at(-1)?.content).toMatchObject([
      { content: 'interrupted, may have run', is_error: true },
    ])
  })
})
