/**
 * What the Anthropic Messages API demands of a request, as far as an agent can get it wrong: shapes, roles, the pairing of
 * tool calls with their results (F51), well-formed text (F50). A request that breaks a rule gets the API's own kind of 400.
 */
import * as v from 'valibot'
import type { Json } from '@baton/shared/guest.ts'
import { brokenThinking } from './model-thinking.ts'

const jsonObject = v.record(
  v.string(),
  v.custom<Json>((value) => value !== undefined),
)
const cache = { cache_control: v.optional(v.nullable(v.looseObject({ type: v.literal('ephemeral') }))) }
const text = v.strictObject({
  type: v.literal('text'),
  text: v.string(),
  citations: v.optional(v.nullable(v.array(jsonObject))),
  ...cache,
})
const image = v.strictObject({
  type: v.literal('image'),
  source: v.variant('type', [
    v.strictObject({
      type: v.literal('base64'),
      media_type: v.picklist(['image/png', 'image/jpeg', 'image/gif', 'image/webp']),
      data: v.pipe(v.string(), v.minLength(4), v.base64()),
    }),
    v.strictObject({ type: v.literal('url'), url: v.pipe(v.string(), v.url()) }),
  ]),
  ...cache,
})
const toolUse = v.strictObject({
  type: v.literal('tool_use'),
  id: v.pipe(v.string(), v.regex(/^[a-zA-Z0-9_-]+$/)),
  name: v.pipe(v.string(), v.regex(/^[a-zA-Z0-9_-]{1,128}$/)),
  input: jsonObject,
  caller: v.optional(jsonObject),
  ...cache,
})
const toolResult = v.strictObject({
  type: v.literal('tool_result'),
  tool_use_id: v.string(),
  content: v.optional(v.union([v.string(), v.array(v.variant('type', [text, image]))])),
  is_error: v.optional(v.boolean()),
  ...cache,
})
// Blocks of thinking can't be marked for the cache.
const thinking = v.strictObject({ type: v.literal('thinking'), thinking: v.string(), signature: v.string() })
const redacted = v.strictObject({ type: v.literal('redacted_thinking'), data: v.string() })
const serverToolUse = v.looseObject({
  type: v.literal('server_tool_use'),
  id: v.string(),
  name: v.string(),
  input: jsonObject,
})
const block = v.variant('type', [text, image, toolUse, toolResult, thinking, redacted, serverToolUse])

export const MessagesRequest = v.looseObject({
  model: v.pipe(v.string(), v.minLength(1)),
  max_tokens: v.pipe(v.number(), v.integer(), v.minValue(1)),
  messages: v.pipe(
    v.array(
      v.looseObject({
        role: v.picklist(['user', 'assistant']),
        content: v.union([v.string(), v.array(block)]),
      }),
    ),
    v.minLength(1),
  ),
  system: v.optional(v.union([v.string(), v.array(text)])),
  stream: v.optional(v.boolean()),
  // Newer models take no other kind.
  thinking: v.optional(
    v.strictObject({
      type: v.literal('adaptive'),
      display: v.optional(v.picklist(['summarized', 'omitted'])),
    }),
  ),
  output_config: v.optional(
    v.strictObject({ effort: v.optional(v.picklist(['low', 'medium', 'high', 'xhigh', 'max'])) }),
  ),
  tools: v.optional(
    v.array(
      v.looseObject({
        name: v.pipe(v.string(), v.regex(/^[a-zA-Z0-9_-]{1,128}$/)),
        description: v.optional(v.string()),
        input_schema: v.looseObject({ type: v.literal('object') }),
        ...cache,
      }),
    ),
  ),
})
export type MessagesRequest = v.InferOutput<typeof MessagesRequest>
type Block = v.InferOutput<typeof block>
type Message = { role: 'user' | 'assistant'; content: Block[] }

const CACHE_MARKS_MAX = 4

/** Parses a body and checks every rule. `broken` says in the API's manner which rule does not hold. */
export function readRequest(body: Uint8Array): { request: MessagesRequest } | { broken: string } {
  let json: Json
  try {
    json = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body)) as Json
  } catch (error) {
    return {
      broken: `The request body is not valid JSON: ${error instanceof Error ? error.message : String(error)}`,
    }
  }
  if (!wellFormed(json)) return { broken: 'The request body is not valid JSON: no low surrogate in string' }
  const parsed = v.safeParse(MessagesRequest, json)
  if (!parsed.success) {
    const [issue] = parsed.issues
    return { broken: `${v.getDotPath(issue) ?? 'body'}: ${issue.message}` }
  }
  const request = parsed.output
  const broken =
    brokenTools(request) ??
    brokenText(request) ??
    brokenPairing(request) ??
    brokenThinking(request) ??
    brokenCache(JSON.stringify(request))
  return broken === undefined ? { request } : { broken }
}

