import type { Dirent } from 'node:fs'
import { lstat, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import picomatch from 'picomatch'
import * as v from 'valibot'
import { GitProgram } from '../workspace/git-program.ts'
import { withOwnExcludes } from './excludes.ts'
import { defineTool, Refusal } from './define.ts'
import { innerPath } from './paths.ts'

const FILES = 500
const WALKED_MAX = 100_000

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
  async run({ pattern, path = '.' }, context) {
    const folder = await innerPath(context.root, path, 'read')
    const info = await lstat(folder.real).catch(() => undefined)
    if (!info?.isDirectory()) throw new Refusal(`There is no folder ${folder.shown}.`)
    const clean = pattern.replace(/^(\.?\/)+/, '')
    const matches = picomatch(clean, { dot: true, basename: !clean.includes('/') })
    const files = (await filesIn(folder.real, context.signal)).filter((file) => matches(file)).sort()
    const present: string[] = []
    let more = 0
    for (const file of files) {
      if (present.length === FILES) more++
      // Git still lists what was deleted but not committed.
      else if (await exists(join(folder.real, file))) present.push(file)
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

/** Paths relative to the folder. In a git work tree what git tracks or would track, else all but .git and node_modules. */
async function filesIn(folder: string, signal: AbortSignal): Promise<string[]> {
  const args = ['ls-files', '--cached', '--others', '--exclude-standard', '-z']
  const own = await withOwnExcludes(folder)
  const listed = await new GitProgram().run([...own, ...args], { cwd: folder, signal })
  if (listed.code !== 0) return walk(folder)
  return listed.stdout
    .toString('utf8')
    .split('\0')
    .filter((path) => path !== '')
}

async function walk(top: string): Promise<string[]> {
  const found: string[] = []
  const open = ['']
  for (let folder = open.pop(); folder !== undefined; folder = open.pop()) {
    const entries: Dirent[] = await readdir(join(top, folder), { withFileTypes: true }).catch(() => [])
    for (const entry of entries) {
      const path = folder === '' ? entry.name : `${folder}/${entry.name}`
      if (!entry.isDirectory()) found.push(path)
      else if (entry.name !== '.git' && entry.name !== 'node_modules') open.push(path)
    }
    if (found.length > WALKED_MAX) break
  }
  return found
}

async function exists(path: string): Promise<boolean> {
  return (await lstat(path).catch(() => undefined)) !== undefined
}
