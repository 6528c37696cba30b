import { execFileSync, spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Server } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { BatonError } from '@baton/shared/errors.ts'
import { git, makeRepo } from '@baton/test/repo.ts'
import { alive } from '@baton/test/processes.ts'
import { until } from '@baton/test/until.ts'
import { Jobs } from '../src/jobs/jobs.ts'
import { sandboxOf, type SandboxOptions } from '../src/sandbox/bubblewrap.ts'
import { bash } from '../src/tools/bash.ts'
import type { ToolContext } from '../src/tools/tool.ts'

/** What this kernel says: whether bubblewrap is there and may make its namespaces. */
const WORKS =
  process.platform === 'linux' &&
  spawnSync('bwrap', [
    '--unshare-user',
    '--unshare-pid',
    '--unshare-net',
    '--ro-bind',
    '/',
    '/',
    '--proc',
    '/proc',
    'true',
  ]).status === 0

let top: string
let home: string
let data: string
let root: string
beforeEach(() => {
  top = realpathSync(mkdtempSync(join(tmpdir(), 'baton-box-')))
  home = join(top, 'home')
  data = join(home, '.baton')
  root = join(data, 'worktrees/s1')
  for (const folder of [join(home, 'named'), join(home, 'cache'), root])
    mkdirSync(folder, { recursive: true })
  writeFileSync(join(home, 'secret'), 'canary-home')
  writeFileSync(join(home, 'named/file'), 'named')
  writeFileSync(join(data, 'identity.json'), 'canary-keys')
})
afterEach(() => rmSync(top, { recursive: true, force: true }))

const off = { network: false, write: [], read: [] }

async function contextOf(
  change: Partial<SandboxOptions> = {},
): Promise<ToolContext & { missing?: BatonError }> {
  const box = await sandboxOf({ settings: off, root, data, home, path: process.env['PATH'] ?? '', ...change })
  const jobs = new Jobs(join(data, 'jobs/s1'), 'laptop')
  const stay = { enclosure: box, jobs, end: () => jobs.end() }
  const { missing } = box
  return {
    root,
    readFiles: new Map(),
    signal: new AbortController().signal,
    stay,
    ...(missing ? { missing } : {}),
  }
}

const run = async (command: string, change: Partial<SandboxOptions> = {}) =>
  bash.execute({ command }, await contextOf(change))

test.runIf(!WORKS)(
  'T10: where the kernel does not allow a sandbox, commands are refused and nothing runs',
  async () => {
    const result = await run('echo > ran')
    expect(result).toMatchObject({ is_error: true, detail: { code: 'sandbox-missing' } })
    expect(existsSync(join(root, 'ran'))).toBe(false)
  },
)

describe('T10: without a sandbox nothing runs instead', () => {
  test.each<[string, Partial<SandboxOptions>, string]>([
    ['no bubblewrap', { program: '/no/such/bwrap' }, 'bubblewrap is not installed'],
    ['not on Linux', { platform: 'darwin' }, 'this is darwin'],
  ])('%s', async (_, change, words) => {
    const context = await contextOf(change)
    expect(context.missing?.message).toContain(words)
    for (const background of [false, true]) {
      const result = await bash.execute({ command: 'echo > ran', background }, context)
      expect(result).toMatchObject({ is_error: true, detail: { code: 'sandbox-missing' } })
      expect(result.text).toContain(words)
    }
    expect(existsSync(join(root, 'ran'))).toBe(false)
  })

  test('a bubblewrap that fails', async () => {
    const program = join(top, 'bwrap')
    writeFileSync(program, '#!/bin/sh\necho "No permissions to create new namespace" >&2\nexit 1\n')
    chmodSync(program, 0o755)
    if (process.platform === 'linux') {
      expect((await contextOf({ program })).missing?.message).toContain(
        'No permissions to create new namespace',
      )
    }
    expect(await run('echo > ran', { program })).toMatchObject({ detail: { code: 'sandbox-missing' } })
    expect(existsSync(join(root, 'ran'))).toBe(false)
  })
})

