/** The scripted model against the real SDK: what the SDK makes of it is what the product will see. */
import Anthropic from '@anthropic-ai/sdk'
import type { MessageParam } from '@anthropic-ai/sdk/resources/messages'
import { afterEach, describe, expect, test } from 'vitest'
import { startModelServer } from '../src/model-server.ts'
import type { ModelServer } from '../src/model-server.ts'
import { attempts, call, cut, fail, hold, redacted, refuse, say, think, tokens } from '../src/model-turns.ts'
import type { Script } from '../src/model-turns.ts'
import { until } from '../src/until.ts'

let server: ModelServer | undefined

afterEach(async () => {
  await server?.close()
  server = undefined
})

async function serve(script: Script): Promise<ModelServer> {
  server = await startModelServer(script)
  return server
}

const tools = [{ name: 'bash', description: 'Runs a command', input_schema: { type: 'object' as const } }]
const hi: MessageParam = { role: 'user', content: 'hi' }

function sdk(url: string, maxRetries = 0): Anthropic {
  return new Anthropic({ apiKey: 'test-key', baseURL: url, maxRetries })
}

function ask(url: string, messages: MessageParam[] = [hi], maxRetries = 0) {
  return sdk(url, maxRetries).messages.stream({ model: 'claude-test', max_tokens: 100, messages, tools })
}

describe('streaming', () => {
  test('text arrives chunk by chunk and as a whole message', async () => {
    const { url, state } = await serve([[say('Hel', 'lo ', '🌍')]])
    const chunks: string[] = []
    const stream = ask(url).on('text', (chunk) => chunks.push(chunk))
    const message = await stream.finalMessage()
    expect(chunks).toEqual(['Hel', 'lo ', '🌍'])
    expect(message.content).toMatchObject([{ type: 'text', text: 'Hello 🌍' }])
    expect(message.stop_reason).toBe('end_turn')
    expect(message.usage.output_tokens).toBe(3)
    expect(state()).toMatchObject({ count: 1, requests: [{ n: 1, end: 'answered' }] })
  })

  test('a tool call arrives with its input, whatever characters are in it', async () => {
    const input = {
      command: 'printf "\\u0000 \u0000 ünï 🌍🌍🌍🌍🌍🌍🌍🌍🌍🌍🌍🌍🌍" # a long one',
      list: [1, { deep: null }],
    }
    const { url } = await serve([[say('I run it.'), call('bash', input)]])
    const message = await ask(url).finalMessage()
    expect(message.stop_reason).toBe('tool_use')
    expect(message.content[1]).toMatchObject({ type: 'tool_use', id: 'toolu_0_1', name: 'bash', input })
  })

  test('the answer depends on the place in the conversation, so a request asked again gets the same', async () => {
    const { url, state } = await serve([[call('bash', { command: 'ls' })], [say('done')]])
    const first = await ask(url).finalMessage()
    const again = await ask(url).finalMessage()
    expect(again).toEqual(first)
    const next = await ask(url, [
      hi,
      { role: 'assistant', content: first.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'toolu_0_0', content: 'a.txt' }] },
    ]).finalMessage()
    expect(next.content).toMatchObject([{ type: 'text', text: 'done' }])
    expect(state().count).toBe(3)
  })

  test('a function script sees the request and its number', async () => {
    const { url } = await serve((request, n) => [say(`${n}: ${request.messages.length} message`)])
    await ask(url).finalMessage()
    expect((await ask(url).finalMessage()).content).toMatchObject([{ type: 'text', text: '2: 1 message' }])
  })

  test('without streaming the same turn comes as one message', async () => {
    const { url } = await serve([[say('Hel', 'lo'), call('bash', { command: 'ls' })]])
    const message = await sdk(url).messages.create({
      model: 'claude-test',
      max_tokens: 9,
      messages: [hi],
      tools,
    })
    const streamed = await ask(url).finalMessage()
    expect(message.content).toEqual(streamed.content)
    expect(message.stop_reason).toBe('tool_use')
  })
})

describe('thinking', () => {
  const turns: Script = [
    [think('Hm.'), redacted, call('bash', {})],
    [think('So.'), say('done')],
  ]

  test('is signed, streamed and whole alike, and taken back where it was', async () => {
    const { url } = await serve(turns)
    const streamed = await ask(url).finalMessage()
    expect(streamed.content).toMatchObject([
      { type: 'thinking', thinking: 'Hm.', signature: expect.stringMatching(/^.{44}$/) },
      { type: 'redacted_thinking', data: expect.stringMatching(/^.{44}$/) },
      { type: 'tool_use' },
    ])
    const whole = await sdk(url).messages.create({
      ...{ model: 'claude-test', max_tokens: 100, messages: [hi], tools },
    })
    expect(whole.content).toEqual(streamed.content)
    const [, , used] = streamed.content
    const id = used?.type === 'tool_use' ? used.id : ''
    const results: MessageParam = {
      ...{ role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'ok' }] },
    }
    const back: MessageParam[] = [hi, { role: 'assistant', content: streamed.content }, results]
    expect((await ask(url, back).finalMessage()).content).toMatchObject([
      { thinking: 'So.' },
      { text: 'done' },
    ])
    const changed: MessageParam[] = [{ role: 'user', content: 'hi, changed' }, ...back.slice(1)]
    await expect(ask(url, changed).finalMessage()).rejects.toThrow('bound to a different conversation')
  })
})

