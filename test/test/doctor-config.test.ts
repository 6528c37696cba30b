/** `baton doctor` and baton.config.ts: code of somebody's, looked at without trusting it further than a runner would. */
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Check } from '@baton/runner/cli/doctor/check.ts'
import { configs } from '@baton/runner/cli/doctor/config.ts'
import { ROOT } from '../src/check/sources.ts'
import { Cluster } from '../src/cluster.ts'
import { Ground } from '../src/processes.ts'

const SERVER = join(ROOT, 'runner/test/fixtures/mcp-server.ts')

let ground: Ground
beforeAll(async () => {
  ground = await Ground.open()
})
afterAll(() => ground.close())

async function folderWith(config: string): Promise<string> {
  const folder = await ground.newFolder('project')
  await writeFile(join(folder, 'baton.config.ts'), config)
  return folder
}

async function doctor(args: string[], options: { cwd?: string; on?: Ground } = {}): Promise<Check[]> {
  const { on = ground, ...rest } = options
  const started = await on.baton(['doctor', '--json', ...args], rest)
  await started.exit
  const { checks } = JSON.parse(started.output) as { checks: Check[] }
  return checks.filter(({ name }) => name === 'config' || name === 'mcp')
}

test('V7: the config of a folder that is served here: what it allows, and which servers answer', async () => {
  await using cluster = await Cluster.open({ script: 'hello' })
  const laptop = await cluster.runner('laptop')
  const env = { MCP_FOLDER: cluster.repo, MCP_SECRET: 'x' }
  const config = {
    tools: {},
    rules: [{ tool: 'bash', prefix: 'npm test', action: 'allow' }],
    mcp: {
      fix: { command: process.execPath, args: [SERVER], env },
      gone: { command: 'no-such-program' },
      key: { command: 'cat', env: { KEY: '${NOT_HERE_7781}' } },
    },
    workspace: { carry: ['.env'] },
  }
  // A config may leave something that would keep its process alive.
  const text = `setInterval(() => undefined, 1000)\nexport default ${JSON.stringify(config)}`
  await writeFile(join(cluster.repo, 'baton.config.ts'), text)
  const [own, ...servers] = await doctor(['--data', laptop.data], { on: cluster.ground })
  expect(own).toMatchObject({ name: 'config', state: 'ok' })
  expect(own?.says).toContain(`${cluster.repo}: loads, counts as it is`)
  for (const words of ['allow bash: npm test', 'carries: .env', 'servers get: NOT_HERE_7781'])
    expect(own?.says).toContain(words)
  const told = Object.fromEntries(servers.map((check) => [check.says.split(' ')[0], check]))
  expect(told['fix']).toMatchObject({ state: 'ok', says: expect.stringMatching(/; \d+ tools$/) as string })
  expect(told['gone']).toMatchObject({ state: 'problem' })
  expect(told['key']).toMatchObject({
    state: 'warning',
    todo: 'Set it where the runner starts: NOT_HERE_7781',
  })
})

test('B9: a config that changed since it was trusted does not run, and what to do is said', async () => {
  const folder = await folderWith('export default {}')
  const data = await ground.newFolder('data')
  const trusting = await ground.baton(['trust', folder, '--data', data])
  await trusting.exit
  const args = ['--data', data, '--workspace', folder]
  expect(await doctor(args)).toMatchObject([
    { state: 'ok', says: expect.stringContaining('trusted as it is') as string },
  ])
  const canary = join(folder, 'ran')
  await writeFile(
    join(folder, 'baton.config.ts'),
    `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(canary)}, ''); export default {}`,
  )
  expect(await doctor(args)).toMatchObject([
    { state: 'problem', todo: expect.stringContaining('baton trust') },
  ])
  expect(existsSync(canary)).toBe(false)
})

test('one that merely lies where doctor is called does not run', async () => {
  const folder = await folderWith('')
  const canary = join(folder, 'ran')
  const text = `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(canary)}, '')`
  await writeFile(join(folder, 'baton.config.ts'), text)
  await doctor(['--data', await ground.newFolder('data')], { cwd: folder })
  expect(existsSync(canary)).toBe(false)
})

test.each([
  ['export default { rules: [{ tool: "bahs", action: "deny" }] }', /bahs/],
  ['export default {', /baton\.config\.ts/],
  ['process.exit(3)', /the config ends its process \(3\)/],
  ['for (;;);', /the config takes longer than/],
  ['await new Promise(() => setInterval(() => undefined, 1000))', /the config takes longer than/],
])('V7: %s is a problem of its own', async (config, words) => {
  const folder = await folderWith(config)
  const within_ms = config.includes(';;') || config.includes('await') ? 1500 : 60_000
  const found = await configs(await ground.newFolder('data'), { folders: [folder], named: [] }, within_ms)
  expect(found).toMatchObject([{ name: 'config', state: 'problem' }])
  expect(found[0]?.says).toMatch(words)
})

test('where there is none, that is said', async () => {
  const data = await ground.newFolder('data')
  const says = async (at: Parameters<typeof configs>[1]) => (await configs(data, at, 1000))[0]?.says
  expect(await says({ folders: [data], named: [] })).toBe(`none in ${data}`)
  expect(await says({ folders: [], named: [] })).toBe('no folder is served here')
  expect(await says({ folders: undefined, named: [] })).toMatch(/^not looked at/)
})
