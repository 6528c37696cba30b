import picomatch from 'picomatch'
import * as v from 'valibot'
import { defineTool, Refusal } from './define.ts'
import { filesOf } from './session-files.ts'

const FILES = 500

export const glob = defineTool({
  name: 'glob',
  description: `Lists files of the workspace whose path matches a pattern, sorted by path; at most ${FILES}. Ignored files (.gitignore) and folders as such are not listed.
Examples: src/**/*.ts, **/*.{md,txt}, package.json. A pattern without a slash matches names at any depth.`,
  replay: 'safe',
  access: 'read',
  input: v.strictObject({
    pattern: v.pipe(v.string(), v.minLength(1), v.description('Glob pattern: * ? ** [ab] {a,b}.')),
    path: v.optional(
      v.pipe(
        v.string(),
        v.description('Folder to look in, relative to the root. The pattern counts from it.'),
      ),
    ),
  }),
  async check({ path = '.' }, place) {
    if (place) await filesOf(place).place(path, 'read')
  },
  async run({ pattern, path = '.' }, context) {
    const own = filesOf(context)
    const folder = await own.place(path, 'read')
    const listed = await own.list(folder, context.signal)
    if (!listed) throw new Refusal(`There is no folder ${folder.shown}.`)
    const clean = pattern.replace(/^(\.?\/)+/, '')
    const matches = picomatch(clean, { dot: true, basename: !clean.includes('/') })
    const files = listed.paths.filter((file) => matches(file)).sort()
    const present: string[] = []
    let more = 0
    for (const file of files) {
      if (present.length === FILES) more++
      // Git still lists what was deleted but not committed.
      else if (await listed.isThere(file)) present.push(file)
    }
    const prefix = folder.shown === '.' ? '' : `${folder.shown}/`
    const lines = present.map((file) =>
      /[\n\r\t]/.test(file) ? JSON.stringify(prefix + file) : prefix + file,
    )
    if (more > 0) lines.push(`… about ${more} more: use a narrower pattern.`)
    return {
      text: lines.length > 0 ? lines.join('\n') : 'No file matches.',
      is_error: false,
      detail: { files: present.length, more },
    }
  },
})
