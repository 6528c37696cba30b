import { realpath, stat } from 'node:fs/promises'
import { relative } from 'node:path'
import * as v from 'valibot'
import { GitProgram, type GitResult } from '../workspace/git-program.ts'
import { withOwnExcludes } from './excludes.ts'
import { defineTool, Refusal } from './define.ts'
import { innerPath, type InnerPath } from './paths.ts'
import { boundedLine, RESULT_CHARS } from './text.ts'

const MATCHES = 200
const LINE_CHARS = 400
const OUTPUT_BYTES = 4 << 20
const TIMEOUT_MS = 30_000
const CONTEXT_MAX = 10

export const grep = defineTool({
  name: 'grep',
  description: `Searches the text files of the workspace for a regular expression (Perl style) and returns matching lines as path:line:text; at most ${MATCHES}. Ignored files (.gitignore) and binary files are not searched.
Narrow it with path and glob. Set files_only to get only the paths of files with a match. To find a text with special characters as it is, set literal.`,
  replay: 'safe',
  access: 'read',
  input: v.strictObject({
    pattern: v.pipe(
      v.string(),
      v.minLength(1),
      v.description('Regular expression; matches within one line.'),
    ),
    path: v.optional(v.pipe(v.string(), v.description('File or folder to search, relative to the root.'))),
    glob: v.optional(
      v.pipe(v.string(), v.minLength(1), v.description('Only files that match, e.g. *.ts or src/**/*.md.')),
    ),
    ignore_case: v.optional(v.boolean()),
    literal: v.optional(v.pipe(v.boolean(), v.description('Take the pattern as plain text.'))),
    files_only: v.optional(v.boolean()),
    context: v.optional(
      v.pipe(
        v.number(),
        v.integer(),
        v.minValue(0),
        v.maxValue(CONTEXT_MAX),
        v.description('Lines to show before and after each match.'),
      ),
    ),
  }),
  async run(input, context) {
    if (input.pattern.includes('\n') || input.pattern.includes('\0')) {
      throw new Refusal('A pattern matches within one line: give it without line breaks and NUL.')
    }
    const place = await innerPath(context.root, input.path ?? '.', 'read')
    const result = await search(input, place, context.root, context.signal)
    const lines = result.stdout.toString('utf8').split('\n')
    if (result.cut) lines.pop()
    if (lines.at(-1) === '') lines.pop()
    return present(lines, result.cut)
  },
})

interface Search {
  pattern: string
  glob?: string | undefined
  ignore_case?: boolean | undefined
  literal?: boolean | undefined
  files_only?: boolean | undefined
  context?: number | undefined
}

async function search(
  input: Search,
  place: InnerPath,
  root: string,
  signal: AbortSignal,
): Promise<GitResult> {
  const info = await stat(place.real).catch(() => undefined)
  if (!info) throw new Refusal(`There is no file or folder ${place.shown}.`)
  const glob = input.glob?.replace(/^(\.?\/)+/, '')
  const top = await realpath(root)
  const where = relative(top, place.real)
  const specs: string[] = []
  if (glob === undefined || !info.isDirectory()) {
    if (where !== '') specs.push(`:(literal)${where}`)
  } else {
    const folder = where === '' ? '' : `${where.replaceAll(/[\\*?[\]]/g, '\\$&')}/`
    for (const part of alternatives(glob)) {
      specs.push(`:(glob)${folder}${part.includes('/') ? part : `**/${part}`}`)
    }
  }
  const flags = ['-n', '-I', '--no-color', '--untracked', '--exclude-standard']
  if (input.ignore_case) flags.push('-i')
  if (input.files_only) flags.push('-l')
  if (input.context) flags.push(`-C${input.context}`)
  const options = { cwd: top, signal, timeout_ms: TIMEOUT_MS, max_bytes: OUTPUT_BYTES }
  const own = await withOwnExcludes(top)
  const run = (kind: string, extra: string[] = []): Promise<GitResult> =>
    new GitProgram().run(
      [...own, 'grep', ...flags, ...extra, kind, '-e', input.pattern, '--', ...specs],
      options,
    )

  const kind = input.literal ? '-F' : '-P'
  let result = await run(kind)
  if (/not a git repository/i.test(result.stderr)) {
    flags.splice(flags.indexOf('--untracked'), 1)
    result = await run(kind, ['--no-index'])
  }
  if (/not compiled with USE_LIBPCRE|without.*pcre/i.test(result.stderr)) result = await run('-E')
  // 1: no match. Beyond that git names the fault of the pattern.
  if (result.code > 1 && !result.cut) {
    const words =
      result.stderr
        .trim()
        .split('\n')
        .at(-1)
        ?.replace(/^fatal: /, '') ?? ''
    throw new Refusal(`The search failed: ${words}`)
  }
  return result
}

function present(
  lines: string[],
  cut: boolean,
): { text: string; is_error: boolean; detail: { lines: number; more: boolean } } {
  const shown: string[] = []
  let chars = 0
  for (const line of lines) {
    if (shown.length === MATCHES || chars > RESULT_CHARS) break
    const text = boundedLine(line, LINE_CHARS)
    shown.push(text)
    chars += text.length + 1
  }
  const more = cut || shown.length < lines.length
  if (more) shown.push(`… more than ${shown.length} lines: use a narrower pattern, path or glob.`)
  return {
    text: shown.length > 0 ? shown.join('\n') : 'No match.',
    is_error: false,
    detail: { lines: more ? shown.length - 1 : shown.length, more },
  }
}

/** Git's patterns know no braces: `*.{ts,tsx}` is two of them. */
function alternatives(glob: string): string[] {
  const braces = /^(.*?)\{([^{}]*)\}(.*)$/s.exec(glob)
  if (!braces) return [glob]
  const [, before = '', choices = '', after = ''] = braces
  return choices.split(',').flatMap((choice) => alternatives(before + choice + after))
}
