import * as v from 'valibot'
import { defineTool, Refusal } from './define.ts'
import { filesOf } from './session-files.ts'
import { boundedLine, RESULT_CHARS } from './text.ts'

const MATCHES = 200
const LINE_CHARS = 400
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
  async check({ pattern, path = '.' }, place) {
    if (pattern.includes('\n') || pattern.includes('\0')) {
      throw new Refusal('A pattern matches within one line: give it without line breaks and NUL.')
    }
    if (place) await filesOf(place).place(path, 'read')
  },
  async run(input, context) {
    const files = filesOf(context)
    const place = await files.place(input.path ?? '.', 'read')
    const { lines, cut } = await files.search(input, place, context.signal)
    return present(lines, cut)
  },
})

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