function wellFormed(value: Json): boolean {
  if (typeof value === 'string') return value.isWellFormed()
  if (value === null || typeof value !== 'object') return true
  return Object.entries(value).every(([key, item]) => key.isWellFormed() && wellFormed(item))
}

function blocksOf(content: string | Block[]): Block[] {
  return typeof content === 'string' ? [{ type: 'text', text: content }] : content
}

function brokenTools({ tools, messages }: MessagesRequest): string | undefined {
  const names = (tools ?? []).map((tool) => tool.name)
  if (new Set(names).size !== names.length) return 'tools: Tool names must be unique.'
  const used = messages.some(({ content }) =>
    blocksOf(content).some(({ type }) => type === 'tool_use' || type === 'tool_result'),
  )
  if (used && names.length === 0)
    return 'Requests which include `tool_use` or `tool_result` blocks must define tools.'
  return undefined
}

function brokenText({ messages, system }: MessagesRequest): string | undefined {
  if (Array.isArray(system) && system.some(({ text: words }) => words === '')) {
    return 'system: text content blocks must be non-empty'
  }
  for (const [index, { content }] of messages.entries()) {
    const blocks = blocksOf(content)
    if (blocks.length === 0) return `messages.${index}: all messages must have non-empty content`
    for (const item of blocks) {
      if (item.type !== 'text') continue
      if (item.text === '') return `messages.${index}: text content blocks must be non-empty`
      if (item.text.trim() === '')
        return `messages.${index}: text content blocks must contain non-whitespace text`
    }
  }
  return undefined
}

/** Roles, and each call answered right behind it, once. */
function brokenPairing(request: MessagesRequest): string | undefined {
  const turns = merged(request)
  if (turns[0]?.role !== 'user') return 'messages: first message must use the "user" role'
  if (turns.at(-1)?.role !== 'user' && !isPaused(turns))
    return 'messages: the conversation must end with a user message'

  const seen = new Set<string>()
  let open: string[] = []
  for (const [index, { role, content }] of turns.entries()) {
    if (role === 'assistant') {
      if (content.some(({ type }) => type === 'tool_result')) {
        return `messages.${index}: \`tool_result\` blocks can only be in \`user\` messages`
      }
      open = content.flatMap((item) => (item.type === 'tool_use' ? [item.id] : []))
      for (const id of open) {
        if (seen.has(id)) return `messages.${index}: \`tool_use\` ids must be unique`
        seen.add(id)
      }
      continue
    }
    if (content.some(({ type }) => type === 'tool_use')) {
      return `messages.${index}: \`tool_use\` blocks can only be in \`assistant\` messages`
    }
    const answered = content.flatMap((item) => (item.type === 'tool_result' ? [item.tool_use_id] : []))
    const missing = open.filter((id) => !answered.includes(id))
    if (missing.length > 0) {
      return (
        `messages.${index - 1}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ` +
        `${missing.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`
      )
    }
    const surplus = answered.filter((id, at) => !open.includes(id) || answered.indexOf(id) !== at)
    if (surplus.length > 0) {
      return `messages.${index}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${surplus.join(', ')}`
    }
    const firstOther = content.findIndex(({ type }) => type !== 'tool_result')
    if (firstOther !== -1 && content.findLastIndex(({ type }) => type === 'tool_result') > firstOther) {
      return `messages.${index}: \`tool_result\` blocks must come before other content`
    }
    open = []
  }
  return undefined
}

/** The service was in the middle of calls of its own, and goes on from there. */
function isPaused(turns: Message[]): boolean {
  return turns.at(-1)?.content.at(-1)?.type === 'server_tool_use'
}

/** The API reads neighbours of one role as one message. */
function merged({ messages }: MessagesRequest): Message[] {
  const turns: Message[] = []
  for (const { role, content } of messages) {
    const last = turns.at(-1)
    if (last?.role === role) last.content.push(...blocksOf(content))
    else turns.push({ role, content: [...blocksOf(content)] })
  }
  return turns
}

function brokenCache(body: string): string | undefined {
  const marks = body.split('"cache_control":{').length - 1
  if (marks <= CACHE_MARKS_MAX) return undefined
  return `A maximum of ${CACHE_MARKS_MAX} blocks with cache_control may be provided. Found ${marks}.`
}
