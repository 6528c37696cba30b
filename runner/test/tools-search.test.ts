/** glob and grep. */
import { execFileSync } from 'node:child_process'
import { rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { Json } from '@baton/shared/guest.ts'
import { put, root, top, use } from './tools-ground.ts'

describe.each(['git', 'no git'])('searching, with %s', (kind) => {
  beforeEach(() => {
    put('src/a.ts', 'export const alpha = 1\nconst beta = 2\n')
    put('src/deep/b.ts', 'const Alpha = 3\n')
    put('src/c.tsx', 'alpha\n')
    put('notes.md', 'a.b (x) alpha:beta\n')
    put('odd: name 😀.md', 'alpha\n')
    put('binary.bin', Uint8Array.of(97, 108, 112, 104, 97, 0, 10))
    put('node_modules/x/index.ts', 'alpha\n')
    put('.gitignore', 'node_modules\n')
    if (kind === 'git') {
      execFileSync('git', ['init', '-q'], { cwd: root })
      execFileSync('git', ['add', 'src'], { cwd: root })
    }
  })

  test('glob lists what matches, sorted, without ignored files', async () => {
    const list = async (pattern: string, path?: string): Promise<string> =>
      (await use('glob', { pattern, ...(path ? { path } : {}) })).text
    expect(await list('**/*.ts')).toBe('src/a.ts\nsrc/deep/b.ts')
    expect(await list('*.{ts,tsx}')).toBe('src/a.ts\nsrc/c.tsx\nsrc/deep/b.ts')
    expect(await list('src/*')).toBe('src/a.ts\nsrc/c.tsx')
    expect(await list('./src/*.ts')).toBe('src/a.ts')
    expect(await list('*.ts', 'src/deep')).toBe('src/deep/b.ts')
    expect(await list('*.rs')).toBe('No file matches.')
    expect(await list('odd*')).toBe('odd: name 😀.md')
    expect(await use('glob', { pattern: '*', path: 'nowhere' })).toMatchObject({ is_error: true })
  })

  test('glob leaves out what was deleted', async () => {
    rmSync(join(root, 'src/a.ts'))
    expect((await use('glob', { pattern: 'src/*' })).text).toBe('src/c.tsx')
  })

  test('glob is bounded', async () => {
    for (let n = 0; n < 510; n++) put(`many/${String(n).padStart(3, '0')}.txt`, '')
    const { text, detail } = await use('glob', { pattern: 'many/*' })
    expect(text.split('\n')).toHaveLength(501)
    expect(text).toContain('… about 10 more')
    expect(detail).toEqual({ files: 500, more: 10 })
  })

  test('grep finds lines in tracked and new files, not in ignored and binary ones', async () => {
    const find = async (input: { [key: string]: Json }): Promise<string> => (await use('grep', input)).text
    expect(await find({ pattern: '\\balpha\\b' })).toBe(
      'notes.md:1:a.b (x) alpha:beta\nodd: name 😀.md:1:alpha\nsrc/a.ts:1:export const alpha = 1\nsrc/c.tsx:1:alpha',
    )
    expect(await find({ pattern: 'alpha', glob: '*.{ts,md}', files_only: true })).toBe(
      'notes.md\nodd: name 😀.md\nsrc/a.ts',
    )
    expect(await find({ pattern: 'ALPHA', ignore_case: true, path: 'src/deep' })).toBe(
      'src/deep/b.ts:1:const Alpha = 3',
    )
    expect(await find({ pattern: 'beta', path: 'src/a.ts' })).toBe('src/a.ts:2:const beta = 2')
    expect(await find({ pattern: 'a.b (x)', literal: true })).toContain('notes.md:1:')
    put('odd [dir]*/x.ts', 'gamma\n')
    expect(await find({ pattern: 'gamma', path: 'odd [dir]*', glob: '*.ts' })).toBe('odd [dir]*/x.ts:1:gamma')
    expect(await find({ pattern: 'gamma', path: 'odd [dir]*' })).toBe('odd [dir]*/x.ts:1:gamma')
    expect(await find({ pattern: 'alpha', path: 'src', glob: 'deep/*.ts', ignore_case: true })).toBe(
      'src/deep/b.ts:1:const Alpha = 3',
    )
    expect(await find({ pattern: '-- -e' })).toBe('No match.')
    expect(await find({ pattern: 'beta', path: 'src', context: 1 })).toBe(
      'src/a.ts-1-export const alpha = 1\nsrc/a.ts:2:const beta = 2',
    )
  })

  test('grep tells a faulty pattern and a missing path in words', async () => {
    expect(await use('grep', { pattern: '(' })).toMatchObject({ is_error: true })
    expect((await use('grep', { pattern: '(' })).text).toContain('parenthesis')
    expect(await use('grep', { pattern: 'a', path: 'nowhere' })).toMatchObject({ is_error: true })
    expect(await use('grep', { pattern: 'a\nb' })).toMatchObject({ is_error: true })
  })

  test('grep is bounded', async () => {
    put('many.txt', 'needle\n'.repeat(1_000))
    put('wide.txt', `needle ${'x'.repeat(100_000)}\n`)
    const { text } = await use('grep', { pattern: 'needle' })
    expect(text.split('\n')).toHaveLength(201)
    expect(text.length).toBeLessThan(31_000)
    expect((await use('grep', { pattern: 'needle', path: 'wide.txt' })).text.length).toBeLessThan(600)
  })
})

describe('ignore files', () => {
  test('nested ones, exceptions and those of the person count for glob and grep alike', async () => {
    execFileSync('git', ['init', '-q', root])
    put('.gitignore', '*.log\n!keep.log\nbuild/\n')
    put('sub/.gitignore', 'local.txt\n!*.log\n')
    put('.git/info/exclude', 'private.txt\n')
    writeFileSync(join(top, 'ignore'), 'mine.txt\n')
    writeFileSync(join(top, 'config'), `[core]\n  excludesFile = ${join(top, 'ignore')}\n`)
    vi.stubEnv('GIT_CONFIG_GLOBAL', join(top, 'config'))
    for (const path of [
      'a.log',
      'keep.log',
      'build/x.txt',
      'sub/b.log',
      'sub/local.txt',
      'sub/seen.txt',
      'private.txt',
      'mine.txt',
    ])
      put(path, 'needle\n')
    const expected = ['keep.log', 'sub/b.log', 'sub/seen.txt']
    const listed = (await use('glob', { pattern: '**' })).text.split('\n')
    expect(listed.filter((path) => !path.endsWith('.gitignore'))).toEqual(expected)
    const found = (await use('grep', { pattern: 'needle', files_only: true })).text.split('\n')
    expect(found.toSorted()).toEqual(expected)
    vi.unstubAllEnvs()
  })
})
