import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { startModelServer, type ModelServer } from '@baton/test/model-server.ts'
import {
  call,
  cut,
  fail,
  hold,
  rawCall,
  redacted,
  refuse,
  say,
  search,
  stopFor,
  think,
  tokens,
  type Script,
} from '@baton/test/model-turns.ts'
import type { LlmResult, Message, ToolSpec } from '@baton/shared/guest.ts'
import { anthropicModel } from '../src/model/anthropic.ts'
import { createModel } from '../src/model/index.ts'
import { isTransient, type Model, type ModelRequest } from '../src/model/model.ts'
import { costOf } from '../src/model/prices.ts'

const KEY = 'sk-canary-key'
const offered: ToolSpec[] = ['read', 'bash'].map((name) => ({
  name,
  description: `Does ${name}.`,
  schema: { type: 'object', properties: { path: { type: 'string' } } },
  replay: 'safe',
  access: 'read',
}))
const prompt: Message = { role: 'user', content: [{ type: 'text', text: 'Hello' }] }
const request: ModelRequest = { system: 'Be brief.', messages: [prompt], tools: offered }

/** The prompt, this answer, and a result for its first call. */
function answered(content: Message['content']): Message[] {
  const id = content.find(({ type }) => type === 'tool_use')?.['id'] ?? null
  return [
    prompt,
    { role: 'assistant', content },
    { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'text' }] },
  ]
}

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
  onText?: (whole: string, thought?: string) => void
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
      window: 1_000_000,
      cost_usd: expect.any(Number),
    })
    expect(result.usage.input_tokens).toBeGreaterThan(0)
    expect(JSON.parse(JSON.stringify(result))).toEqual(result)
  })

  test('what it thinks streams, its end alone, until it says or does something', async () => {
    const long = `${'a'.repeat(1000)} so it is the cache`
    const { model } = await modelFor([
      [think(long), say('The', ' cache.'), think('Which one?'), call('read', {})],
    ])
    const seen: [string, string | undefined][] = []
    await ask(model, {}, { onText: (whole, thought) => seen.push([whole, thought]) })
    expect(seen.map(([whole, thought]) => [whole, thought?.slice(-9)])).toEqual([
      ...[
        ['', 'the cache'],
        ['', ''],
        ['The', ''],
        ['The cache.', ''],
      ],
      ...[
        ['The cache.', 'hich one?'],
        ['The cache.', ''],
      ],
    ])
    expect(seen[0]?.[1]).toHaveLength(400)
  })

  test('can be sent back word for word', async () => {
    const { model, server } = await modelFor([[say('I read.'), call('read', {})], [say('Done.')]])
    const first = await ask(model)
    const messages = answered(first.content)
    const before = JSON.stringify(messages)
    expect((await ask(model, { messages })).content).toEqual([{ type: 'text', text: 'Done.' }])
    expect(JSON.stringify(messages)).toBe(before)
    expect(server.state().requests.map(({ end }) => end)).toEqual(['answered', 'answered'])
  })

  test('thinking comes with its signature, in its place, and can be sent back', async () => {
    const { model, server } = await modelFor([
      [think('Hm.'), redacted, say('I read.'), call('read', {})],
      [think('So.'), say('Done.')],
    ])
    const first = await ask(model)
    expect(first.content.map(({ type }) => type)).toEqual([
      'thinking',
      'redacted_thinking',
      'text',
      'tool_use',
    ])
    expect(first.content[0]).toEqual({ type: 'thinking', thinking: 'Hm.', signature: expect.any(String) })
    const messages = answered(first.content)
    expect((await ask(model, { messages })).content.at(-1)).toEqual({ type: 'text', text: 'Done.' })
    const [, second] = server.state().requests
    expect(second?.body).toMatchObject({ thinking: { type: 'adaptive', display: 'summarized' } })
    const other = ask(model, { messages, system: 'Be loud.' })
    await expect(other).rejects.toMatchObject({ detail: expect.stringContaining('different conversation') })
  })

  test.each([
    ['is no JSON', [rawCall('bash', '{"command": rm')], 'tool_use', '{"command": rm'],
    ['is no object', [rawCall('bash', '["rm"]')], 'tool_use', '["rm"]'],
    [
      'was cut off',
      [rawCall('bash', '{"command":"rm -rf '), stopFor('max_tokens')],
      'max_tokens',
      '{"command":"rm -rf ',
    ],
  ])('a call whose input %s is told as such: half a call must not run', async (_, parts, reason, text) => {
    const { model } = await modelFor([[say('I write.'), ...parts]])
    const { content, stop_reason, invalid_input } = await ask(model)
    expect(content[1]).toEqual({ type: 'tool_use', id: 'toolu_0_1', name: 'bash', input: {} })
    expect(invalid_input).toEqual({ toolu_0_1: text })
    expect(stop_reason).toBe(reason)
  })

  test('a blank text is left out, because the API would not take it back', async () => {
    const { model } = await modelFor([[say('\n\n'), call('read', {})], [say('Done.')]])
    const { content } = await ask(model)
    expect(content).toMatchObject([{ type: 'tool_use' }])
    await ask(model, { messages: answered(content) })
  })

  test.each(['refusal', 'pause_turn', 'model_context_window_exceeded'] as const)(
    'ends with the reason %s',
    async (reason) => {
      const { model } = await modelFor([[say('Well'), search('x'), stopFor(reason)]])
      expect((await ask(model)).stop_reason).toBe(reason)
    },
  )

  test('a pause of the service is gone on from', async () => {
    const { model } = await modelFor([[search('x'), stopFor('pause_turn')], [say('Found.')]])
    const { content } = await ask(model)
    const messages: Message[] = [prompt, { role: 'assistant', content }]
    expect((await ask(model, { messages })).content).toEqual([{ type: 'text', text: 'Found.' }])
  })

  test('tells what it cost and what the context holds, where the model is known', async () => {
    const counts = {
      input_tokens: 1000,
      output_tokens: 100,
      cache_read_input_tokens: 50_000,
      cache_creation_input_tokens: 2000,
    }
    const { model } = await modelFor([[tokens(counts), say('Hi')]])
    const known = await ask(model, { model: 'claude-sonnet-5-5' })
    expect(known.usage).toEqual({
      input_tokens: 1000,
      output_tokens: 100,
      cache_read_tokens: 50_000,
      cache_write_tokens: 2000,
    })
    expect(known.cost_usd).toBeCloseTo(0.002 + 0.001 + 0.005 + 0.005, 10)
    expect(known.window).toBe(1_000_000)
    const unknown = await ask(model, { model: 'claude-of-tomorrow' })
    expect(unknown).not.toHaveProperty('cost_usd')
    expect(unknown).not.toHaveProperty('window')
  })
})

