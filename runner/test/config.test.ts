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
  expect(await loadConfig(folder)).toMatchObject({ tools: [], rules: [], mcp: {}, sandbox: false })
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

const ZOD = JSON.stringify(import.meta.resolve('zod'))

test('T6: a Zod schema is told to the model as JSON Schema, and execute gets what it lets through', async () => {
  put(
    'baton.config.mjs',
    `import { z } from ${ZOD}
    export default { tools: { deploy: {
      description: 'Deploys.', replay: 'safe',
      input: z.object({ tag: z.string().min(2), count: z.coerce.number().default(1), when: z.object({ hour: z.int() }).optional() }),
      execute: (input) => JSON.stringify(input) } } }`,
  )
  const tool = await only()
  expect(tool.spec.schema).toMatchObject({
    type: 'object',
    properties: {
      tag: { type: 'string', minLength: 2 },
      when: { properties: { hour: { type: 'integer' } } },
    },
    required: ['tag'],
  })
  expect(JSON.parse(JSON.stringify(tool.spec))).toEqual(tool.spec)
  expect((await tool.execute({ tag: 'v1', count: '5', other: 1 }, context)).text).toBe(
    '{"tag":"v1","count":5}',
  )
  const wrong = await tool.execute({ tag: 'v', when: { hour: 1.5 } }, context)
  expect(wrong).toMatchObject({ is_error: true, detail: { code: 'bad-input' } })
  expect(wrong.text).toMatch(/^The input of deploy is not valid: tag: .*; when\.hour: /)
})

test('T6: input that a JSON Schema forbids does not reach execute', async () => {
  put(
    'baton.config.mjs',
    withTool("() => { throw new Error('reached') }").replace(
      "'string' } }",
      "'string' } }, required: ['tag']",
    ),
  )
  const tool = await only()
  expect((await tool.execute({ tag: 5 }, context)).text).toBe(
    'The input of deploy is not valid: tag must be string',
  )
  expect((await tool.execute({}, context)).text).toContain("must have required property 'tag'")
  expect((await tool.execute({ tag: 'x' }, context)).text).toContain('reached')
})

test('T6: a Valibot schema will do, too; pictures of a tool are checked', async () => {
  put(
    'baton.config.mjs',
    `import * as v from ${JSON.stringify(import.meta.resolve('valibot'))}
    const gif = Buffer.from('47494638396101000100', 'hex')
    export default { tools: { shot: {
      description: 'S', replay: 'safe', input: v.object({ good: v.boolean() }),
      execute: ({ good }) => ({ text: 'seen', images: [good ? gif : gif.subarray(0, 3)] }) } } }`,
  )
  const tool = await only()
  expect(await tool.execute({ good: true }, context)).toMatchObject({
    is_error: false,
    images: [{ media_type: 'image/gif' }],
  })
  expect(await tool.execute({ good: false }, context)).toMatchObject({ is_error: true })
  expect((await tool.execute({ good: 1 }, context)).text).toContain('good: ')
})

test.each([
  ['export default 5', 'the default export must be an object, not 5'],
  ['export const tools = {}', 'there is no default export. Write: export default defineConfig('],
  ['export default { tool: {} }', 'tool: there is no such setting'],
  [
    "export default { workspace: { place: 'x' } }",
    'workspace.place: must be "worktree" or "in-place", not "x"',
  ],
  ["export default { rules: [{ tool: 'bash' }] }", 'rules.0.action: is missing'],
  [
    "export default { rules: [{ tool: 'bash', prefx: 'rm', action: 'allow' }] }",
    'rules.0.prefx: there is no such setting',
  ],
  [
    "export default { rules: [{ tool: 'bsh', action: 'deny' }] }",
    'rules.0.tool: there is no tool "bsh". There are: bash,',
  ],
  ["export default { tools: { 'a b': {} } }", 'a tool name has'],
  [withTool('5'), 'must be a function'],
  [withTool('() => 1').replace("'never'", "'sometimes'"), 'replay'],
  [withTool('() => 1').replace("type: 'object', properties", 'properties'), 'input: must be a JSON Schema'],
  [
    withTool('() => 1').replace("type: 'object', properties", "type: 'array', properties"),
    "input: must have type 'object'",
  ],
  [withTool('() => 1').replace("type: 'string'", "type: 'text'"), 'type must be JSONType'],
  [
    withTool('() => 1').replace(
      /input: .*, replay/,
      "input: { '~standard': { version: 1, vendor: 'zod', validate: () => 1 } }, replay",
    ),
    'update zod',
  ],
  [withTool('() => 1').replace('deploy', 'mcp__a__b'), 'taken by a built-in tool'],
  ["export default { mcp: { 'a__b': { command: 'x' } } }", 'a server name has'],
  ["export default { mcp: { a: { command: 'x', url: 'http://x' } } }", 'a server has a command, or a url'],
  ["export default { sandbox: { network: 'yes' } }", 'sandbox.network: must be true or false, not "yes"'],
  ["export default { sandbox: { write: ['cache'] } }", 'sandbox.write.0: must begin with / or ~/'],
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

test('B2: a rule may name a built-in tool, one of the config, and any of MCP servers', async () => {
  const rules = ['edit', 'deploy', 'mcp__github__get_issue'].map((tool) => ({ tool, action: 'deny' }))
  put('baton.config.mjs', withTool('() => 1').replace('tools:', `rules: ${JSON.stringify(rules)}, tools:`))
  expect((await loadConfig(folder)).rules).toEqual(rules)
})

test('of an import that fails the line is told, or what to install', () => {
  const config = join(import.meta.dirname, '../src/config.ts')
  // In a process of its own: here Vitest imports.
  const said = (name: string, text: string): string => {
    put(name, text)
    const load = `import { loadConfig } from ${JSON.stringify(config)}
      await loadConfig(process.argv[1]).catch((error) => console.log(error.message))`
    const out = execFileSync(process.execPath, ['--input-type=module', '-e', load, folder], {
      encoding: 'utf8',
    })
    rmSync(join(folder, name))
    return out
  }
  expect(said('baton.config.mjs', 'export default {\n  rules: [\n}')).toMatch(
    /baton\.config\.mjs:3: Unexpected/,
  )
  expect(said('baton.config.ts', 'let a: 1\nexport default {\n')).toMatch(/baton\.config\.ts:[23]: /)
  expect(said('baton.config.mjs', '\nthrow new Error("no luck")')).toContain('baton.config.mjs:2: no luck')
  expect(said('baton.config.ts', 'import "no-such-package"')).toContain(
    `the package no-such-package is not installed. Run in ${folder}: npm install no-such-package`,
  )
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
