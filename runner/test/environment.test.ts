import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { makeRepo } from '@baton/test/repo.ts'
import { personsEnvironment } from '../src/cli/persons-environment.ts'
import { loadConfig, NO_CONFIG } from '../src/config.ts'
import { surroundingsOf } from '../src/daemon/equip.ts'
import { createHands } from '../src/daemon/hands.ts'
import { Jobs } from '../src/jobs/jobs.ts'
import { redactor } from '../src/mcp/redaction.ts'
import { secretsElsewhere, secretsIn } from '../src/mcp/secrets.ts'
import { bash } from '../src/tools/bash.ts'
import { boxedEnvironment, commandEnvironment, serverEnvironment } from '../src/tools/environment.ts'
import type { Stay } from '../src/tools/stay.ts'
import { until } from '@baton/test/until.ts'

let top: string
beforeEach(() => (top = realpathSync(mkdtempSync(join(tmpdir(), 'baton-env-')))))
afterEach(() => rmSync(top, { recursive: true, force: true }))

const names = (env: Record<string, string>): string[] =>
  Object.keys(env).filter((name) => !/^(TERM|PAGER|GIT_PAGER|GIT_TERMINAL_PROMPT|NO_COLOR)$/.test(name))

test('T16: a command gets neither secrets of the runner nor what a server is given, but what every program needs', () => {
  const env = {
    ...{
      ANTHROPIC_API_KEY: 'k',
      ANTHROPIC_AUTH_TOKEN: 'k',
      BATON_PASSPHRASE: 'k',
      REDIS_URL: 'k',
      REDISCLI_AUTH: 'k',
    },
    ...{ CREDENTIALS_DIRECTORY: 'k', BASH_ENV: 'k', GIT_DIR: 'k', GIVEN: 'k' },
    ...{ PATH: '/bin', HOME: '/h', GITHUB_TOKEN: 'own', npm_config_x: 'x' },
  }
  const kept = commandEnvironment(env, new Set(['GIVEN', 'PATH', 'HOME']))
  expect(names(kept)).toEqual(['PATH', 'HOME', 'GITHUB_TOKEN', 'npm_config_x'])
})

