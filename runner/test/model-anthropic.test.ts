import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { startModelServer, type ModelServer } from '@baton/test/model-server.ts'
import { attempts, call, cut, fail, hold, refuse, say, type Script } from '@baton/test/model-turns.ts'
import type { LlmResult, Message, ToolSpec } from '@baton/shared/guest.ts'
import { anthropicModel } from '../src/model/anthropic.ts'
import { createModel } from '../src/model/index.ts'
import type { Model, ModelRequest } from '../src/model/model.ts'

const KEY = 'sk-canary-key'
const tools: ToolSpec[] = ['read', 'bash'].map((name) => ({
  name,
  description: `Does ${name}.`,
  schema: { type: 'object', properties: { path: { type: 'string' } } },
  replay: 'safe',
  access: 'read',
}))
const prompt: Message = { role: 'user', content: [{ type: 'text', text: 'Hello' }] }
const request: ModelRequest = { system: 'Be brief.', messages: [prompt], tools }

let server: ModelServer | undefined
afterEach(async () => {
  await server?.close()
  server = undefined
})

async function modelFor(script: Script, model?: string): Promise<{ model: Model; server: ModelServer }> {
  server = await startModelServer(script)
  return { server, model: createModel({ apiKey: KEY, baseUrl: server.url, model }) }
}

interface Options {
  signal?: AbortSignal
  onText?: (whole: string) => void
}

function ask(model: Model, more: Partial<ModelRequest> = {}, options: Options = {}): Promise<LlmResult> {
  const signal = new AbortController().signal
  return model.call({ ...request, ...more }, { signal, onText: () => undefined, ...options })
}

describe('an answer', () => {
  test('streams as the whole text so far, and ends as plain blocks with its usage', async () => {
    const { model } = await modelFor([[say('Hel', 'lo 😀'), call('read', { path: 'a.txt' }), say('there')]])
    const seen: string[] = []
    const result = await ask(model, {}, { onText: (whole) => seen.push(whole) })
    expect(seen).toEqual(['Hel', 'Hello 😀', 'Hello 😀\n\nthere'])
    expect(result).toEqual({
      content: [
        { type: 'text', text: 'Hello 😀' },
        { type: 'tool_use', id: expect.any(String), name: 'read', input: { path: 'a.txt' } },
        { type: 'text', text: 'there' },
      ],
      stop_reason: 'tool_use',
      model: expect.any(String),
      usage: {
        input_tokens: expect.any(Number),
        output_tokens: expect.any(Number),
        cache_read_tokens: 0,
        cache_write_tokens: 0,
      },
    })
    expect(result.usage.input_tokens).toBeGreaterThan(0)
    expect(JSON.parse(JSON.stringify(result))).toEqual(result)
  })

  test('can be sent back word for word', async () => {
    const { model, server } = await modelFor([[say('I read.'), call('read', {})], [say('Done.')]])
    const first = await ask(model)
    const id = first.content[1]?.['id'] ?? null
    const messages: Message[] = [
      prompt,
      { role: 'assistant', content: first.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'text' }] },
    ]
    const before = JSON.stringify(messages)
    expect((await ask(model, { messages })).content).toEqual([{ type: 'text', text: 'Done.' }])
    expect(JSON.stringify(messages)).toBe(before)
    expect(server.state().requests.map(({ end }) => end)).toEqual(['answered', 'answered'])
  })

  test('a call that the token limit cut off is left out: half a call must not run', async () => {
    const events = [
      { type: 'message_start', message: emptyMessage },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'I write.' } },
      { type: 'content_block_stop', index: 0 },
      {
        type: 'content_block_start',
        index: 1,
        content_block: { type: 'tool_use', id: 'toolu_1', name: 'bash', input: {} },
      },
      {
        type: 'content_block_delta',
        index: 1,
        delta: { type: 'input_json_delta', partial_json: '{"command":"rm -rf ' },
      },
      { type: 'content_block_stop', index: 1 },
      {
        type: 'message_delta',
        delta: { stop_reason: 'max_tokens', stop_sequence: null },
        usage: { output_tokens: 9 },
      },
      { type: 'message_stop' },
    ]
    await withEvents(events, async (model) => {
      const result = await ask(model)
      expect(result.content).toEqual([{ type: 'text', text: 'I write.' }])
      expect(result.stop_reason).toBe('max_tokens')
    })
  })
})