test('a model may be named with its date; a long prompt may cost more', () => {
  const usage = { input_tokens: 90_000, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 }
  expect(costOf('claude-haiku-4-5-20251001', usage)).toBeCloseTo(0.09, 10)
  expect(costOf('claude-haiku-5-5', usage)).toBeCloseTo(0.009, 10)
  expect(costOf('claude-haiku-5-5', { ...usage, cache_read_tokens: 20_000 })).toBeCloseTo(0.045 + 0.001, 10)
  expect(costOf('constructor', usage)).toBeUndefined()
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
      tools: [{ name: 'read' }, { name: 'bash', input_schema: offered[1]?.schema, ...ephemeral }],
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

  test('marks what the request before had written, too, and never more than four places', async () => {
    const { model, server } = await modelFor([[say('I read.'), call('read', {})], [say('Done.')]])
    const { content } = await ask(model)
    const steer: Message = { role: 'user', content: [{ type: 'text', text: 'And hurry.' }] }
    await ask(model, { messages: [...answered(content), steer] })
    const [first, second] = server.state().requests.map(({ body }) => JSON.stringify(body))
    const tools = /"tools":.*?}}]/.exec(first ?? '')?.[0] ?? ''
    expect(tools).toContain('cache_control')
    expect(second).toContain(tools)
    const [, sent] = server.state().requests
    expect(sent?.body).toMatchObject({
      messages: [
        { content: [{ cache_control: { type: 'ephemeral' } }] },
        { role: 'assistant' },
        { role: 'user' },
        { content: [{ cache_control: { type: 'ephemeral' } }] },
      ],
    })
    expect(second?.split('cache_control')).toHaveLength(5)
  })

  test('tells the model how much to think, where it takes that', async () => {
    const { model, server } = await modelFor([[say('Hi')]])
    await ask(model, { effort: 'low', model: 'claude-opus-5-5' })
    await ask(model, { effort: 'low', model: 'claude-haiku-4-5' })
    await ask(model, { effort: 'high', model: 'claude-of-tomorrow' })
    const [modern, old, unknown] = server.state().requests.map(({ body }) => body)
    expect(modern).toMatchObject({ output_config: { effort: 'low' }, thinking: { type: 'adaptive' } })
    expect(old).not.toHaveProperty('output_config')
    expect(old).not.toHaveProperty('thinking')
    expect(unknown).toMatchObject({ output_config: { effort: 'high' } })
    expect(unknown).not.toHaveProperty('thinking')
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
  test.each([
    [429, 'Slow down', 'model-busy'],
    [529, 'Overloaded', 'model-busy'],
    [500, 'Oh no', 'model-unreachable'],
    [503, 'Oh no', 'model-unreachable'],
    [401, 'invalid x-api-key', 'model-key'],
    [403, 'Not for you', 'model-key'],
    [400, 'Extra inputs are not permitted', 'model-error'],
    [400, 'prompt is too long: 208656 tokens > 200000 maximum', 'context-full'],
    [
      400,
      'input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease input length',
      'context-full',
    ],
    [413, 'Request exceeds the maximum size', 'context-full'],
  ])('F27: status %i (%s) is told as %s, after one attempt', async (status, message, code) => {
    const { model, server } = await modelFor([refuse(status, message)])
    const error: unknown = await ask(model).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code, detail: `Status ${status}: ${message}` })
    expect(isTransient(error)).toBe(code === 'model-busy' || code === 'model-unreachable')
    expect(String(error)).not.toContain(KEY)
    expect(server.state().count).toBe(1)
  })

  test.each([
    // Some gateways know it by another name.
    ['claude-sonnet-55', 'model: vendor/sonnet', '("claude-sonnet-55") Did you mean claude-sonnet-5-5?'],
    [
      'claude-foo',
      'model: claude-foo',
      '("claude-foo") There are: claude-sonnet-5-5, claude-opus-5-5, claude-next-1.',
    ],
  ])(
    'V10: a name that the service does not have (%s) is told with those that it has',
    async (name, words, detail) => {
      const { model, server } = await modelFor([refuse(404, words)], name)
      const error: unknown = await ask(model).catch((reason: unknown) => reason)
      expect(error).toMatchObject({ code: 'model-unknown', detail })
      expect(isTransient(error)).toBe(false)
      expect(server.state().count).toBe(1)
    },
  )

  test('V10: another address that answers 404 is not taken for a model that is not there', async () => {
    const { model } = await modelFor([refuse(404, 'Not Found')])
    const error: unknown = await ask(model).catch((reason: unknown) => reason)
    expect(error).toMatchObject({
      code: 'model-error',
      detail: 'Status 404: Not Found (is ANTHROPIC_BASE_URL right?)',
    })
  })

  test('V10: a service that lists nothing, or hangs at it, takes nothing from what is told', async () => {
    const paths: string[] = []
    const mute = createServer((incoming, response) => {
      paths.push(incoming.url ?? '')
      if (incoming.method === 'GET') return void response.writeHead(500).end('no')
      const error = { type: 'not_found_error', message: 'model: claude-foo' }
      response.writeHead(404, { 'content-type': 'application/json' })
      response.end(JSON.stringify({ type: 'error', error }))
    }).listen(0, '127.0.0.1')
    await once(mute, 'listening')
    const { port } = mute.address() as AddressInfo
    const model = createModel({ apiKey: KEY, baseUrl: `http://127.0.0.1:${port}`, model: 'claude-foo' })
    const error: unknown = await ask(model).catch((reason: unknown) => reason)
    mute.close()
    expect(error).toMatchObject({ code: 'model-unknown', detail: '("claude-foo")' })
    expect(paths).toEqual(['/v1/messages', expect.stringMatching(/^\/v1\/models/)])
  })

  test.each([
    ['retry-after', '7', 7000],
    ['retry-after-ms', '120', 120],
    ['retry-after', 'soon', undefined],
    ['x-other', '7', undefined],
  ])('a busy service says how long to wait: %s %s', async (name, value, ms) => {
    const { model } = await modelFor([{ status: 429, headers: { [name]: value } }])
    const error: unknown = await ask(model).catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code: 'model-busy', retry_after_ms: ms })
  })

  test('a stream that breaks off is an error, not a short answer', async () => {
    const { model, server } = await modelFor([[say('Half an'), cut]])
    const seen: string[] = []
    const asking = ask(model, {}, { onText: (whole) => seen.push(whole) })
    await expect(asking).rejects.toMatchObject({ code: 'model-unreachable' })
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
      await expect(ask(model)).rejects.toMatchObject({ code: 'model-unreachable' })
    })
  })

  test.each([
    ['overloaded_error', 'model-busy'],
    ['rate_limit_error', 'model-busy'],
    ['api_error', 'model-unreachable'],
    ['invalid_request_error', 'model-error'],
  ] as const)('an error event %s in the stream is told as %s', async (type, code) => {
    const { model } = await modelFor([[say('Half'), fail(type)]])
    await expect(ask(model)).rejects.toMatchObject({
      code,
      message: expect.stringContaining('Scripted failure'),
    })
  })

  test('F6: a stream that falls silent is given up, and told', async () => {
    server = await startModelServer([[say('Half'), hold('never')]])
    const model = anthropicModel({ apiKey: KEY, baseUrl: server.url, silence_ms: 50 })
    await expect(ask(model)).rejects.toMatchObject({
      code: 'model-unreachable',
      detail: 'The stream was silent for 50 ms.',
    })
  })

  test('a service that is not there is told', async () => {
    const model = createModel({ apiKey: KEY, baseUrl: 'http://127.0.0.1:9' })
    await expect(ask(model)).rejects.toMatchObject({
      code: 'model-unreachable',
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
