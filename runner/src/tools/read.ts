import * as v from 'valibot'
import { defineTool, Refusal } from './define.ts'
import { noteFile, textOf } from './files.ts'
import { pictureOf, pictureType } from './pictures.ts'
import { filesOf } from './session-files.ts'
import { boundedLine, RESULT_CHARS } from './text.ts'
import type { Picture, ToolAnswer } from './tool.ts'

const LINES = 2_000

const position = v.pipe(v.number(), v.integer(), v.minValue(1))

export const read = defineTool({
  name: 'read',
  description: `Reads a file of the workspace: text, or a picture (PNG, JPEG, GIF, WebP), which you then see. Each line of a text is preceded by its number and a tab; these are not part of the file.
Returns up to ${LINES} lines; use offset and limit for more of a long file. Very long lines are cut.
Folders are listed with glob. Other binary files are refused.`,
  replay: 'safe',
  access: 'read',
  input: v.strictObject({
    path: v.pipe(v.string(), v.minLength(1), v.description('File, relative to the root of the workspace.')),
    offset: v.optional(v.pipe(position, v.description('First line to return, counted from 1. Default 1.'))),
    limit: v.optional(v.pipe(position, v.description(`How many lines. Default and at most ${LINES}.`))),
  }),
  async check({ path }, place) {
    if (place) await filesOf(place).place(path, 'read')
  },
  async run({ path, offset = 1, limit = LINES }, context) {
    const files = filesOf(context)
    const place = await files.place(path, 'read')
    const bytes = await files.read(place)
    if (!bytes) throw new Refusal(`There is no file ${place.shown}. Find it with glob.`)
    const media_type = pictureType(bytes)
    if (media_type) return pictureAnswer(bytes, media_type, place.shown)
    const { text } = textOf(bytes, place, { exact: false })
    noteFile(context, place, bytes)
    if (text === '') return { text: '(the file is empty)', is_error: false, detail: { lines: 0 } }
    const lines = text.split(/\r?\n/)
    if (lines.at(-1) === '') lines.pop()
    if (offset > lines.length) {
      throw new Refusal(`${place.shown} has ${lines.length} lines; offset ${offset} is behind its end.`)
    }
    const shown: string[] = []
    let chars = 0
    for (const line of lines.slice(offset - 1, offset - 1 + Math.min(limit, LINES))) {
      const numbered = `${String(offset + shown.length).padStart(6)}\t${boundedLine(line)}`
      if (shown.length > 0 && chars + numbered.length > RESULT_CHARS) break
      shown.push(numbered)
      chars += numbered.length + 1
    }
    const next = offset + shown.length
    if (next <= lines.length) {
      shown.push(`… ${lines.length - next + 1} of ${lines.length} lines follow: read on with offset ${next}.`)
    }
    return {
      text: shown.join('\n'),
      is_error: false,
      detail: { lines: lines.length, from: offset, to: next - 1 },
    }
  },
})

function pictureAnswer(bytes: Buffer, media_type: Picture['media_type'], shown: string): ToolAnswer {
  const { width, height } = pictureOf(bytes, media_type, shown)
  return {
    text: `${shown}: ${media_type}, ${width} × ${height} pixels, ${bytes.length} bytes.`,
    is_error: false,
    images: [{ media_type, bytes }],
    detail: { width, height, bytes: bytes.length },
  }
}