describe('a script', () => {
  test('goes on behind a summary, whatever of the old messages is kept', async () => {
    const { url, state } = await serve([[call('bash', {})], [say('one')], [call('bash', {})], [say('two')]])
    const pair = (id: string): MessageParam[] => [
      { role: 'assistant', content: [{ type: 'tool_use', id, name: 'bash', input: {} }] },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: 'ok' }] },
    ]
    const one: MessageParam = { role: 'assistant', content: [{ type: 'text', text: 'one' }] }
    const request: MessageParam = {
      role: 'user',
      content: [{ type: 'text', text: 'Summarise the conversation.' }],
    }
    const old = [hi, ...pair('toolu_0_0'), one, hi, ...pair('toolu_2_0')]
    const { content } = await ask(url, [...old, request]).finalMessage()
    const [block] = content
    const summary: MessageParam = {
      role: 'user',
      content: [{ type: 'text', text: block?.type === 'text' ? block.text : '' }],
    }
    expect(JSON.stringify(summary)).toContain('Summary of 3 answers.')
    for (const kept of [[], old.slice(5), old.slice(3), old.slice(1)]) {
      const next = await ask(url, [summary, ...kept, hi]).finalMessage()
      expect(next.content, `${kept.length} kept`).toMatchObject([{ text: 'two' }])
    }
    expect(state().requests.map(({ end }) => end)).toEqual(Array.from({ length: 5 }, () => 'answered'))
  })

  test('tells tokens as it is told to', async () => {
    const { url } = await serve([
      [tokens({ input_tokens: 7, output_tokens: 8, cache_read_input_tokens: 9 }), say('x')],
    ])
    const { usage } = await ask(url).finalMessage()
    expect(usage).toMatchObject({ input_tokens: 7, output_tokens: 8, cache_read_input_tokens: 9 })
  })
})

describe('gates', () => {
  test('nothing passes a closed gate, everything an opened one', async () => {
    const { url, state, open } = await serve([[say('before '), hold('g'), say('after')]])
    const seen: string[] = []
    const done = ask(url)
      .on('text', (chunk) => seen.push(chunk))
      .finalMessage()
    await until('the request stands at the gate', () => state().gates.g?.waiting === 1)
    await until('the first part arrived', () => seen.length === 1)
    expect(state().requests[0]?.end).toBe('open')
    open('g')
    expect((await done).content).toHaveLength(2)
    expect((await ask(url).finalMessage()).content).toHaveLength(2)
  })

  test('a caller that hangs up at a gate is recorded as aborted', async () => {
    const { url, state } = await serve([[hold('g'), say('never')]])
    const stream = ask(url)
    const done = stream.finalMessage()
    await until('the request stands at the gate', () => state().gates.g?.waiting === 1)
    stream.abort()
    await expect(done).rejects.toThrow(Anthropic.APIUserAbortError)
    await until('the server noticed', () => state().requests[0]?.end === 'aborted')
    expect(state().gates.g?.waiting).toBe(0)
  })
})

describe('failures', () => {
  test.each([
    [429, Anthropic.RateLimitError],
    [500, Anthropic.InternalServerError],
    [529, Anthropic.InternalServerError],
    [401, Anthropic.AuthenticationError],
  ])('status %i is the error that the SDK knows', async (status, type) => {
    const { url, state } = await serve([refuse(status, 'as scripted')])
    const failure = await ask(url)
      .finalMessage()
      .catch((error: unknown) => error)
    expect(failure).toBeInstanceOf(type)
    expect(failure).toMatchObject({ status, message: expect.stringContaining('as scripted') })
    expect(state().requests[0]?.end).toBe('refused')
  })

  test('the SDK retries an overload and gets the next attempt', async () => {
    const { url, state } = await serve([
      attempts({ status: 529, headers: { 'retry-after-ms': '1' } }, [say('now')]),
    ])
    expect((await ask(url, [hi], 2).finalMessage()).content).toMatchObject([{ type: 'text', text: 'now' }])
    expect(state().requests.map(({ end }) => end)).toEqual(['refused', 'answered'])
  })

  test('a stream that breaks off is an error, after what came before it', async () => {
    const { url, state } = await serve([[say('half '), cut]])
    const seen: string[] = []
    const stream = ask(url).on('text', (chunk) => seen.push(chunk))
    await expect(stream.finalMessage()).rejects.toThrow()
    expect(seen).toEqual(['half '])
    expect(state().requests[0]?.end).toBe('cut')
  })

  test('an error event in the stream is an error', async () => {
    const { url, state } = await serve([[say('half '), fail('overloaded_error')]])
    await expect(ask(url).finalMessage()).rejects.toThrow('overloaded_error')
    expect(state().requests[0]?.end).toBe('failed')
  })

  test('a request beyond the script is refused by name', async () => {
    const { url } = await serve([])
    await expect(ask(url).finalMessage()).rejects.toThrow('The script has no turn 0.')
  })
})

