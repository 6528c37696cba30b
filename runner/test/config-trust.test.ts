/** B9: configs in folders where sessions work in place. */
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeEach, describe, expect, test } from 'vitest'
import { folder, git, put, repository, SID } from './workspace-ground.ts'

const CONFIG = `import { deploy } from './tools/deploy.ts'
import 'pkg'
export default { tools: { deploy }, rules: [{ tool: 'bash', prefix: 'rm', action: 'deny' }] }`
const DEPLOY = `export const deploy = { description: 'D', input: { type: 'object' }, replay: 'never', execute: () => 'x' }`

let project: string
let data: string
let canary: string
let evil: string
beforeEach(() => {
  project = realpathSync(folder())
  data = folder()
  canary = join(folder(), 'ran')
  evil = `import { writeFileSync } from 'node:fs'; writeFileSync(${JSON.stringify(canary)}, '')\n`
  put(project, {
    'baton.config.ts': CONFIG,
    'tools/deploy.ts': DEPLOY,
    'node_modules/pkg/package.json': '{ "type": "module", "main": "index.js" }',
    'node_modules/pkg/index.js': `import './more.js'`,
    'node_modules/pkg/more.js': '',
  })
})

const SOURCE = fileURLToPath(new URL('../src/', import.meta.url))

/**
 * What a process of its own says, line by line: a runner that has loaded nothing yet. In tests themselves Vitest loads modules, not Node.
 * `code` has `hands`, `trust`, `write`, `codeOf` and `say`.
 */
function runner(code: string): string[] {
  const whole = `
    (await import('node:module')).enableCompileCache()
    const { createHands } = await import(${JSON.stringify(`${SOURCE}daemon/hands.ts`)})
    const { Trust } = await import(${JSON.stringify(`${SOURCE}config/trust.ts`)})
    const [data, project] = process.argv.slice(1)
    const SID = ${JSON.stringify(SID)}
    const times = { park_after_ms: 60_000, finish_within_ms: 30_000 }
    const hands = await createHands({ data, folders: [project], env: { HOME: data, PATH: process.env.PATH }, ...times })
    const trust = new Trust(data, [project])
    const say = (what) => console.log(String(what))
    const codeOf = (promise) => promise.then(() => 'fine', (error) => error.code + ' ' + error.detail)
    ${code}
    process.exit(0)`
  const args = ['--input-type=module', '-e', whole, data, project]
  const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' })
  if (stderr !== '') throw new Error(stderr)
  return stdout.trim().split('\n')
}

/** A session works in the folder itself, and rests. */
function begin(): void {
  runner(
    'const workspace = await hands.openWorkspace(SID, project); await workspace.checkpoint(); await workspace.close()',
  )
}

const afresh = (): string =>
  runner(
    `say(await trust.load(project).then(({ tools }) => 'tools: ' + tools.map((tool) => tool.spec.name), (error) => error.code + ' ' + error.detail))`,
  )[0] ?? ''

function baton(...args: string[]): string {
  const cli = [join(SOURCE, '../bin/baton.mjs'), ...args, '--data', data]
  return spawnSync(process.execPath, cli, { encoding: 'utf8' }).stdout
}

describe('B9: where a session works in place', () => {
  test('nothing runs when it, what it imports, or what that imports was changed, until the person has seen it', () => {
    begin()
    const files = [
      'baton.config.ts',
      'tools/deploy.ts',
      'node_modules/pkg/index.js',
      'node_modules/pkg/more.js',
    ]
    for (const path of files) {
      const before = readFileSync(join(project, path), 'utf8')
      put(project, { [path]: evil + before })
      expect(afresh()).toBe(`config-changed (${join(project, path)})`)
      put(project, { [path]: before })
    }
    put(project, { 'node_modules/pkg/more.js': evil })
    expect(existsSync(canary)).toBe(false)
    expect(baton('trust', project)).toContain(join(project, 'node_modules/pkg/more.js'))
    rmSync(canary)
    expect(afresh()).toBe('tools: deploy')
    expect(existsSync(canary)).toBe(true)
  })

  test('a config that was not there does not run, one that is gone is missed', () => {
    rmSync(join(project, 'baton.config.ts'))
    begin()
    put(project, { 'baton.config.ts': evil + CONFIG })
    expect(afresh()).toContain('config-changed')
    expect(existsSync(canary)).toBe(false)
    baton('trust', project)
    // It comes first of the four names.
    put(project, { 'baton.config.mjs': CONFIG })
    rmSync(join(project, 'baton.config.ts'))
    expect(afresh()).toContain('config-changed')
  })

  test('where no config is and no session worked, to trust means nothing: one that comes later counts', () => {
    rmSync(join(project, 'baton.config.ts'))
    expect(baton('trust', project)).toContain('there is nothing to trust')
    put(project, { 'baton.config.ts': CONFIG })
    expect(afresh()).toBe('tools: deploy')
  })

  test('meanwhile no session begins; one that comes back has no tools of it, and it is told', () => {
    begin()
    const config = join(project, 'baton.config.ts')
    put(project, { 'baton.config.ts': evil + CONFIG })
    const said = runner(`
      say(await codeOf(hands.openWorkspace('other-session-000000001', project)))
      const workspace = await new Promise((done) => done({ root: project }))
      const checkpoint = { kind: 'folder', commit: '0'.repeat(40), tree: '0'.repeat(40), head: '', branch: '', packs: [] }
      const origin = { sid: SID, checkpoint, arrived: Promise.resolve(workspace) }
      const tools = await hands.tools(project, { known: [], origin, tell: say })
      say(tools.some(({ spec }) => spec.name === 'deploy'))
      say(JSON.stringify(await hands.rules(project, origin)))
      const { execFileSync } = await import('node:child_process')
      const { existsSync } = await import('node:fs')
      say(existsSync(${JSON.stringify(canary)}))
      execFileSync(process.execPath, [${JSON.stringify(join(SOURCE, '../bin/baton.mjs'))}, 'trust', project, '--data', data])
      // The same process takes it once the person has seen it.
      const seen = await hands.tools(project, { known: [], origin, tell: say })
      say(seen.some(({ spec }) => spec.name === 'deploy'))`)
    expect(said).toEqual([
      `config-changed (${config})`,
      expect.stringContaining('baton trust'),
      'false',
      '[]',
      'false',
      'true',
    ])
  })

  test('no tool writes it, or what it imports, however its name is written', () => {
    const paths = [
      'baton.config.ts',
      'Baton.Config.TS',
      'baton.config.mjs',
      'tools/deploy.ts',
      'TOOLS/Deploy.ts',
    ]
    const said = runner(`
      const { root, stay } = await hands.openWorkspace(SID, project)
      const tools = await hands.tools(project, { tell: say })
      const context = { root, stay, readFiles: new Map(), signal: AbortSignal.timeout(60_000) }
      for (const path of ${JSON.stringify([...paths, 'tools/other.ts'])}) {
        const { is_error } = await tools.find(({ spec }) => spec.name === 'write').execute({ path, content: 'x' }, context)
        say(path + ' ' + is_error)
      }`)
    expect(said).toEqual([...paths.map((path) => `${path} true`), 'tools/other.ts false'])
  })
})

test('B9: where sessions have copies of the files, a changed config counts at once', () => {
  const person = repository()
  put(person, { 'baton.config.ts': `export default {}` })
  project = person
  begin()
  put(person, { 'baton.config.ts': `export default { workspace: { place: 'in-place' } }`, 'x.txt': 'x' })
  expect(git(person, 'status', '--porcelain')).toContain('baton.config.ts')
  expect(afresh()).toBe('tools:')
})