test('T16: in the sandbox a command gets only the plain ones and those that the config names; secrets not even then', () => {
  const env = {
    ...{
      PATH: '/bin',
      HOME: '/h',
      LANG: 'C',
      LC_ALL: 'C',
      TZ: 'UTC',
      USER: 'u',
      SHELL: '/bin/sh',
      TERM: 'xterm',
    },
    ...{ GITHUB_TOKEN: 'k', AWS_SECRET_ACCESS_KEY: 'k', SSH_AUTH_SOCK: 'k', LCX: 'k' },
    ...{ HTTPS_PROXY: 'proxy', GIVEN: 'k', ANTHROPIC_API_KEY: 'k' },
  }
  const named = ['HTTPS_PROXY', 'GIVEN', 'ANTHROPIC_API_KEY', 'NOT_SET']
  expect(names(boxedEnvironment(env, named, new Set(['GIVEN'])))).toEqual([
    ...['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'USER', 'SHELL', 'HTTPS_PROXY'],
  ])
})

test('T17: a server gets the plain variables, and a PATH that leads nowhere in the work tree', () => {
  const env = { PATH: `/w/t/bin:.::bin:/w/tree:/usr/bin`, HOME: '/h', GITHUB_TOKEN: 'k' }
  expect(serverEnvironment(env, '/w/t')).toEqual({ PATH: '/w/tree:/usr/bin', HOME: '/h' })
})

const CONFIG = `export default { mcp: {
  one: { command: 'x', env: { T: '\${SERVER_TOKEN}' } },
  two: { url: 'https://a.example/', headers: { authorization: 'Bearer \${REMOTE_TOKEN}' } },
} }`
const SECRETS = {
  SERVER_TOKEN: 'canary-1',
  REMOTE_TOKEN: 'canary-2',
  REDIS_URL: 'canary-3',
  OTHER_TOKEN: 'canary-4',
}

/** Folders of a runner: one with servers, one without, one whose config is broken. */
function folders(): [string, string, string] {
  const all: [string, string, string] = [join(top, 'servers'), join(top, 'plain'), join(top, 'broken')]
  for (const folder of all) mkdirSync(folder)
  writeFileSync(join(all[0], 'baton.config.mjs'), CONFIG)
  writeFileSync(join(all[2], 'baton.config.mjs'), 'not a config: ${OTHER_TOKEN}')
  return all
}

test('T16: commands and jobs in any folder of the runner lack what the configs of all of them give to servers', async () => {
  const [servers, plain, broken] = folders()
  const env = { ...process.env, ...SECRETS, MINE: 'mine' }
  const options = { data: top, folders: [servers, plain, broken], env, sandbox: false }
  for (const root of [servers, plain]) {
    const jobs = new Jobs(join(top, 'jobs'), 'laptop')
    const stay: Stay = {
      ...(await surroundingsOf(root, await loadConfig(root), options)),
      jobs,
      end: () => jobs.end(),
    }
    const context = { root, readFiles: new Map(), signal: new AbortController().signal, stay }
    const { text } = await bash.execute({ command: 'env' }, context)
    expect(text).toContain('MINE=mine')
    expect(text).not.toContain('canary')
    await bash.execute({ command: 'env', background: true }, context)
    await until('the job is over', () => jobs.running === 0)
    const [job] = jobs.list()
    const said = jobs.output(job?.id ?? '', 0, 65_536)?.text
    expect(said).toContain('MINE=mine')
    expect(said).not.toContain('canary')
    await stay.end()
  }
})

test('T16: what only the config of this session gives to its servers counts, wherever the file lies', async () => {
  const [servers, plain] = folders()
  const options = { data: top, folders: [plain], env: SECRETS, sandbox: false }
  const { env } = await surroundingsOf(plain, await loadConfig(servers), options)
  expect(names(env)).toEqual(['OTHER_TOKEN'])
})

test.each([
  ["{ command: 'x', env: { T: process.env.R4_HIDDEN } }", {}],
  ["{ url: 'https://a.example/', headers: { authorization: `Bearer ${process.env.R4_HIDDEN}` } }", {}],
  ["{ url: 'https://a.example/', headers: { authorization: 'canary-5-literal' } }", {}],
  ["{ command: 'x', args: ['--token', process.env.R4_TOKEN] }", { R4_TOKEN: 'canary-6-token' }],
  ["{ command: 'x', env: { AUTH: btoa('me:' + process.env.R4_TOKEN) } }", { R4_TOKEN: 'canary-6-token' }],
])('T16, T8: a secret that a config in TypeScript hands over is one, too: %s', async (server, more) => {
  const secrets = { R4_HIDDEN: 'canary-5-literal', R4_SAME: 'canary-5-literal', ...more }
  Object.assign(process.env, secrets)
  try {
    const [person, other] = [join(top, 'person'), join(top, 'other')]
    for (const path of [person, other]) mkdirSync(path)
    writeFileSync(join(person, 'baton.config.ts'), `export default { mcp: { gh: ${server} } }\n`)
    const env = { ...process.env, MINE: 'mine', NODE_ENV: 'test' }
    const config = await loadConfig(person)
    const around = await surroundingsOf(person, config, { data: top, folders: [person], env, sandbox: false })
    const [held = ''] = Object.values<string>(Object.keys(more).length > 0 ? more : secrets)
    expect(Object.values(around.env)).not.toContain(held)
    expect(around.env).toMatchObject({ MINE: 'mine', NODE_ENV: 'test' })
    const { gh } = config.mcp
    if (!gh) throw new Error('no server')
    const found = [...secretsIn('env' in gh ? gh.env : gh.headers), ...secretsElsewhere(gh, env)]
    expect(redactor(found)(`it is ${held}`)).toBe('it is •••')
    // A session of another folder knows the config by its text alone.
    const beside = await surroundingsOf(other, NO_CONFIG, {
      data: top,
      folders: [person, other],
      env: { R4_HIDDEN: 'x', R4_TOKEN: 'y', MINE: 'mine' },
      sandbox: false,
    })
    const named = /R4_\w+/.exec(server)?.[0] ?? 'R4_NONE'
    expect(names(beside.env)).not.toContain(named)
    expect(beside.env).toMatchObject({ MINE: 'mine' })
  } finally {
    for (const name of Object.keys(secrets)) delete process.env[name]
  }
})

test('T8: what clearly is no secret stays in what a server answers', () => {
  const values = {
    ...{ ROOT: top, HOST: 'https://git.example.com', LEVEL: 'info', accept: 'application/json' },
    ...{ HOOK: 'https://hooks.example.com/T0/x', GONE: '/abc+def/ghi' },
  }
  expect(secretsIn(values)).toEqual(['https://hooks.example.com/T0/x', '/abc+def/ghi'])
  expect(secretsIn({ authorization: 'Bearer abcdef' })).toEqual(['Bearer abcdef', 'abcdef'])
})

test('T11: the set-up runs in the sandbox, if one is asked for, and never without it instead', async () => {
  const person = join(top, 'person')
  mkdirSync(person)
  makeRepo(person)
  const outside = join(top, 'ran')
  const setup = `env > ${outside}`
  writeFileSync(
    join(person, 'baton.config.mjs'),
    `export default { workspace: { setup: ${JSON.stringify(setup)} } }`,
  )
  const run = async (sandbox: boolean): Promise<string[] | undefined> => {
    const times = { park_after_ms: 1, finish_within_ms: 1 }
    const env = { ...process.env, ...SECRETS }
    const data = join(top, String(sandbox))
    const hands = await createHands({ ...times, data, folders: [person], env, name: 'x', sandbox })
    const workspace = await hands.openWorkspace('A'.repeat(22), person)
    const said = await workspace.ready
    await workspace.close()
    return said
  }
  const [boxed] = (await run(true)) ?? []
  expect(boxed).toContain('Set-up on this machine')
  expect(existsSync(outside)).toBe(false)
  await run(false)
  expect(existsSync(outside)).toBe(true)
})

test('what npm adds to the environment of a person is not handed on', () => {
  const npm = { npm_execpath: '/npm', npm_package_json: '/clone/package.json', INIT_CWD: '/h', NODE: '/n' }
  const bins = ['/clone/node_modules/.bin', '/node_modules/.bin', '/npm/run-script/lib/node-gyp-bin']
  const own = ['/usr/bin', '/h/node_modules/.bin']
  const env = { HOME: '/h', npm_config_registry: 'https://packages.example', PATH: own.join(':') }
  expect(personsEnvironment({ ...env, ...npm, PATH: [...bins, ...own].join(':') })).toEqual(env)
  // Called without npm: nobody added anything.
  const untouched = { ...env, NODE: '/n', npm_config_x: 'x', PATH: [...bins, ...own].join(':') }
  expect(personsEnvironment(untouched)).toEqual(untouched)
})

test('a command run through npx sees the PATH of the person', () => {
  const clone = join(import.meta.dirname, '../..')
  const print =
    'data:text/javascript,process.on("exit",()=>console.log(process.env.PATH,Object.keys(process.env).join()))'
  const said = execFileSync(process.execPath, ['--import', print, join(clone, 'runner/src/cli.ts'), 'help'], {
    env: {
      ...process.env,
      npm_execpath: '/npm',
      npm_command: 'exec',
      PATH: `${clone}/node_modules/.bin:/usr/bin`,
    },
    encoding: 'utf8',
  })
  const [path = '', variables = ''] = said.trimEnd().split('\n').at(-1)?.split(' ') ?? []
  expect(path).toBe('/usr/bin')
  expect(variables).not.toMatch(/npm_(execpath|command)/)
})