const use = { type: 'tool_use' as const, id: 'a', name: 'bash', input: {} }
const result = { type: 'tool_result' as const, tool_use_id: 'a', content: 'ok' }

describe('rules of the API', () => {
  test.each<[string, MessageParam[], string]>([
    [
      'a call without a result',
      [hi, { role: 'assistant', content: [use] }, hi],
      'without `tool_result` blocks',
    ],
    ['a result without a call', [{ role: 'user', content: [result] }], 'unexpected `tool_use_id`'],
    [
      'two results for one call',
      [hi, { role: 'assistant', content: [use] }, { role: 'user', content: [result, result] }],
      'unexpected `tool_use_id`',
    ],
    [
      'a late result',
      [
        hi,
        { role: 'assistant', content: [use] },
        hi,
        { role: 'assistant', content: 'x' },
        { role: 'user', content: [result] },
      ],
      'without `tool_result` blocks',
    ],
    [
      'a result behind text',
      [
        hi,
        { role: 'assistant', content: [use] },
        { role: 'user', content: [{ type: 'text', text: 'x' }, result] },
      ],
      'before other content',
    ],
    [
      'one id twice',
      [hi, { role: 'assistant', content: [use, use] }, { role: 'user', content: [result] }],
      'must be unique',
    ],
    ['the model speaking first', [{ role: 'assistant', content: 'x' }, hi], 'first message must use the'],
    ['the model speaking last', [hi, { role: 'assistant', content: 'x' }], 'must end with a user message'],
    ['an empty text', [{ role: 'user', content: [{ type: 'text', text: '' }] }], 'must be non-empty'],
    ['a blank text', [{ role: 'user', content: [{ type: 'text', text: ' \n' }] }], 'non-whitespace text'],
    [
      'a picture that is not there',
      [{ role: 'user', content: [{ type: 'image', source: { type: 'blob', blob: 'x' } as never }] }],
      'Invalid type',
    ],
    [
      'a field that the API does not know',
      [
        hi,
        { role: 'assistant', content: [{ ...use, extra: 1 } as never] },
        { role: 'user', content: [result] },
      ],
      'Invalid',
    ],
    ['an empty message', [{ role: 'user', content: [] }], 'must have non-empty content'],
    ['half a surrogate pair', [{ role: 'user', content: '\ud83d' }], 'no low surrogate'],
  ])('F51: %s is refused', async (_, messages, message) => {
    const { url, state } = await serve([[say('fine')], [say('fine')], [say('fine')]])
    await expect(ask(url, messages).finalMessage()).rejects.toThrow(message)
    expect(state().requests[0]).toMatchObject({ end: 'invalid', broken: expect.stringContaining(message) })
  })

  test('F51: calls and results that pair up are accepted, also over neighbouring messages of one role', async () => {
    const { url } = await serve([[], [say('fine')]])
    const pair: MessageParam[] = [
      hi,
      { role: 'assistant', content: [use, { ...use, id: 'b' }] },
      { role: 'user', content: [{ ...result, tool_use_id: 'b' }] },
      { role: 'user', content: [result, { type: 'text', text: 'and now?' }] },
    ]
    expect((await ask(url, pair).finalMessage()).content).toMatchObject([{ type: 'text', text: 'fine' }])
  })

  test('tools have to be offered when they were used', async () => {
    const { url } = await serve([[], [say('fine')]])
    const messages: MessageParam[] = [
      hi,
      { role: 'assistant', content: [use] },
      { role: 'user', content: [result] },
    ]
    const request = sdk(url).messages.create({ model: 'claude-test', max_tokens: 9, messages })
    await expect(request).rejects.toThrow('must define tools')
  })

  test('no more than four cache marks', async () => {
    const { url } = await serve([[say('fine')]])
    const text = { type: 'text' as const, text: 'x', cache_control: { type: 'ephemeral' as const } }
    await expect(
      ask(url, [{ role: 'user', content: Array.from({ length: 5 }, () => text) }]).finalMessage(),
    ).rejects.toThrow('Found 5')
    await ask(url, [{ role: 'user', content: Array.from({ length: 4 }, () => text) }]).finalMessage()
  })

  test('a request without a key or a version is refused', async () => {
    const { url } = await serve([[say('fine')]])
    const post = (headers: Record<string, string>) =>
      fetch(`${url}/v1/messages`, { method: 'POST', headers, body: '{}' })
    expect((await post({})).status).toBe(401)
    expect((await post({ 'x-api-key': 'k' })).status).toBe(400)
  })
})

test('requests are recorded whole', async () => {
  const { url, state } = await serve([[say('fine')]])
  await ask(url, [{ role: 'user', content: 'remember me' }]).finalMessage()
  expect(state().requests[0]?.body).toMatchObject({
    model: 'claude-test',
    max_tokens: 100,
    stream: true,
    messages: [{ role: 'user', content: 'remember me' }],
  })
  expect(state().requests[0]?.headers.authorization).toBe('Bearer test-key')
})
