/** The built-in tools in a work folder of each test's own. */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach } from 'vitest'
import type { Json } from '@baton/shared/guest.ts'
import { builtinTools } from '../src/tools/index.ts'
import type { ToolAnswer, ToolContext } from '../src/tools/tool.ts'

/** Around the work folder. */
export let top: string
export let root: string
export let context: ToolContext

beforeEach(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), 'baton-tools-')))
  root = join(top, 'work')
  mkdirSync(root)
  context = { root, readFiles: new Map(), signal: new AbortController().signal }
})
afterEach(() => rmSync(top, { recursive: true, force: true }))

export function use(name: string, input: { [key: string]: Json }): Promise<ToolAnswer> {
  const tool = builtinTools().find(({ spec }) => spec.name === name)
  if (!tool) throw new Error(`no tool ${name}`)
  return tool.execute(input, context)
}

export const put = (path: string, content: string | Uint8Array): void => {
  mkdirSync(join(root, path, '..'), { recursive: true })
  writeFileSync(join(root, path), content)
}
export const get = (path: string): string => readFileSync(join(root, path), 'utf8')