describe.runIf(WORKS)('T11: in the sandbox', () => {
  test('the work tree can be written, the rest not', async () => {
    expect(await run('echo in > file && cat file && pwd')).toMatchObject({
      text: `in\n${root}`,
      is_error: false,
    })
    expect(readFileSync(join(root, 'file'), 'utf8')).toBe('in\n')
    for (const place of ['/etc/x', '/usr/x', '/x'])
      expect((await run(`echo > ${place}`)).text).toMatch(/Read-only/)
    expect((await run('exit 7')).detail).toMatchObject({ exit_code: 7 })
  })

  test('home folder, keys of the runner and sockets are not there', async () => {
    const result = await run(
      `cat ${home}/secret ${data}/identity.json; ls -A ${home} ${data} /run; ls -A /tmp`,
    )
    expect(result.text).not.toContain('canary')
    expect(result.text).not.toContain('identity.json\n')
    expect(result.text).not.toMatch(/secret$/m)
    const named = { settings: { ...off, read: ['~/named'], write: ['~/cache'] } }
    const seen = await run(
      `cat ~/named/file; echo x > ~/cache/kept; echo x > ~/named/new`.replaceAll('~', home),
      named,
    )
    expect(seen.text).toMatch(/^named.*new: Read-only/)
    expect(readFileSync(join(home, 'cache/kept'), 'utf8')).toBe('x\n')
  })

  test('/tmp is private', async () => {
    const name = `baton-private-${process.pid}`
    expect((await run(`echo x > /tmp/${name} && cat /tmp/${name}`)).text).toBe('x')
    expect(existsSync(join('/tmp', name))).toBe(false)
  })

  test('F52: nothing hides from its end, not even a daemon that clears its environment', async () => {
    const token = `${process.pid}${Date.now() % 100000}`
    const result = await run(`(env -i setsid sleep ${token} >/dev/null 2>&1 &); sleep 0.1; ps -e | wc -l`)
    expect(Number(result.text)).toBeLessThan(10)
    const left = (): string => spawnSync('pgrep', ['-f', `sleep ${token}`], { encoding: 'utf8' }).stdout
    await until('the daemon is gone', () => left() === '')
  })

  test('F52: a job in it ends with the stay', async () => {
    const context = await contextOf()
    await bash.execute(
      { command: `env -i setsid sleep 1000 & echo up > up; wait`, background: true },
      context,
    )
    await until('it is up', () => existsSync(join(root, 'up')))
    const pids = spawnSync('pgrep', ['-f', root], { encoding: 'utf8' }).stdout.trim().split('\n').map(Number)
    expect(pids.some(alive)).toBe(true)
    await context.stay?.end()
    await until('all are gone', () => !pids.some(alive))
  })

  describe('network', () => {
    let server: Server
    beforeEach(async () => {
      server = createServer((socket) => socket.end('hello\n'))
      await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    })
    afterEach(() => server.close())

    test.each([
      [false, /refused|unreachable/],
      [true, /^hello$/],
    ])('network: %j', async (network, words) => {
      const address = server.address()
      const port = typeof address === 'object' && address ? address.port : 0
      const result = await run(`cat < /dev/tcp/127.0.0.1/${port}`, { settings: { ...off, network } })
      expect(result.text).toMatch(words)
    })
  })

  test('git commits, but hooks and settings of the repository stay as they are', async () => {
    const repo = join(home, 'repo')
    mkdirSync(repo)
    makeRepo(repo)
    rmSync(root, { recursive: true })
    git(repo, 'worktree', 'add', '-q', '-b', 'baton/s1', root)
    const who = '-c user.name=A -c user.email=a@example.invalid'
    const result = await run(
      `echo new > new.txt && git add -A && git ${who} commit -q -m new && git log --format=%s -1`,
    )
    expect(result).toMatchObject({ text: 'new', is_error: false })
    expect(git(repo, 'log', '--format=%s', '-1', 'baton/s1')).toBe('new')
    for (const attempt of [
      `echo x > ${repo}/.git/hooks/pre-commit`,
      'git config core.hooksPath /tmp',
      'rm -f .git && git init -q',
    ]) {
      expect(await run(attempt), attempt).toMatchObject({ is_error: true })
    }
    // What it writes where the home folder would be is nowhere.
    await run(`echo x > ${repo}/README.md`)
    expect(execFileSync('git', ['-C', repo, 'status', '--porcelain'], { encoding: 'utf8' })).toBe('')
  })
})
