import * as v from 'valibot'
import { sha256Hex } from '@baton/shared/bytes.ts'
import { changeFile, type Made } from './change-file.ts'
import { defineTool, Refusal } from './define.ts'
import { diffDetail } from './diff.ts'
import type { InnerPath } from './paths.ts'
import { filesOf } from './session-files.ts'
import type { ToolContext } from './tool.ts'

export const write = defineTool({
  name: 'write',
  description: `Writes a file of the workspace, replacing it as a whole if it exists. Missing folders are made. The mode of an existing file stays.
For a change in an existing file use edit: it sends only what changes.
A file that changed since you read it is not replaced; read it again first.`,
  replay: 'safe',
  access: 'edit',
  input: v.strictObject({
    path: v.pipe(v.string(), v.minLength(1), v.description('File, relative to the root of the workspace.')),
    content: v.pipe(v.string(), v.description('The whole new content.')),
  }),
  async check({ path, content }, place) {
    encode(content, 'content')
    if (place) await filesOf(place).place(path, 'write')
  },
  async run({ path, content }, context) {
    const files = filesOf(context)
    const place = await files.place(path, 'write')
    const bytes = encode(content, 'content')
    return files.change(() =>
      changeFile(place, files, context, (found, again) => {
        const known = again && found ? sha256Hex(found) : context.readFiles.get(place.real)
        assertRead(found, bytes, place, known, context)
        return { bytes, answer: answerOf(found, content, bytes, place) }
      }),
    )
  },
})

/** `known`: hash of what the agent knows of the file. Throws Refusal `changed`, `unread` where something else would be lost. */
function assertRead(
  found: Buffer | undefined,
  bytes: Buffer,
  { shown }: InnerPath,
  known: string | undefined,
  { inPlace }: ToolContext,
): void {
  if (!found || found.equals(bytes)) return
  if (known !== undefined && known !== sha256Hex(found)) {
    throw new Refusal(`${shown} has changed since you read it. Read it again, then write.`, 'changed')
  }
  // What a person wrote in their own folder since the last checkpoint is nowhere else.
  if (inPlace && known === undefined) {
    const words = `${shown} is there already, in the person's own folder, and you have not read it since you came here`
    throw new Refusal(`${words}. Read it, then write.`, 'unread')
  }
}

function answerOf(
  found: Buffer | undefined,
  content: string,
  bytes: Buffer,
  { shown }: InnerPath,
): Made['answer'] {
  const binary = found?.includes(0) ?? false
  return {
    text: `${found ? 'Replaced' : 'Created'} ${shown} (${bytes.length} bytes).`,
    is_error: false,
    detail: {
      created: !found,
      bytes: bytes.length,
      ...(binary ? { path: shown } : diffDetail(shown, found?.toString('utf8') ?? '', content)),
    },
  }
}

/** UTF-8. Throws Refusal for half a surrogate pair: it has no UTF-8 form and would be changed in silence. */
export function encode(text: string, field: string): Buffer {
  if (text.isWellFormed()) return Buffer.from(text, 'utf8')
  throw new Refusal(`${field} contains half of a surrogate pair (a broken emoji). Send it without.`)
}
