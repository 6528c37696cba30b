import { spawn } from 'node:child_process'
import { getEventListeners } from 'node:events'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import * as v from 'valibot'
import type { Json } from '@baton/shared/guest.ts'
import { alive } from '@baton/test/processes.ts'
import { until } from '@baton/test/until.ts'
import { redactor } from '../src/mcp/redaction.ts'
import { McpServers } from '../src/mcp/servers.ts'
import type { McpPlace } from '../src/mcp/server.ts'
import { McpSettings } from '../src/mcp/settings.ts'
import { knownMcpTools, mcpTools, shownName } from '../src/mcp/tools.ts'
import type { Tool, ToolContext } from '../src/tools/tool.ts'
import { serveHttp } from './fixtures/mcp-server.ts'

const FIXTURE = join(import.meta.dirname, 'fixtures/mcp-server.ts')
const SECRET = 'canary-7781-secret'

let folder: string
let stays: McpServers[]
let told: string[]
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), 'baton-mcp-')))
  stays = []
  told = []
})
afterEach(async () => {
  for (const stay of stays) await stay.end()
  rmSync(folder, { recursive: true, force: true })
})

const env = { TOKEN: SECRET, UNUSED: 'canary-unused' }
const parse = (settings: v.InferInput<typeof McpSettings>): McpSettings => v.parse(McpSettings, settings)

function settings(more: { [key: string]: unknown } = {}): McpSettings {
  const program = {
    command: process.execPath,
    args: [FIXTURE],
    env: { MCP_FOLDER: folder, MCP_SECRET: '${TOKEN}' },
  }
  return v.parse(McpSettings, { fix: { ...program, ...more } })
}

const list = (from: McpSettings): Promise<Tool[]> =>
  mcpTools(from, { place: placeIn('/work/tree'), env, tell: (text) => told.push(text) })

const placeIn = (root: string): McpPlace => ({ folder, root, empty: join(folder, 'empty') })

/** A session's stay: servers of its own. */
function stayIn(root: string, more: NodeJS.ProcessEnv = {}): ToolContext {
  const mcp = new McpServers(placeIn(root), { ...env, ...more })
  stays.push(mcp)
  return {
    root,
    readFiles: new Map(),
    signal: new AbortController().signal,
    stay: { mcp, end: () => mcp.end() },
  }
}

function call(tools: Tool[], name: string, context: ToolContext, input: { [key: string]: Json } = {}) {
  const tool = tools.find(({ spec }) => spec.name === name)
  if (!tool) throw new Error(`no tool ${name}`)
  return tool.execute(input, context)
}

const starts = (): number[] =>
  existsSync(join(folder, 'starts'))
    ? readFileSync(join(folder, 'starts'), 'utf8').trim().split('\n').map(Number)
    : []

test('T7: tools come in a stable order, with the replay policy and access of the config', async () => {
  const tools = await list(
    settings({ replay: 'safe', tools: { 'b.where': { access: 'read' }, die: { replay: 'never' } } }),
  )
  expect(tools.map(({ spec }) => [spec.name, spec.replay, spec.access])).toEqual([
    ['mcp__fix__b_where', 'safe', 'read'],
    ['mcp__fix__die', 'never', 'run'],
    ['mcp__fix__echo', 'safe', 'run'],
    ['mcp__fix__fail', 'safe', 'run'],
    ['mcp__fix__hang', 'safe', 'run'],
    ['mcp__fix__long', 'safe', 'run'],
    ['mcp__fix__picture', 'safe', 'run'],
    ['mcp__fix__secret', 'safe', 'run'],
  ])
  const echo = tools.find(({ spec }) => spec.name === 'mcp__fix__echo')
  expect(echo?.spec.schema).toMatchObject({ type: 'object', required: ['text'] })
  expect((await list(settings())).every(({ spec }) => spec.replay === 'never')).toBe(true)
  // Whoever only asks what is offered leaves nothing running.
  await until('they are gone', () => starts().every((pid) => !alive(pid)))
})

test('T7: each session has servers of its own, started by the first call and ended with its stay', async () => {
  const tools = await list(settings())
  const before = starts().length
  const [one, two] = [stayIn('/work/tree'), stayIn('/other/tree')]
  expect(starts().length).toBe(before)
  expect(await call(tools, 'mcp__fix__echo', one, { text: 'a' })).toEqual({
    text: 'a (call 1)',
    is_error: false,
  })
  expect((await call(tools, 'mcp__fix__echo', one, { text: 'b' })).text).toBe('b (call 2)')
  expect((await call(tools, 'mcp__fix__echo', two, { text: 'c' })).text).toBe('c (call 1)')
  const pids = starts().slice(before)
  expect(pids.map(alive)).toEqual([true, true])
  await one.stay?.end()
  expect(pids.map(alive)).toEqual([false, true])
  expect((await call(tools, 'mcp__fix__echo', one, { text: 'd' })).text).toContain('the session is leaving')
})

