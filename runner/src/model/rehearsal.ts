/**
 * A stand-in for a model, used when no API key is set: it plays one small task with the real tools, so that prompt, approval
 * and handoff can be seen. What it says depends only on the conversation (no clock, no chance), so a session that
 * moves to another runner goes on exactly as it would have.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { BatonError } from '@baton/shared/errors.ts'
import type { Json, LlmResult, Message } from '@baton/shared/guest.ts'
import type { Model, ModelRequest } from './model.ts'

export const REHEARSAL_LABEL =
  'Rehearsal model: no API key is set, this is a scripted demonstration. Set ANTHROPIC_API_KEY to work with a real one.'
const FILE = 'baton-rehearsal.md'
const COMMAND = 'git status --short | head'
const PACE_MS = 40
/** The agent wants the conversation to be compacted. */
const SUMMARY = /^Summari[sz]e/
const CHUNK = /\S+\s*/g

type Block = Message['content'][number]

/** `pace_ms`: between two words. */
export function rehearsalModel({ pace_ms = PACE_MS } = {}): Model {
  return {
    name: 'rehearsal',
    models: ['rehearsal'],
    async call(request, { signal, onText }) {
      const turn = nextTurn(request)
      let said = ''
      for (const [chunk] of turn.text.matchAll(CHUNK)) {
        try {
          await delay(pace_ms, undefined, { signal })
        } catch {
          throw new BatonError('stopped')
        }
        said += chunk
        onText(said)
      }
      return resultOf(turn, nextId(request.messages))
    },
  }
}

interface Turn {
  text: string
  call?: { name: string; input: { [key: string]: Json } }
}

/** What was done since the last prompt: the call and what came of it. */
interface Done {
  text: string
  is_error: boolean
}

function nextTurn({ messages, tools }: ModelRequest): Turn {
  const start = messages.findLastIndex((message) => message.role === 'user' && textOf(message.content) !== '')
  const prompt = textOf(messages[start]?.content ?? []).trim()
  const done = doneSince(messages.slice(start + 1))
  if (SUMMARY.test(prompt)) return { text: `So far the rehearsal model was asked: ${asked(messages)}` }
  const may = (name: string): boolean => !done.has(name) && tools.some((tool) => tool.name === name)

  if (may('glob')) {
    const text = `${REHEARSAL_LABEL}\n\nYou asked: “${short(prompt)}”. First I look at what is here.`
    return { text, call: { name: 'glob', input: { pattern: '*' } } }
  }
  const files = listed(done.get('glob'))
  const readme =
    files.find((file) => /^readme/i.test(file)) ?? files.find((file) => /\.(md|json|ts|js|txt)$/.test(file))
  if (readme && may('read')) {
    const text = `There ${files.length === 1 ? 'is one file' : `are ${files.length} files`} at the top. I read ${readme}.`
    return { text, call: { name: 'read', input: { path: readme, limit: 20 } } }
  }
  if (may('bash')) {
    const text =
      'Next I want to see what is not committed yet. This runs a command, so it needs your approval.'
    return { text, call: { name: 'bash', input: { command: COMMAND } } }
  }
  if (may('propose_plan')) {
    const text = 'In plan mode I only look. This is what I would do; with your approval I begin.'
    const plan = `1. See what is not committed yet: \`${COMMAND}\`\n2. Leave a note in \`${FILE}\``
    return { text, call: { name: 'propose_plan', input: { plan } } }
  }
  const status = done.get('bash')
  if (may('write')) {
    const text = status?.is_error
      ? 'The command did not run, so I go on without it. I would like to leave a note of this rehearsal.'
      : 'Thank you. Now I would like to leave a note of this rehearsal in a file.'
    const content = noteOf(prompt, files, readme, status)
    return { text, call: { name: 'write', input: { path: FILE, content } } }
  }
  return { text: summary(status, done.get('write')) }
}

function summary(status: Done | undefined, written: Done | undefined): string {
  const lines = ['That was the whole rehearsal:', '']
  if (status)
    lines.push(`- \`${COMMAND}\`: ${status.is_error ? 'declined or failed' : 'ran after your approval'}`)
  if (written) lines.push(`- \`${FILE}\`: ${written.is_error ? 'not written' : 'written'}`)
  lines.push('', 'Each step could have been on another machine: try the move button while an approval waits.')
  return lines.join('\n')
}

function noteOf(
  prompt: string,
  files: string[],
  readme: string | undefined,
  status: Done | undefined,
): string {
  const seen =
    status && !status.is_error ? `The command \`${COMMAND}\` ran.` : `The command \`${COMMAND}\` did not run.`
  return `# Rehearsal

Written by Baton's rehearsal model, a scripted demonstration. Delete it freely.

- Asked: ${short(prompt)}
- Files at the top: ${files.length}${readme ? `, of which ${readme} was read` : ''}
- ${seen}
`
}

function asked(messages: Message[]): string {
  const prompts = messages.filter(({ role }) => role === 'user').map(({ content }) => textOf(content))
  return prompts
    .filter((prompt) => prompt !== '' && !SUMMARY.test(prompt))
    .map(short)
    .join('; ')
}

/** Tool calls of these messages by name, with their results. */
function doneSince(messages: Message[]): Map<string, Done> {
  const names = new Map<string, string>()
  const done = new Map<string, Done>()
  for (const block of messages.flatMap((message) => message.content)) {
    if (block.type === 'tool_use') names.set(str(block['id']), str(block['name']))
    const name = block.type === 'tool_result' ? names.get(str(block['tool_use_id'])) : undefined
    if (name) done.set(name, { text: contentText(block['content']), is_error: block['is_error'] === true })
  }
  return done
}

function listed(glob: Done | undefined): string[] {
  if (!glob || glob.is_error) return []
  return glob.text
    .split('\n')
    .filter((line) => line !== '' && !line.includes('/') && !/^(…|No file)/.test(line))
}

function contentText(content: Json | undefined): string {
  if (typeof content === 'string') return content
  return Array.isArray(content) ? textOf(content as Block[]) : ''
}

function textOf(content: Message['content']): string {
  return content
    .filter((block) => block.type === 'text')
    .map((block) => str(block['text']))
    .join('\n')
}

function str(value: Json | undefined): string {
  return typeof value === 'string' ? value : ''
}

function short(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ')
  return line.length > 80 ? `${line.slice(0, 79).replace(/[\ud800-\udbff]$/, '')}…` : line
}

/** Unique in this conversation, also when its beginning was summed up. */
function nextId(messages: Message[]): string {
  const ids = JSON.stringify(messages).matchAll(/"toolu_rehearsal_(\d+)"/g)
  return `toolu_rehearsal_${Math.max(0, ...Array.from(ids, ([, number]) => Number(number))) + 1}`
}

function resultOf({ text, call }: Turn, id: string): LlmResult {
  const content: Block[] = [{ type: 'text', text }]
  if (call) content.push({ type: 'tool_use', id, ...call })
  return {
    content,
    stop_reason: call ? 'tool_use' : 'end_turn',
    model: 'rehearsal',
    usage: { input_tokens: 0, output_tokens: 0, cache_read_tokens: 0, cache_write_tokens: 0 },
    cost_usd: 0,
  }
}
