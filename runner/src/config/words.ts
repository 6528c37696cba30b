/** What is wrong with a config, in words for the person who wrote it. */
import { execFile } from 'node:child_process'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import * as v from 'valibot'
import type { Rule } from '@baton/shared/journal.ts'

const CHECK_MS = 10_000

/** `file:line: what happened`, as far as it can be known, of an import that failed. */
export async function importWords(file: string, error: unknown): Promise<string> {
  if (!(error instanceof Error)) return `${file}: ${String(error)}`
  const stack = error.stack ?? ''
  const place = placeIn(stack) ?? (error instanceof SyntaxError ? await placeBySyntax(file) : undefined)
  const [, name] = /^Cannot find package '([^']+)'/.exec(error.message) ?? []
  const message =
    name === undefined
      ? error.message
      : `the package ${name} is not installed. Run in ${dirname(file)}: npm install ${name}`
  return `${place ?? file}: ${message}`
}

/** Ahead of the code in a syntax error, else in the first frame that is of the config or what it imports. */
function placeIn(stack: string): string | undefined {
  const [, ahead, line] = /^((?:file:)?\/[^\n?]*)(?:\?[^\n:]*)?:(\d+)\n/.exec(stack) ?? []
  if (ahead !== undefined) return `${pathOf(ahead)}:${line}`
  const [, frame, row] = /(file:[^\s?()]+)\?changed=[^\s:]*:(\d+):\d+/.exec(stack) ?? []
  return frame === undefined ? undefined : `${pathOf(frame)}:${row}`
}

const pathOf = (address: string): string => (address.startsWith('file:') ? fileURLToPath(address) : address)

/** A module that is plain JavaScript fails without a place. Parsed only: nothing of the file runs. */
async function placeBySyntax(file: string): Promise<string | undefined> {
  const how = { env: {}, timeout: CHECK_MS }
  const said = await promisify(execFile)(process.execPath, ['--check', file], how).then(
    () => '',
    (failure: unknown) => (failure instanceof Error && 'stderr' in failure ? String(failure.stderr) : ''),
  )
  return placeIn(said)
}

/** What does not fit the schema. */
export function issueWords(issue: v.BaseIssue<unknown>, above = ''): string {
  const path = [above, v.getDotPath(issue) ?? ''].filter((part) => part !== '').join('.')
  if (path === '') {
    return issue.received === 'undefined'
      ? 'there is no default export. Write: export default defineConfig({ … })'
      : `the default export must be an object, not ${issue.received}`
  }
  // Of a choice, what is wrong deeper down says more than that none fits.
  const deeper = (issue.issues ?? []).filter(({ path: at }) => at !== undefined)
  if (isOwn(issue)) return `${path}: ${issue.message}`
  if (deeper.length > 0) return deeper.map((one) => issueWords(one, path)).join('; ')
  if (issue.expected === 'never') return `${path}: there is no such setting`
  if (issue.type === 'min_length') return `${path}: must not be empty`
  if (issue.received === 'undefined') return `${path}: is missing`
  return `${path}: must be ${wanted(issue.expected ?? 'something else')}, not ${issue.received}`
}

/** The message is ours, not the library's. */
const isOwn = ({ message }: v.BaseIssue<unknown>): boolean => !message.startsWith('Invalid ')

const KINDS: Record<string, string> = {
  Object: 'an object',
  Array: 'a list',
  string: 'a text',
  boolean: 'true or false',
}

function wanted(expected: string): string {
  const choices = expected.replace(/^\((.*)\)$/, '$1').split(' | ')
  return choices.map((choice) => KINDS[choice] ?? choice).join(' or ')
}

/** Of rules that name no tool that there is; empty: all do. Tools of MCP servers are known only when these run. */
export function ruleFaults(rules: readonly Rule[], tools: ReadonlySet<string>): string[] {
  return rules.flatMap(({ tool }, i) =>
    tools.has(tool) || tool.startsWith('mcp__')
      ? []
      : [
          `rules.${i}.tool: there is no tool "${tool}". There are: ${[...tools].join(', ')}, mcp__SERVER__TOOL`,
        ],
  )
}
