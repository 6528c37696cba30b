import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { readInstructions } from '../src/session/instructions.ts'

let home: string
let root: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'baton-home-'))
  root = join(home, 'work')
  await mkdir(join(home, '.config/baton'), { recursive: true })
  await mkdir(root)
})
afterEach(() => rm(home, { recursive: true }))

const own = (): string => join(home, '.config/baton/AGENTS.md')

test('A10: the instructions of person and repository are told, each under its name', async () => {
  expect(await readInstructions(root, home)).toBeUndefined()
  await writeFile(own(), 'Be kind.\n')
  await writeFile(join(root, 'AGENTS.md'), 'Use tabs.\n')
  await writeFile(join(root, 'CLAUDE.md'), 'Run the tests.')
  expect(await readInstructions(root, home)).toBe(
    '# ~/.config/baton/AGENTS.md\n\nBe kind.\n\n# AGENTS.md\n\nUse tabs.\n\n# CLAUDE.md\n\nRun the tests.',
  )
})

test('A10: of two files of the same content one is told; a folder and an empty file are none', async () => {
  await mkdir(own())
  await writeFile(join(root, 'AGENTS.md'), 'Use tabs.')
  await writeFile(join(root, 'CLAUDE.md'), 'Use tabs.\n')
  expect(await readInstructions(root, home)).toBe('# AGENTS.md\n\nUse tabs.')
  await writeFile(join(root, 'AGENTS.md'), ' \n')
  expect(await readInstructions(root, home)).toBe('# CLAUDE.md\n\nUse tabs.')
})

test('A10: what is too long is cut between characters, and says so', async () => {
  await writeFile(join(root, 'AGENTS.md'), `x${'é'.repeat(40_000)}`)
  const told = (await readInstructions(root, home)) ?? ''
  expect(told).toContain('é\n[cut: together these files have more than 64 KB]')
  expect(told).not.toContain('\ufffd')
  expect(Buffer.byteLength(told)).toBeLessThan(66_000)
})

test('A10: a link out of the work tree is not followed; a workspace that is not on the disk has none', async () => {
  await writeFile(join(home, 'secret'), 'secret')
  await symlink('../secret', join(root, 'AGENTS.md'))
  await writeFile(join(root, 'rules.md'), 'Use tabs.')
  await symlink('rules.md', join(root, 'CLAUDE.md'))
  expect(await readInstructions(root, home)).toBe('# CLAUDE.md\n\nUse tabs.')
  expect(await readInstructions(undefined, home)).toBeUndefined()
})