test('results are bounded, pictures passed, errors told', async () => {
  const tools = await list(settings())
  const stay = stayIn(folder)
  const picture = await call(tools, 'mcp__fix__picture', stay)
  expect(picture.images?.map(({ media_type }) => media_type)).toEqual(['image/png'])
  expect(picture.text).toContain('left out: it is of no kind')
  expect(picture.text).toContain('audio/wav')
  expect((await call(tools, 'mcp__fix__long', stay)).text.length).toBeLessThan(31_000)
  expect(await call(tools, 'mcp__fix__fail', stay)).toEqual({ text: 'no luck', is_error: true })
  const wrong = await call(tools, 'mcp__fix__echo', stay, { text: 5 })
  expect(wrong.is_error).toBe(true)
})

test('T8: secrets come from the environment of the runner and are blotted out of what comes back', async () => {
  const tools = await list(settings())
  expect(JSON.stringify(tools.map(({ spec }) => spec))).not.toContain(SECRET)
  expect((await call(tools, 'mcp__fix__secret', stayIn(folder))).text).toBe('it is •••')
  expect(await list(settings({ env: { X: '${NOT_SET}' } }))).toEqual([])
  expect(told).toEqual([expect.stringContaining('needs the environment variable NOT_SET')])
})

test('T17: a server runs in the folder of the config, and in an empty one where the agent works in that folder', async () => {
  const where = async (context: ToolContext, more = {}): Promise<string> =>
    (await call(await list(settings(more)), 'mcp__fix__b_where', context)).text
  const worktree = join(folder, 'data/worktrees/s1')
  expect(await where(stayIn(worktree))).toBe(folder)
  const inPlace = stayIn(folder)
  expect(await where(inPlace)).toBe(join(folder, 'empty'))
  expect(readdirSync(join(folder, 'empty'))).toEqual([])
  mkdirSync(join(folder, 'servers'))
  expect(await where(stayIn(folder), { cwd: 'servers' })).toBe(join(folder, 'servers'))
  await inPlace.stay?.end()
  expect(existsSync(join(folder, 'empty'))).toBe(false)
})

test('T17: what an agent has put among its files does not stand for a server', async () => {
  const worktree = join(folder, 'worktrees/s1')
  const bin = join(worktree, 'node_modules/.bin')
  mkdirSync(bin, { recursive: true })
  const fake = `#!/bin/sh\nenv > ${join(folder, 'stolen')}\n`
  writeFileSync(join(bin, 'own-server'), fake, { mode: 0o755 })
  writeFileSync(join(worktree, 'own-server'), fake, { mode: 0o755 })
  symlinkSync(worktree, join(folder, 'by-another-name'))
  const named = { mcp: { command: 'own-server', env: { SECRET: '${TOKEN}' } } }
  for (const command of ['own-server', './own-server', 'node_modules/.bin/own-server']) {
    const tools = knownMcpTools(parse({ mcp: { ...named.mcp, command } }), [
      { name: 'mcp__mcp__x', description: 'x', schema: { type: 'object' }, replay: 'never', access: 'run' },
    ])
    const path = [
      bin,
      'node_modules/.bin',
      '.',
      '',
      join(folder, 'by-another-name'),
      '/usr/bin',
      '/bin',
    ].join(':')
    const answer = await call(tools, 'mcp__mcp__x', stayIn(worktree, { PATH: path }))
    expect(answer).toMatchObject({ is_error: true, detail: { code: 'mcp-failed' } })
    expect(answer.text).toContain('ENOENT')
  }
  expect(existsSync(join(folder, 'stolen'))).toBe(false)
})

test('T8: a secret is blotted out in whatever form it comes, and no tail of it stays', () => {
  const [short, long, odd] = ['canary-123456', 'canary-123456-long', 'canary "q"\\n/ä+z']
  const redact = redactor([short, long, odd, 'tiny', '  '])
  expect(redact(`${long}|${short}|tiny`)).toBe('•••|•••|tiny')
  expect(redact(JSON.stringify({ odd }))).toBe('{"odd":"•••"}')
  expect(redact(`?key=${encodeURIComponent(odd)}&k=${encodeURIComponent(odd).toLowerCase()}`)).not.toContain(
    'canary',
  )
  expect(redact(Buffer.from(long).toString('hex'))).toBe('•••')
  for (const user of ['', 'u', 'us', 'use', 'user']) {
    const header = Buffer.from(`${user}:${long}`).toString('base64')
    expect(redact(header)).toContain('•••')
    expect(Buffer.from(redact(header).replaceAll('•••', ''), 'base64').toString('latin1')).not.toContain(
      'canary',
    )
  }
})

test('T8: what a server says of its tools is free of its secrets, too', async () => {
  const tools = await list(settings({ env: { MCP_FOLDER: folder, MCP_SECRET: '${TOKEN}', MCP_LOOSE: '1' } }))
  const secret = tools.find(({ spec }) => spec.name === 'mcp__fix__secret')
  expect(secret?.spec.description).toBe('Tells its secret: •••.')
})

test('a call leaves nothing at the signal of whoever made it', async () => {
  const tools = await list(settings())
  const stay = stayIn('/work/tree')
  await call(tools, 'mcp__fix__echo', stay, { text: 'a' })
  expect(getEventListeners(stay.signal, 'abort')).toEqual([])
})

