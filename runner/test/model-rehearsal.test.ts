import { describe, expect, test, vi } from 'vitest'
import type { Json, LlmResult, Message, ToolSpec } from '@baton/shared/guest.ts'
import { createModel } from '../src/model/index.ts'
import { REHEARSAL_LABEL, rehearsalModel } from '../src/model/rehearsal.ts'

const spec = (name: string): ToolSpec => ({
  name,
  description: '',
  schema: {},
  replay: 'safe',
  access: 'read',
})
const ALL = ['bash', 'read', 'write', 'edit', 'glob', 'grep'].map(spec)
const quick = rehearsalModel({ pace_ms: 0 })

function ask(
  messages: Message[],
  tools = ALL,
  onText: (whole: string) => void = () => undefined,
): Promise<LlmResult> {
  const signal = new AbortController().signal
  return quick.call({ system: '', messages, tools }, { signal, onText })
}

type Answers = Record<string, { content: string; is_error?: boolean }>

/** Plays one prompt to its end, as an agent does; returns the names of the calls. */
async function play(messages: Message[], prompt: string, answers: Answers, tools = ALL): Promise<string[]> {
  messages.push({ role: 'user', content: [{ type: 'text', text: prompt }] })
  const called: string[] = []
  for (;;) {
    const { content, stop_reason } = await ask(messages, tools)
    messages.push({ role: 'assistant', content })
    if (stop_reason === 'end_turn') return called
    const results: Message['content'] = []
    for (const block of content.filter(({ type }) => type === 'tool_use')) {
      const name = str(block['name'])
      called.push(name)
      const answer = answers[name] ?? { content: 'done' }
      results.push({ type: 'tool_result', tool_use_id: str(block['id']), ...answer })
    }
    messages.push({ role: 'user', content: results })
  }
}

const str = (value: Json | undefined): string => (typeof value === 'string' ? value : '')
const textOf = (message: Message | undefined): string =>
  (message?.content ?? []).map((block) => str(block['text'])).join('\n')
const inputOf = (messages: Message[], name: string): { [key: string]: Json } | undefined =>
  messages.flatMap(({ content }) => content).find((block) => block['name'] === name)?.['input'] as
    { [key: string]: Json } | undefined

const files = { glob: { content: 'LICENSE\nREADME.md\nsrc/a.ts' } }

test('without a key it is used, and says so in its first words', async () => {
  for (const apiKey of [undefined, '', '  ']) expect(createModel({ apiKey }).name).toBe('rehearsal')
  expect(createModel({ apiKey: 'key' }).name).toBe('anthropic')
  const { content } = await ask([{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }])
  expect(str(content[0]?.['text'])).toMatch(
    /^Rehearsal model: no API key is set, this is a scripted demonstration/,
  )
})

test('plays its task: looks around, runs a command, writes a file, sums up', async () => {
  const messages: Message[] = []
  expect(await play(messages, 'Fix the bug', files)).toEqual(['glob', 'read', 'bash', 'write'])
  expect(inputOf(messages, 'read')).toMatchObject({ path: 'README.md' })
  expect(inputOf(messages, 'bash')).toEqual({ command: 'git status --short | head' })
  expect(inputOf(messages, 'write')).toMatchObject({ path: 'baton-rehearsal.md' })
  expect(str(inputOf(messages, 'write')?.['content'])).toContain('Fix the bug')
  expect(textOf(messages.at(-1))).toMatch(/`git status --short \| head`: ran after your approval/)
  const ids = messages
    .flatMap(({ content }) => content)
    .flatMap((block) => (block['id'] ? [block['id']] : []))
  expect(new Set(ids).size).toBe(4)
})

test('a denial is taken', async () => {
  const messages: Message[] = []
  const denied = { content: 'The user did not allow this call.', is_error: true }
  expect(await play(messages, 'Go', { ...files, bash: denied, write: denied })).toEqual([
    'glob',
    'read',
    'bash',
    'write',
  ])
  expect(textOf(messages.at(-1))).toMatch(/declined or failed/)
  expect(textOf(messages.at(-1))).toMatch(/not written/)
})

