/** What a person need not be asked for, because it could not run: told to the agent at once, by the real tools, in a real folder. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { hostTool } from '@baton/runner/config/host-tool.ts'
import { inputSchema } from '@baton/runner/config/schema.ts'
import { knownMcpTools } from '@baton/runner/mcp/tools.ts'
import type { RunnerOptions } from '@baton/runner/daemon/runner.ts'
import { builtinTools } from '@baton/runner/tools/index.ts'
import type { Tool } from '@baton/runner/tools/tool.ts'
import { packOf } from '@baton/runner/workspace/pack-file.ts'
import type { Workspace } from '@baton/runner/workspace/workspace.ts'
import type { Access, Json } from '@baton/shared/guest.ts'
import type { Rule } from '@baton/shared/journal.ts'
import { Loop } from '../src/loop.ts'
import { begun, outcome } from '../src/looks.ts'
import { approve, collecting, prompt } from '../src/script-asks.ts'
import type { Program } from '../src/script-harness.ts'

let top = ''
let root = ''
beforeEach(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), 'baton-refusals-')))
  root = join(top, 'work')
  mkdirSync(join(root, 'secret'), { recursive: true })
  writeFileSync(join(top, 'outside.txt'), 'outside')
  symlinkSync('../outside.txt', join(root, 'leads-out'))
  symlinkSync('secret', join(root, 'open'))
})
afterEach(() => rmSync(top, { recursive: true, force: true }))

function workspace(): Workspace {
  const oid = 'c'.repeat(40)
  let stored = false
  return {
    root,
    checkpoint: async () => {
      if (stored) return undefined
      stored = true
      return { kind: 'git', commit: oid, tree: oid, head: oid, branch: 'main' }
    },
    pack: async () => packOf(new Uint8Array([1])),
    about: async () => ({ path: root, branch: 'main', platform: 'test' }),
    close: async () => undefined,
  }
}

const RULES: Rule[] = [{ tool: 'write', prefix: 'secret', action: 'deny' }]
const SCHEMA = { type: 'object', properties: { to: { type: 'string' } }, required: ['to'] }
const spec = (name: string, access: Access = 'run'): Tool['spec'] => ({
  ...{ name, description: name, schema: SCHEMA, replay: 'never', access },
})
const MCP = knownMcpTools({}, [spec('mcp__gone__send')])

function hands(): Partial<RunnerOptions['hands']> {
  const deploy = hostTool(spec('deploy'), inputSchema(SCHEMA), () => 'deployed')
  return {
    tools: async () => [...builtinTools(), deploy, ...MCP],
    rules: async () => RULES,
    openWorkspace: async () => workspace(),
    restoreWorkspace: async () => ({ workspace: workspace() }),
  }
}

const CALLS: [name: string, input: Record<string, Json>, code: string, words: string][] = [
  ['write', { path: 'a.txt' }, 'bad-input', 'content is missing'],
  ['write', { path: 'a.txt', content: 'x', mode: 7 }, 'bad-input', 'mode'],
  [
    'edit',
    { path: '../b.txt', old_string: 'x', new_string: 'y' },
    'outside-workspace',
    'leads out of the workspace',
  ],
  ['write', { path: 'leads-out', content: 'x' }, 'outside-workspace', 'leads out of the workspace'],
  ['write', { path: '.git/config', content: 'x' }, 'outside-workspace', 'belongs to git'],
  ['write', { path: 'open/key', content: 'x' }, 'not-allowed', 'open/key leads to secret/key'],
  ['edit', { path: 'a.txt', old_string: 'x', new_string: 'x' }, 'bad-input', 'nothing to change'],
  ['bash', { command: 'ls', background: true, timeout_ms: 5 }, 'bad-input', 'A job has no time-out'],
  ['bash', { command: 'ls\0' }, 'bad-input', 'NUL'],
  ['fetch', { url: 'ftp://example.com' }, 'bad-input', 'Only http and https'],
  ['fetch', { url: 'http://127.0.0.1:1/' }, 'not-allowed', '127.0.0.1'],
  ['deploy', { to: 7 }, 'bad-input', 'to must be string'],
  ['mcp__gone__send', { to: 'you' }, 'not-allowed', 'is not set up on this machine'],
]

it('H16: a person is asked only for calls that could run; what is wrong with others is told at once, in words', async () => {
  const asks = CALLS.map(([name, input], i) => approve(i + 1, name, input))
  const good = CALLS.length + 1
  // Whatever comes before it may make the file, and a name that is no tool's is of the agent's own.
  const program = collecting(
    [
      ...asks,
      approve(good, 'edit', { path: 'not-yet.txt', old_string: 'x', new_string: 'y' }),
      approve(good + 1, 'propose_plan', { plan: 'p' }),
      approve(good + 2, 'deploy', { to: 'you' }),
      prompt(good + 3),
    ],
    CALLS.length,
  )
  await using loop = await Loop.open({ program })
  const { id } = await loop.runner('one', hands())
  const sid = await loop.start(id)
  const entries = await loop.client.untilEntries(sid, 'all are asked for', begun(good + 3))
  const told = CALLS.map((_, i) => outcome(entries, i + 1)?.error)
  expect(told).toEqual(
    CALLS.map(([, , code, words]) => ({ code, message: expect.stringContaining(words) as string })),
  )
  for (const open of [good, good + 1, good + 2]) expect(outcome(entries, open)).toBeUndefined()
})

it('H16: on a runner that lacks the tool nobody is asked for it', async () => {
  const program: Program = function* () {
    yield {}
    yield { ask: [prompt(1)] }
    yield { ask: [approve(2, 'deploy', { to: 'you' }), prompt(3)] }
    for (;;) yield {}
  }
  await using loop = await Loop.open({ program, park_after_ms: 0 })
  const one = await loop.runner('one', hands())
  const sid = await loop.start(one.id)
  const { client } = loop
  await client.untilEntries(sid, 'it is stored', (all) => all.some(({ kind }) => kind === 'checkpoint'))
  const two = await loop.runner('two', { ...hands(), tools: async () => builtinTools() })
  await client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
  await client.command(sid, 'prompt', { text: 'deploy' })
  const entries = await client.untilEntries(sid, 'it is told', (all) => outcome(all, 2) !== undefined)
  expect(outcome(entries, 2)?.error?.code).toBe('unknown-tool')
})