describe('a request', () => {
  test('marks tools, system prompt and last message for the cache, and carries the key as a header only', async () => {
    const { model, server } = await modelFor([[say('Hi')]], 'claude-test')
    await ask(model)
    const [sent] = server.state().requests
    const ephemeral = { cache_control: { type: 'ephemeral' } }
    expect(sent?.body).toMatchObject({
      model: 'claude-test',
      stream: true,
      system: [{ type: 'text', text: 'Be brief.', ...ephemeral }],
      tools: [{ name: 'read' }, { name: 'bash', input_schema: tools[1]?.schema, ...ephemeral }],
      messages: [{ role: 'user', content: [{ type: 'text', text: 'Hello', ...ephemeral }] }],
    })
    expect(JSON.stringify(sent?.body).split('cache_control')).toHaveLength(4)
    expect(JSON.stringify(sent?.headers)).toContain(KEY)
    expect(JSON.stringify(sent?.body)).not.toContain(KEY)
  })

  test('names its own model and limit where it has them, and leaves out what is empty', async () => {
    const { model, server } = await modelFor([[say('Hi')]], 'claude-test')
    await ask(model, { model: 'claude-other', max_tokens: 77, system: '', tools: [] })
    const body = server.state().requests[0]?.body
    expect(body).toMatchObject({ model: 'claude-other', max_tokens: 77 })
    expect(body).not.toHaveProperty('system')
    expect(body).not.toHaveProperty('tools')
  })

  test('F50: half a surrogate pair in the conversation does not make every request invalid', async () => {
    const { model, server } = await modelFor([[say('Hi')]])
    const text = 'cut \ud83d, whole 😀, text \\ud83d, NUL \0'
    await ask(model, { messages: [{ role: 'user', content: [{ type: 'text', text }] }] })
    const body = JSON.stringify(server.state().requests[0]?.body)
    expect(body).toContain(JSON.stringify('cut \ufffd, whole 😀, text \\ud83d, NUL \0').slice(1, -1))
  })
})

describe('trouble', () => {
  test.each([429, 500, 529])('status %i is tried again before anything is said', async (status) => {
    const headers = { 'retry-after-ms': '1' }
    const { model, server } = await modelFor([
      attempts({ status, headers }, { status, headers }, [say('Hi')]),
    ])
    expect((await ask(model)).content).toEqual([{ type: 'text', text: 'Hi' }])
    expect(server.state().count).toBe(3)
  })

  test('F75: it is tried three times at most, and told with status and words', async () => {
    const { model, server } = await modelFor([
      { status: 529, message: 'Overloaded', headers: { 'retry-after-ms': '1' } },
    ])
    await expect(ask(model)).rejects.toMatchObject({
      code: 'model-error',
      detail: 'Status 529: Overloaded',
    })
    expect(server.state().count).toBe(3)
  })

  test.each([400, 401])('status %i is not tried again', async (status) => {
    const { model, server } = await modelFor([refuse(status, 'No way')])
    const error: unknown = await ask(model).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'model-error', detail: `Status ${status}: No way` })
    expect(String(error)).not.toContain(KEY)
    expect(server.state().count).toBe(1)
  })

  test('a stream that breaks off is an error, not a short answer, and is not asked again', async () => {
    const { model, server } = await modelFor([[say('Half an'), cut]])
    const seen: string[] = []
    const asking = ask(model, {}, { onText: (whole) => seen.push(whole) })
    await expect(asking).rejects.toMatchObject({ code: 'model-error' })
    expect(seen).toEqual(['Half an'])
    expect(server.state().count).toBe(1)
  })

  test('a stream that ends in good order but too early is an error', async () => {
    const events = [
      { type: 'message_start', message: emptyMessage },
      { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
      { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Half' } },
    ]
    await withEvents(events, async (model) => {
      await expect(ask(model)).rejects.toMatchObject({ code: 'model-error' })
    })
  })

  test('an error event in the stream is told', async () => {
    const { model } = await modelFor([[say('Half'), fail('overloaded_error')]])
    await expect(ask(model)).rejects.toMatchObject({
      code: 'model-error',
      message: expect.stringContaining('Scripted failure'),
    })
  })

  test('F6: a stream that falls silent is given up, and told', async () => {
    server = await startModelServer([[say('Half'), hold('never')]])
    const model = anthropicModel({ apiKey: KEY, baseUrl: server.url, silence_ms: 50 })
    await expect(ask(model)).rejects.toMatchObject({
      code: 'model-error',
      detail: 'The stream was silent for 50 ms.',
    })
  })

  test('a service that is not there is told', async () => {
    const model = createModel({ apiKey: KEY, baseUrl: 'http://127.0.0.1:9' })
    await expect(ask(model)).rejects.toMatchObject({
      code: 'model-error',
      message: expect.stringContaining('can not be reached'),
    })
  })
})