test('an empty repository and few tools are no trouble', async () => {
  expect(await play([], 'Go', { glob: { content: 'No file matches.' } })).toEqual(['glob', 'bash', 'write'])
  expect(await play([], 'Go', files, [spec('bash')])).toEqual(['bash'])
  expect(await play([], 'Go', files, [])).toEqual([])
})

test('the next prompt plays it again, also after a stop in the middle', async () => {
  const messages: Message[] = []
  await play(messages, 'One', files)
  expect(await play(messages, 'Two', files)).toEqual(['glob', 'read', 'bash', 'write'])
  const stopped = messages.slice(0, 2)
  const id = str(stopped[1]?.content[1]?.['id'])
  const result = { type: 'tool_result', tool_use_id: id, content: 'Stopped', is_error: true }
  stopped.push({ role: 'user', content: [result, { type: 'text', text: 'Again' }] })
  const next = await ask(stopped)
  expect(next.content[1]).toMatchObject({ name: 'glob' })
  expect(str(next.content[0]?.['text'])).toContain('Again')
})

test('I7: what it says follows from the conversation alone', async () => {
  vi.useFakeTimers({ toFake: ['Date'], now: 0 })
  const first: Message[] = []
  await play(first, 'Go 😀', files)
  vi.setSystemTime(1e12)
  const second: Message[] = []
  await play(second, 'Go 😀', files)
  vi.useRealTimers()
  expect(second).toEqual(first)
})

describe('streaming', () => {
  test('grows word by word to the whole text', async () => {
    const seen: string[] = []
    const { content } = await ask([{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }], ALL, (whole) =>
      seen.push(whole),
    )
    expect(seen.length).toBeGreaterThan(20)
    expect(seen.every((whole, n) => n === 0 || whole.startsWith(seen[n - 1] ?? ''))).toBe(true)
    expect(seen.at(-1)).toBe(content[0]?.['text'])
    expect(seen.at(-1)).toContain(REHEARSAL_LABEL)
  })

  test('ends at once when stopped', async () => {
    const stop = new AbortController()
    let seen = 0
    const asking = rehearsalModel({ pace_ms: 20 }).call(
      { system: '', messages: [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }], tools: ALL },
      { signal: stop.signal, onText: () => ++seen === 3 && stop.abort() },
    )
    await expect(asking).rejects.toMatchObject({ code: 'stopped' })
    expect(seen).toBe(3)
  })
})

test('A7: in plan mode it looks and proposes a plan, and carries it out when it may', async () => {
  const messages: Message[] = []
  const looking = ['read', 'glob', 'propose_plan'].map(spec)
  const called = await play(messages, 'Show me', files, looking)
  expect(called).toEqual(['glob', 'read', 'propose_plan'])
  expect(inputOf(messages, 'propose_plan')).toEqual({ plan: expect.stringContaining('baton-rehearsal.md') })
  // Up to the approval of the plan; from here on all tools are there.
  const { content } = await ask(messages.slice(0, -1))
  expect(content.at(-1)).toMatchObject({ name: 'bash' })
})

test('A8: it sums up when the agent asks for it, and goes on behind a summary with ids of its own', async () => {
  const messages: Message[] = []
  await play(messages, 'Show me', files)
  const request: Message = { role: 'user', content: [{ type: 'text', text: 'Summarise the conversation.' }] }
  const { content, stop_reason } = await ask([...messages, request])
  expect(stop_reason).toBe('end_turn')
  expect(str(content[0]?.['text'])).toContain('Show me')
  const ids = messages.flatMap((message) => message.content.flatMap((block) => str(block['id']) || []))
  const next = await ask([
    ...messages.slice(-3),
    { role: 'user', content: [{ type: 'text', text: 'Again' }] },
  ])
  expect(ids).not.toContain(next.content.at(-1)?.['id'])
})
