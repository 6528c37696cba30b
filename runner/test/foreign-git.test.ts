import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { spawnSync } from 'node:child_process'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { git, makeRepo } from '@baton/test/repo.ts'
import { builtinTools } from '../src/tools/index.ts'

let root: string
let canary: string
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), 'baton-foreign-')))
  canary = join(root, 'ran')
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

/** A repository that lacks an object, and whose settings say that a program of an agent's fetches it. */
function plant(folder: string): void {
  mkdirSync(folder)
  makeRepo(folder)
  writeFileSync(join(folder, '.gitignore'), 'x\n')
  git(folder, 'add', '.gitignore')
  git(folder, 'commit', '-q', '-m', 'ignore')
  const lacking = git(folder, 'rev-parse', 'HEAD:.gitignore')
  git(folder, 'update-index', '--skip-worktree', '.gitignore')
  rmSync(join(folder, '.gitignore'))
  rmSync(join(folder, '.git/objects', lacking.slice(0, 2), lacking.slice(2)))
  for (const [name, value] of [
    ['core.repositoryFormatVersion', '1'],
    ['extensions.partialClone', 'origin'],
    ['remote.origin.url', folder],
    ['remote.origin.promisor', 'true'],
    ['remote.origin.uploadpack', `touch ${canary}; false`],
    ['protocol.allow', 'always'],
  ] as const)
    git(folder, 'config', name, value)
}

test('the planted repository would run its program', () => {
  plant(join(root, 'nested'))
  spawnSync('git', ['ls-files', '--others', '--exclude-standard'], { cwd: join(root, 'nested') })
  expect(existsSync(canary)).toBe(true)
})

test.each([
  ['glob', { path: '.', pattern: '**/*' }],
  ['grep', { path: '.', pattern: 'a' }],
])('B10: %s runs nothing of a repository that an agent made', async (name, input) => {
  plant(join(root, 'nested'))
  const tool = builtinTools().find(({ spec }) => spec.name === name)
  const result = await tool?.execute(input, {
    root: join(root, 'nested'),
    readFiles: new Map(),
    signal: new AbortController().signal,
  })
  expect(result?.text).toBeTypeOf('string')
  expect(existsSync(canary)).toBe(false)
})
