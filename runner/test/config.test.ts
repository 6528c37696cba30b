import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { loadConfig } from '../src/config.ts'
import type { Tool, ToolContext } from '../src/tools/tool.ts'

let folder: string
let context: ToolContext
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'baton-config-'))
  context = { root: '/the/root', signal: new AbortController().signal, readFiles: new Map() }
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const put = (name: string, text: string): void => writeFileSync(join(folder, name), text)

async function only(): Promise<Tool> {
  const [tool] = (await loadConfig(folder)).tools
  if (!tool) throw new Error('no tool')
  return tool
}

const withTool = (execute: string, more = ''): string => `export default { tools: { deploy: {
  description: 'Deploys.', input: { type: 'object', properties: { tag: { type: 'string' } } }, replay: 'never', ${more}
  execute: ${execute} } } }`

test('no file, no tools', async () => {
  expect(await loadConfig(folder)).toEqual({ tools: [], rules: [] })
})

test('a tool gets input, root and signal, and answers with text or a result', async () => {
  put('baton.config.mjs', withTool('({ tag }, { root, signal }) => `${tag} ${root} ${signal.aborted}`'))
  const tool = await only()
  expect(tool.spec).toEqual({
    name: 'deploy',
    description: 'Deploys.',
    schema: { type: 'object', properties: { tag: { type: 'string' } } },
    replay: 'never',
    access: 'run',
  })
  expect(await tool.execute({ tag: 'v1' }, context)).toEqual({ text: 'v1 /the/root false', is_error: false })

  put(
    'baton.config.mjs',
    withTool("async () => ({ text: 'no', is_error: true, detail: { n: 1 } })", 'access: "read",'),
  )
  utimesSync(join(folder, 'baton.config.mjs'), 1, 1)
  const changed = await only()
  expect(changed.spec.access).toBe('read')
  expect(await changed.execute({}, context)).toEqual({ text: 'no', is_error: true, detail: { n: 1 } })
})

test('what a tool throws, or returns by mistake, is told to the model; long text is bounded', async () => {
  put(
    'baton.config.mjs',
    withTool(
      "({ how }) => { if (how === 'throw') throw new Error('broken'); if (how === 'long') return 'x'.repeat(1e6); return 5 }",
    ),
  )
  const tool = await only()
  expect(await tool.execute({ how: 'throw' }, context)).toEqual({
    text: 'deploy failed: broken',
    is_error: true,
  })
  expect(await tool.execute({}, context)).toMatchObject({ is_error: true })
  expect((await tool.execute({ how: 'long' }, context)).text.length).toBeLessThan(31_000)
  const stopped = { ...context, signal: AbortSignal.abort() }
  await expect(tool.execute({}, stopped)).rejects.toMatchObject({ code: 'stopped' })
})

test.each([
  ['export default 5', 'the file'],
  ['export const tools = {}', 'the file'],
  ['export default { tool: {} }', 'tool'],
  ["export default { tools: { 'a b': {} } }", 'a tool name has'],
  [withTool('5'), 'must be a function'],
  [withTool('() => 1').replace("'never'", "'sometimes'"), 'replay'],
  [withTool('() => 1').replace("type: 'object', properties", 'properties'), 'input.type'],
  [withTool('() => 1').replace('deploy', 'bash'), 'taken by a built-in tool'],
  ['throw new Error("no luck")', 'no luck'],
  ['export default {', 'baton.config.mjs'],
])('%s is refused, naming the file and the fault', async (text, words) => {
  put('baton.config.mjs', text)
  const error: unknown = await loadConfig(folder).catch((reason: unknown) => reason)
  expect(error).toMatchObject({ name: 'BatonError', code: 'config-invalid' })
  expect(String(error)).toContain(words)
  expect(String(error)).toContain('baton.config.mjs')
})

test('a TypeScript file may import defineConfig from baton/config, with nothing installed beside it', () => {
  put(
    'baton.config.ts',
    `import { defineConfig, type ConfigTool } from 'baton/config'
const deploy: ConfigTool = { description: 'D', input: { type: 'object' }, replay: 'safe', execute: (input): string => \`ran \${input['tag']}\` }
export default defineConfig({ tools: { deploy } })
`,
  )
  // In a process of its own: the test runner has its own way with imports.
  const script = `
    import { loadConfig } from ${JSON.stringify(join(import.meta.dirname, '../src/config.ts'))}
    const { tools } = await loadConfig(process.argv[1])
    const result = await tools[0].execute({ tag: 'v1' }, { root: '/', signal: new AbortController().signal, readFiles: new Map() })
    console.log(JSON.stringify([tools[0].spec.name, result.text]))`
  const output = execFileSync(process.execPath, ['--input-type=module', '-e', script, folder], {
    encoding: 'utf8',
  })
  expect(JSON.parse(output)).toEqual(['deploy', 'ran v1'])
})
