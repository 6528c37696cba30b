/** What a call says in one line, and what of it is shown whole. Tools are the runner's; an unknown one shows its input. */
import type { Json } from '../guest.ts'
import { callDigest } from '../digest.ts'
import type { Approval, ToolItem } from './items.ts'

type Input = { [key: string]: Json }

/** The whole of a call, in the form that reads best. `rest`: every other field, so that no form hides any. */
export type CallBody =
  /** Also an address: what is fetched. */
  | { as: 'command'; command: string; rest: string[] }
  | { as: 'diff'; path: string; before: string; after: string; rest: string[] }
  | { as: 'plan'; plan: string }
  | { as: 'fields'; text: string }

function text(input: Input, ...names: string[]): string | undefined {
  for (const name of names) {
    const value = input[name]
    if (typeof value === 'string') return value
  }
  return undefined
}

/** What a call works on: a command, a path, a pattern. */
export function targetOf(name: string, input: Input): string {
  switch (name) {
    case 'bash':
      return (text(input, 'command') ?? '').trim().split('\n', 1)[0] ?? ''
    case 'glob':
    case 'grep':
      return [text(input, 'pattern'), text(input, 'path')].filter(Boolean).join(' in ')
    case 'propose_plan':
      return 'a plan'
    case 'job':
      return text(input, 'id') ?? 'background jobs'
    default:
      return text(input, 'path') ?? text(input, 'command', 'pattern', 'url', 'query') ?? ''
  }
}

type Verb = [asked: string, running: string, done: string]

const VERBS: Record<string, Verb> = {
  bash: ['Run', 'Running', 'Ran'],
  read: ['Read', 'Reading', 'Read'],
  write: ['Write', 'Writing', 'Wrote'],
  edit: ['Edit', 'Editing', 'Edited'],
  glob: ['Find', 'Finding', 'Found'],
  grep: ['Search', 'Searching', 'Searched'],
  propose_plan: ['Propose', 'Proposing', 'Proposed'],
  fetch: ['Fetch', 'Fetching', 'Fetched'],
  job: ['Look at', 'Looking at', 'Looked at'],
}
const STARTS: Verb = ['Start', 'Starting', 'Started']
const STOPS: Verb = ['Stop', 'Stopping', 'Stopped']

/** `input`: what some tools do depends on it, a job say. */
export function verbOf(name: string, state: ToolItem['state'], input: Input = {}): string {
  const [asked, running, done] = verb(name, input)
  if (state === 'running') return running
  return state === 'ok' || state === 'error' ? done : asked
}

function verb(name: string, { background, action }: Input): Verb {
  if (name === 'bash' && background === true) return STARTS
  if (name === 'job' && action === 'stop') return STOPS
  return VERBS[name] ?? [name, name, name]
}

/** The question that an approval asks. */
export function questionOf(name: string): string {
  switch (name) {
    case 'bash':
      return 'Run this command?'
    case 'edit':
      return 'Make this edit?'
    case 'write':
      return 'Write this file?'
    case 'fetch':
      return 'Fetch from this address?'
    case 'propose_plan':
      return 'Go ahead with this plan?'
    default:
      return `Allow ${name}?`
  }
}

export function callBody(name: string, input: Input): CallBody {
  // Values as JSON, so that no line break in one can pass for another field.
  const rest = (...shown: string[]): string[] =>
    Object.entries(input).flatMap(([key, value]) =>
      shown.includes(key) ? [] : [`${key}: ${JSON.stringify(value)}`],
    )
  const { command, path, old_string, new_string, content, plan } = input
  // With any other field it shows as fields do, whole.
  if (name === 'propose_plan' && typeof plan === 'string' && rest('plan').length === 0)
    return { as: 'plan', plan }
  if (name === 'bash' && typeof command === 'string') {
    if (input['background'] !== true) return { as: 'command', command, rest: rest('command') }
    const others = ['it goes on in the background, as a job', ...rest('command', 'background')]
    return { as: 'command', command, rest: others }
  }
  const { url } = input
  if (name === 'fetch' && typeof url === 'string' && !/\s/.test(url))
    return { as: 'command', command: url, rest: rest('url') }
  if (typeof path === 'string') {
    if (name === 'edit' && typeof old_string === 'string' && typeof new_string === 'string') {
      const others = rest('path', 'old_string', 'new_string')
      return { as: 'diff', path, before: old_string, after: new_string, rest: others }
    }
    if (name === 'write' && typeof content === 'string') {
      const open_end = content === '' || content.endsWith('\n') ? [] : ['no line break at the end']
      const others = [...rest('path', 'content'), ...open_end]
      return { as: 'diff', path, before: '', after: content.replace(/\n$/, ''), rest: others }
    }
  }
  return { as: 'fields', text: rest().join('\n') }
}

/**
 * Makes visible what could disguise a call: controls that reorder or hide text. What a person approves is what they see.
 */
export function revealed(text: string): string {
  return text.replace(DISGUISES, (char) => {
    const code = char.codePointAt(0) ?? 0
    return `⟨U+${code.toString(16).toUpperCase().padStart(4, '0')}⟩`
  })
}

// Controls, bidirectional overrides and isolates, zero-width characters; not tab and newline.
const DISGUISES = /(?![\t\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu

/** Is the call that is shown the call that the digest names? Only then may it be approved (I10). */
export function isTrueCall(approval: Approval): boolean {
  return callDigest(approval.name, approval.input) === approval.digest
}