describe('a stop', () => {
  test('ends a running answer and hangs up', async () => {
    const { model, server } = await modelFor([[say('Half'), hold('never')]])
    const stop = new AbortController()
    const asking = ask(model, {}, { signal: stop.signal, onText: () => stop.abort() })
    await expect(asking).rejects.toMatchObject({ code: 'stopped' })
    await vi.waitFor(() => expect(server.state().requests[0]?.end).toBe('aborted'), { timeout: 20_000 })
  })

  test('before the first byte, and before the call', async () => {
    const { model, server } = await modelFor([[hold('never')]])
    const stop = new AbortController()
    const asking = ask(model, {}, { signal: stop.signal })
    const ended = expect(asking).rejects.toMatchObject({ code: 'stopped' })
    await vi.waitFor(() => expect(server.state().count).toBe(1), { timeout: 20_000 })
    stop.abort()
    await ended
    await expect(ask(model, {}, { signal: stop.signal })).rejects.toMatchObject({ code: 'stopped' })
    expect(server.state().count).toBe(1)
  })
})

test('nothing is written to the console, whatever happens', async () => {
  const written: string[] = []
  const spies = (['log', 'info', 'warn', 'error', 'debug'] as const).map((name) =>
    vi.spyOn(console, name).mockImplementation((...words: unknown[]) => void written.push(words.join(' '))),
  )
  vi.stubEnv('ANTHROPIC_LOG', 'debug')
  vi.stubEnv('ANTHROPIC_AUTH_TOKEN', 'another')
  const { model } = await modelFor([refuse(401, 'No'), [say('x'), cut]])
  await ask(model).catch(() => undefined)
  vi.unstubAllEnvs()
  for (const spy of spies) spy.mockRestore()
  expect(written).toEqual([])
})

const emptyMessage = {
  id: 'msg_1',
  type: 'message',
  role: 'assistant',
  model: 'claude-test',
  content: [],
  stop_reason: null,
  stop_sequence: null,
  usage: { input_tokens: 1, output_tokens: 1 },
}

/** A service that sends just these events and then ends the response in good order. */
async function withEvents(events: { type: string }[], use: (model: Model) => Promise<void>): Promise<void> {
  const plain = createServer((_, response) => {
    response.setHeader('content-type', 'text/event-stream')
    for (const event of events) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
    response.end()
  })
  await new Promise<void>((resolve) => plain.listen(0, '127.0.0.1', resolve))
  try {
    const { port } = plain.address() as AddressInfo
    await use(createModel({ apiKey: KEY, baseUrl: `http://127.0.0.1:${port}` }))
  } finally {
    plain.closeAllConnections()
    plain.close()
  }
}
