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
    root: change.root ?? root,
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

  test('what is kept can not be changed, nor moved away with its folder', async () => {
    mkdirSync(join(root, 'a/b'), { recursive: true })
    writeFileSync(join(root, 'a/b/kept'), 'mine')
    const change = { kept: [join(root, 'a/b/kept'), join(root, 'not-there')] }
    for (const attempt of ['echo x > a/b/kept', 'rm a/b/kept', 'mv a/b a/c', 'mv a z'])
      expect(await run(attempt, change), attempt).toMatchObject({ is_error: true })
    expect(await run('echo x > a/b/other && cat a/b/kept', change)).toMatchObject({
      text: 'mine',
      is_error: false,
    })
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

  describe('a repository', () => {
    let repo: string
    const who = '-c user.name=A -c user.email=a@example.invalid'
    /** Who runs git outside leaves this behind when it runs what a command in the sandbox has planted. */
    const canary = (): string => join(top, 'ran')
    const evil = (): string => `printf '[core]\\n\\tfsmonitor = "touch ${canary()}; false"\\n'`
    beforeEach(() => {
      repo = join(home, 'repo')
      mkdirSync(repo)
      makeRepo(repo)
      rmSync(root, { recursive: true })
    })
    const linked = (): void => void git(repo, 'worktree', 'add', '-q', '-b', 'baton/s1', root)
    /** The person's own git, with all that the repository says. */
    const person = (cwd: string, command: string): string =>
      spawnSync('bash', ['--norc', '-c', command], { cwd, encoding: 'utf8' }).stdout
    const common = 'C=$(git rev-parse --path-format=absolute --git-common-dir)'

    test('takes commits, but hooks and settings stay as they are', async () => {
      linked()
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

    test('takes branches, rebases and stashes', async () => {
      linked()
      const steps = [
        'git checkout -q -b side && echo 1 > one && git add one && git commit -q -m one',
        'git checkout -q baton/s1 && echo 2 > two && git add two && git commit -q -m two',
        'git rebase -q side && git update-ref -d refs/heads/side',
        'echo 3 > two && git stash -q && git stash pop -q && git commit -q -a --amend -m both',
        'git tag done && git log --format=%s -2',
      ]
      const result = await run(steps.join(' && ').replaceAll('git ', `git ${who} `))
      expect(result).toMatchObject({ text: 'both\none', is_error: false })
      expect(person(repo, 'git fsck --strict 2>&1 && git log --format=%s -2 done')).toContain('both\none')
    })

    test('moving .git away and making another is impossible in place', async () => {
      const change = { root: repo }
      expect(await run(`mv .git .g && cp -r .g .git`, change)).toMatchObject({ is_error: true })
      await run(`${evil()} >> .git/config; ${evil()} > .git/config.worktree`, change)
      expect((await run('git status --short && git log --format=%s', change)).is_error).toBe(false)
      expect(person(repo, 'git status')).toContain('nothing to commit')
      expect(existsSync(canary())).toBe(false)
    })

    test.each([
      ['of the work tree', 'D=$(git rev-parse --path-format=absolute --git-dir)'],
      ['of the repository', `${common}; D=$C`],
    ])('the git folder %s can not be pointed at settings elsewhere', async (_, where) => {
      linked()
      await run(`${common}; cp -r $C evil; ${evil()} >> evil/config; ${where}; echo $PWD/evil > $D/commondir`)
      person(root, 'git status')
      person(repo, 'git status')
      expect(existsSync(canary())).toBe(false)
    })

    test('in place it can not be pointed at settings elsewhere either', async () => {
      await run(`cp -r .git evil; ${evil()} >> evil/config; echo ../evil > .git/commondir`, { root: repo })
      person(repo, 'git status')
      expect(existsSync(canary())).toBe(false)
    })

    test('gets no hooks where it had no folder for them', async () => {
      linked()
      rmSync(join(repo, '.git/hooks'), { recursive: true, force: true })
      const hook = `printf '#!/bin/sh\\ntouch ${canary()}\\n' > $C/hooks/post-commit`
      await run(`${common}; mkdir $C/hooks; ${hook}; chmod +x $C/hooks/post-commit`)
      person(repo, `git ${who} commit -q --allow-empty -m mine`)
      expect(person(repo, 'git log --format=%s -1')).toBe('mine\n')
      expect(existsSync(canary())).toBe(false)
    })

    test.each([true, false])('settings of single work trees stay as they are (there: %j)', async (there) => {
      git(repo, 'config', 'extensions.worktreeConfig', 'true')
      if (there) writeFileSync(join(repo, '.git/config.worktree'), '')
      linked()
      await run(`${common}; ${evil()} >> $C/config.worktree`)
      await run(`${evil()} >> $(git rev-parse --git-dir)/config.worktree`)
      await run(`${common}; for W in $C/worktrees/*; do ${evil()} >> $W/config.worktree; done`)
      person(repo, 'git status')
      person(root, 'git status')
      expect(existsSync(canary())).toBe(false)
    })

    test('settings of its submodules stay as they are', async () => {
      const library = join(home, 'library')
      mkdirSync(library)
      makeRepo(library)
      git(repo, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', library, 'sub')
      git(repo, 'commit', '-q', '-m', 'sub')
      linked()
      await run(`${common}; ${evil()} >> $C/modules/sub/config`)
      person(repo, 'git status')
      expect(existsSync(canary())).toBe(false)
    })

    test('I11: packed history and packed refs outlive what is deleted', async () => {
      git(repo, 'branch', 'precious')
      git(repo, 'gc', '-q')
      linked()
      await run(`${common}; rm -rf $C/objects $C/refs $C/packed-refs; git pack-refs --all --prune`)
      expect(person(repo, 'git log --format=%s -1 precious')).toBe(
        git(repo, 'log', '--format=%s', '-1', 'precious') + '\n',
      )
      expect(person(repo, 'git fsck --full refs/heads/precious; echo $?')).toMatch(/^0$/m)
    })

    test('refs that were never packed are not packed away', async () => {
      linked()
      rmSync(join(repo, '.git/packed-refs'), { force: true })
      const before = person(repo, 'git for-each-ref')
      await run('git pack-refs --all --prune; git gc -q')
      expect(person(repo, 'git for-each-ref')).toBe(before)
    })
  })
})
