import * as v from 'valibot'
import { changeFile, type Made } from './change-file.ts'
import { defineTool, Refusal } from './define.ts'
import { diffDetail } from './diff.ts'
import { textOf } from './files.ts'
import type { InnerPath } from './paths.ts'
import { filesOf } from './session-files.ts'
import { encode } from './write.ts'

const BOM = '\ufeff'

export const edit = defineTool({
  name: 'edit',
  description: `Replaces text in a file of the workspace. old_string must stand in the file exactly, with its indentation, and only once: take in as many lines around the change as make it unique, or set replace_all.
Do not include the line numbers that read prints. Line endings and a byte order mark of the file are kept.
To make a new file use write.`,
  replay: 'safe',
  access: 'edit',
  input: v.strictObject({
    path: v.pipe(v.string(), v.minLength(1), v.description('File, relative to the root of the workspace.')),
    old_string: v.pipe(v.string(), v.minLength(1), v.description('The exact text to replace.')),
    new_string: v.pipe(v.string(), v.description('What to put in its place. Empty: remove it.')),
    replace_all: v.optional(v.pipe(v.boolean(), v.description('Replace every occurrence. Default false.'))),
  }),
  async check({ path, old_string, new_string }, place) {
    if (old_string === new_string)
      throw new Refusal('old_string and new_string are equal: nothing to change.')
    encode(new_string, 'new_string')
    if (place) await filesOf(place).place(path, 'write')
  },
  async run(input, context) {
    const files = filesOf(context)
    return files.change(async () => {
      const place = await files.place(input.path, 'write')
      return changeFile(place, files, context, (found) => replaceIn(found, place, input))
    })
  },
})

interface Change {
  old_string: string
  new_string: string
  replace_all?: boolean | undefined
}

function replaceIn(
  found: Buffer | undefined,
  place: InnerPath,
  { old_string, new_string, replace_all = false }: Change,
): Made {
  if (!found) throw new Refusal(`There is no file ${place.shown}. Find it with glob.`)
  const { text: before, bom } = textOf(found, place, { exact: true })
  const [old, fresh] = asInFile(before, old_string, new_string)
  const count = occurrences(before, old)
  if (count === 0) {
    // The model made it before, and does not know it.
    if (fresh !== '' && !fresh.includes(old) && occurrences(before, fresh) === 1) {
      const text = `${place.shown} already has new_string: nothing to change.`
      return { answer: { text, is_error: false } }
    }
    throw new Refusal(`old_string does not stand in ${place.shown}. ${hint(before, old)}`, 'not-found')
  }
  if (count > 1 && !replace_all) {
    const todo = 'Take in more of the lines around it, or set replace_all.'
    throw new Refusal(`old_string stands ${count} times in ${place.shown}. ${todo}`, 'not-unique')
  }
  const after = before.replaceAll(old, () => fresh)
  const text = `Edited ${place.shown}: ${count === 1 ? 'one replacement' : `${count} replacements`}.`
  const detail = { replacements: count, ...diffDetail(place.shown, before, after) }
  return { bytes: encode(bom ? BOM + after : after, 'new_string'), answer: { text, is_error: false, detail } }
}

/** A model writes \n; a file with CRLF is meant all the same, and keeps its line endings. */
function asInFile(text: string, old: string, fresh: string): [old: string, fresh: string] {
  const toCrlf = (part: string): string => part.replaceAll(/\r?\n/g, '\r\n')
  if (!text.includes('\r\n')) return [old, fresh]
  if (!text.includes(old)) return [toCrlf(old), toCrlf(fresh)]
  // A single line matches either way; what is put in its place takes the ending that the file uses.
  return /(^|[^\r])\n/.test(text) ? [old, fresh] : [old, toCrlf(fresh)]
}

function occurrences(text: string, part: string): number {
  return text.split(part).length - 1
}

function hint(text: string, old: string): string {
  const squeeze = (part: string): string => part.replaceAll(/\s+/g, ' ').trim()
  if (squeeze(old) !== '' && squeeze(text).includes(squeeze(old))) {
    return 'It does with other white space: read that part again and copy its indentation and line breaks.'
  }
  if (/^\s*\d+\t/.test(old)) return 'Leave out the line numbers that read prints.'
  return 'Read the file again: it may have changed.'
}