test('a server that dies is started again at the next call; one that keeps dying is left alone for a while', async () => {
  const tools = await list(settings())
  const stay = stayIn(folder)
  expect(await call(tools, 'mcp__fix__die', stay)).toMatchObject({
    is_error: true,
    detail: { code: 'mcp-failed' },
  })
  expect((await call(tools, 'mcp__fix__echo', stay, { text: 'back' })).text).toBe('back (call 1)')
  writeFileSync(join(folder, 'broken'), '')
  await call(tools, 'mcp__fix__die', stay)
  const broken = await call(tools, 'mcp__fix__echo', stay, { text: 'x' })
  expect(broken.text).toContain('could not be started')
  expect(broken.text).toContain('It said: out of order, •••')
  const count = starts().length
  expect((await call(tools, 'mcp__fix__echo', stay, { text: 'x' })).text).toMatch(/tried again in \d+ s/)
  expect(starts().length).toBe(count)
})

test('a missing program and a broken server are told to people, and the session has its other tools', async () => {
  writeFileSync(join(folder, 'broken'), '')
  const both = { ...settings({ args: [FIXTURE, 'b'] }), ...parse({ gone: { command: '/no/such/program' } }) }
  expect(await list(both)).toEqual([])
  expect(told.toSorted()).toEqual([
    expect.stringMatching(/MCP server fix are missing in this session: .*could not be started/),
    expect.stringMatching(/MCP server gone are missing in this session: .*ENOENT/),
  ])
  unlinkSync(join(folder, 'broken'))
  expect((await list(both)).length).toBe(8)
})

test('T9: after a move the tools of the start message stay; what is missing here is told in words', async () => {
  const known = (await list(settings({ tools: { echo: { replay: 'safe' } } }))).map(({ spec }) => spec)
  const before = starts().length
  const there = knownMcpTools(settings(), known)
  expect(there.map(({ spec }) => spec)).toEqual(known)
  expect(starts().length).toBe(before)
  expect((await call(there, 'mcp__fix__b_where', stayIn('/work/tree'))).text).toBe(folder)
  const without = knownMcpTools({}, known)
  const answer = await call(without, 'mcp__fix__echo', stayIn(folder), { text: 'x' })
  expect(answer).toMatchObject({ is_error: true, detail: { code: 'mcp-missing' } })
  expect(answer.text).toContain('The MCP server fix is not set up on this machine')
})

test('Stop ends a call, not the server', async () => {
  const tools = await list(settings())
  const stay = stayIn(folder)
  const stop = new AbortController()
  const hanging = call(tools, 'mcp__fix__hang', { ...stay, signal: stop.signal })
  await until('it hangs', () => existsSync(join(folder, 'hanging')))
  stop.abort()
  await expect(hanging).rejects.toMatchObject({ code: 'stopped' })
  expect((await call(tools, 'mcp__fix__echo', stay, { text: 'on' })).text).toBe('on (call 1)')
})

test('F52: servers die with a runner that is killed', async () => {
  const script = `
    import { McpServers } from ${JSON.stringify(join(import.meta.dirname, '../src/mcp/servers.ts'))}
    const folder = process.argv[1]
    const servers = new McpServers({ folder, root: '/work/tree', empty: folder + '/empty' }, process.env)
    await servers.server('fix', JSON.parse(process.argv[2])).tools()
    process.stdout.write('up')
    setInterval(() => {}, 1000)`
  const definition = JSON.stringify(settings({ env: { MCP_FOLDER: folder } })['fix'])
  const runner = spawn(process.execPath, ['--input-type=module', '-e', script, folder, definition])
  let said = ''
  runner.stdout.on('data', (chunk: Buffer) => (said += chunk.toString()))
  await until('it is up', () => said === 'up')
  const [pid = 0] = starts()
  expect(alive(pid)).toBe(true)
  runner.kill('SIGKILL')
  await until('it is dead', () => !alive(pid))
})

test('a server over HTTP gets its headers, and says when it refuses', async () => {
  const remote = await serveHttp(SECRET)
  try {
    const given = parse({ web: { url: remote.url, headers: { authorization: 'Bearer ${TOKEN}' } } })
    const tools = await list(given)
    expect(tools.map(({ spec }) => spec.name)).toContain('mcp__web__echo')
    expect((await call(tools, 'mcp__web__echo', stayIn(folder), { text: 'far' })).text).toBe('far (call 1)')
    expect(
      await list(parse({ web: { url: remote.url, headers: { authorization: 'Bearer wrong' } } })),
    ).toEqual([])
    expect(told).toEqual([expect.stringContaining('The tools of the MCP server web are missing')])
  } finally {
    remote.close()
  }
})

test('names are short and of plain letters, and stay apart', () => {
  expect(shownName('a', 'x.y/z')).toBe('mcp__a__x_y_z')
  const [one, two] = ['1', '2'].map((end) => shownName('a', 'long'.repeat(20) + end))
  expect(one?.length).toBe(64)
  expect(one).not.toBe(two)
})
