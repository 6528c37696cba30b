import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, test } from 'vitest'
import type { Json, Mode } from '@baton/shared/guest.ts'
import type { Rule } from '@baton/shared/journal.ts'
import { Images } from '../src/session/images.ts'
import { performTool } from '../src/session/perform.ts'
import { objectionToWay } from '../src/session/permissions.ts'
import { builtinTools } from '../src/tools/index.ts'
import type { ToolAnswer } from '../src/tools/tool.ts'
import { context, get, put, root, top, use } from './tools-ground.ts'

describe('B4: rules for paths hold for what links lead to', () => {
  const rule = (tool: string, action: Rule['action'], prefix: string): Rule => ({ tool, prefix, action })
  beforeEach(() => {
    put('secrets/x', 'hidden')
    put('src/a.ts', 'open')
    symlinkSync('secrets', join(root, 'link'))
    symlinkSync('../secrets', join(root, 'src', 'deep'))
    symlinkSync('secrets/x', join(root, 'file'))
    symlinkSync('link/x', join(root, 'twice'))
  })

  /** As the session performs it; undefined: it ran. */
  async function refusal(name: string, path: string, mode: Mode, rules: Rule[]): Promise<string | undefined> {
    const tool = builtinTools().find(({ spec }) => spec.name === name)
    if (!tool) throw new Error(`no tool ${name}`)
    const input = {
      path,
      ...(name === 'write' ? { content: 'mine' } : {}),
      ...(name === 'edit' ? { old_text: 'hidden', new_text: 'mine' } : {}),
      ...(name === 'grep' || name === 'glob' ? { pattern: '.' } : {}),
    }
    const policy = { mode, rules, tools: new Map([[name, tool]]) }
    const objectionTo = (other: { [key: string]: Json }): string | undefined =>
      objectionToWay(policy, { name, input }, other)
    const images = new Images({ blobs: {} as never, sid: 's', key: new Uint8Array() })
    const done = await performTool(tool, { name, input }, images, { ...context, objectionTo }, [])
    const result = 'result' in done ? (done.result as unknown as ToolAnswer) : undefined
    return result?.detail?.['code'] === 'not-allowed' ? result.text : undefined
  }

  test.each([
    ...['link/x', 'link/new', 'src/deep/x', 'file', 'twice', './link//x'].map(
      (path) => ['write', path] as const,
    ),
    ...['link/x', 'file'].flatMap((path) => [['read', path] as const, ['edit', path] as const]),
    ...[['grep', 'link'] as const, ['glob', 'src/deep'] as const],
  ])('%s of %s is denied with the folder', async (tool, path) => {
    expect(await refusal(tool, path, 'full', [rule(tool, 'deny', 'secrets')])).toMatch(
      new RegExp(`leads to secrets.*forbidden for ${tool}: the rule "deny ${tool}: secrets"`),
    )
    expect(await refusal(tool, path, 'full', [rule(tool, 'ask', 'secrets')])).toContain('a person is asked')
    expect(get('secrets/x')).toBe('hidden')
    expect(existsSync(join(root, 'secrets/new'))).toBe(false)
  })

  it('and a rule that allows does not reach out of its folder by one', async () => {
    expect(await refusal('write', 'src/deep/x', 'ask', [rule('write', 'allow', 'src')])).toContain(
      'src/deep/x leads to secrets/x. For that a person is asked',
    )
    expect(await refusal('write', 'src/a.ts', 'ask', [rule('write', 'allow', 'src')])).toBeUndefined()
    expect(get('src/a.ts')).toBe('mine')
  })

  it('and where no rule is about it, links are followed', async () => {
    expect(await refusal('write', 'link/x', 'full', [rule('write', 'deny', 'src')])).toBeUndefined()
    expect(await refusal('write', 'file', 'ask', [])).toBeUndefined()
    expect(get('secrets/x')).toBe('mine')
  })
})

describe('paths', () => {
  beforeEach(() => {
    writeFileSync(join(top, 'secret.txt'), 'secret')
    put('inside.txt', 'inside')
    symlinkSync(top, join(root, 'up'))
    symlinkSync('../secret.txt', join(root, 'leak.txt'))
    symlinkSync('../new.txt', join(root, 'dangling.txt'))
    symlinkSync('inside.txt', join(root, 'fine.txt'))
    symlinkSync('loop', join(root, 'loop'))
  })

  test.each([
    '../secret.txt',
    'a/../../secret.txt',
    '/etc/passwd',
    'up/secret.txt',
    'leak.txt',
    'up/new/file.txt',
  ])('%s leads out and is refused by every tool', async (path) => {
    for (const [name, input] of [
      ['read', { path }],
      ['write', { path, content: 'x' }],
      ['edit', { path, old_string: 'secret', new_string: 'x' }],
      ['glob', { pattern: '*', path }],
      ['grep', { pattern: 'secret', path }],
    ] as const) {
      const result = await use(name, input)
      expect(result, name).toMatchObject({ is_error: true, detail: { code: 'outside-workspace' } })
      expect(result.text).not.toContain('secret\n')
    }
    expect(readFileSync(join(top, 'secret.txt'), 'utf8')).toBe('secret')
    expect(readdirSync(top).sort()).toEqual(['secret.txt', 'work'])
  })

  test.each(['dangling.txt', 'loop', 'a\0b'])('%j is refused in words', async (path) => {
    expect(await use('write', { path, content: 'x' })).toMatchObject({ is_error: true })
    expect(existsSync(join(top, 'new.txt'))).toBe(false)
  })

  test('a link inside, and an absolute path inside, are fine', async () => {
    expect((await use('read', { path: 'fine.txt' })).text).toContain('inside')
    expect((await use('read', { path: join(root, 'inside.txt') })).text).toContain('inside')
    await use('write', { path: 'fine.txt', content: 'changed' })
    expect(get('inside.txt')).toBe('changed')
  })

  test('a root that is itself reached by a link is no trouble', async () => {
    symlinkSync(root, join(top, 'alias'))
    Object.assign(context, { root: join(top, 'alias') })
    expect((await use('read', { path: 'inside.txt' })).text).toContain('inside')
    expect((await use('read', { path: join(top, 'alias', 'inside.txt') })).text).toContain('inside')
    expect(await use('read', { path: '../secret.txt' })).toMatchObject({ is_error: true })
  })

  test('B10: what belongs to git is not written', async () => {
    put('.git/config', 'x')
    expect(await use('write', { path: '.git/config', content: '' })).toMatchObject({ is_error: true })
    expect(await use('write', { path: 'x/../.GIT/hooks/pre-commit', content: '' })).toMatchObject({
      is_error: true,
    })
    expect(get('.git/config')).toBe('x')
    for (const path of [
      'sub/.git/config',
      'a/b/.Git',
      '.git./config',
      'sub/git~1/hooks/x',
      'sub/.g\u200cit/config',
    ])
      expect(await use('write', { path, content: '' }), path).toMatchObject({ is_error: true })
    expect(await use('write', { path: '.gitignore', content: 'x' })).toMatchObject({ is_error: false })
  })
})

describe('read', () => {
  test('numbers the lines, from an offset, up to a limit', async () => {
    put('a.txt', 'one\ntwo\r\nthree\nfour\n')
    expect((await use('read', { path: 'a.txt' })).text).toBe(
      '     1\tone\n     2\ttwo\n     3\tthree\n     4\tfour',
    )
    expect((await use('read', { path: 'a.txt', offset: 2, limit: 2 })).text).toBe(
      '     2\ttwo\n     3\tthree\n… 1 of 4 lines follow: read on with offset 4.',
    )
    expect(await use('read', { path: 'a.txt', offset: 5 })).toMatchObject({ is_error: true })
  })

  test('bounds long files and long lines', async () => {
    put('long.txt', Array.from({ length: 5_000 }, (_, n) => `${n + 1}`).join('\n'))
    const { text } = await use('read', { path: 'long.txt' })
    expect(text).toMatch(/\n  2000\t2000\n… 3000 of 5000 lines follow: read on with offset 2001\.$/)
    put('wide.txt', `${'😀'.repeat(50_000)}\n${'x'.repeat(20)}`)
    const wide = (await use('read', { path: 'wide.txt' })).text
    expect(wide.length).toBeLessThan(3_000)
    expect(wide.isWellFormed()).toBe(true)
    put('heavy.txt', `${'y'.repeat(1_000)}\n`.repeat(500))
    expect((await use('read', { path: 'heavy.txt' })).text.length).toBeLessThan(32_000)
  })

  test('says what it can not show', async () => {
    put('binary', Uint8Array.of(1, 0, 2))
    put('empty', '')
    mkdirSync(join(root, 'folder'))
    execFileSync('mkfifo', [join(root, 'pipe')])
    put('huge', '')
    execFileSync('truncate', ['-s', '20M', join(root, 'huge')])
    expect((await use('read', { path: 'binary' })).text).toContain('binary file of 3 bytes')
    expect(await use('read', { path: 'empty' })).toMatchObject({
      text: '(the file is empty)',
      is_error: false,
    })
    expect((await use('read', { path: 'folder' })).text).toContain('is a folder')
    expect((await use('read', { path: 'pipe' })).text).toContain('not an ordinary file')
    expect((await use('read', { path: 'huge' })).text).toContain('too large (20.0 MB)')
    expect((await use('read', { path: 'nothing' })).text).toContain('There is no file nothing')
    expect((await use('read', { path: 'empty/x' })).text).toContain('not a folder')
  })

  test('F50: invalid UTF-8 gives valid text', async () => {
    put('latin1.txt', Buffer.from('caf\xe9\n', 'latin1'))
    expect((await use('read', { path: 'latin1.txt' })).text).toBe('     1\tcaf\ufffd')
  })
})

describe('write', () => {
  test('creates folders and file, then replaces it, keeps its mode and shows the difference', async () => {
    const created = await use('write', { path: 'a/b/c.sh', content: 'one\n' })
    expect(created).toMatchObject({ is_error: false, detail: { created: true, added: 1, removed: 0 } })
    chmodSync(join(root, 'a/b/c.sh'), 0o755)
    const replaced = await use('write', { path: 'a/b/c.sh', content: 'two\n' })
    expect(replaced).toMatchObject({ is_error: false, detail: { created: false, added: 1, removed: 1 } })
    expect(replaced.detail?.['diff']).toContain('-one\n+two')
    expect(get('a/b/c.sh')).toBe('two\n')
    expect(statSync(join(root, 'a/b/c.sh')).mode & 0o777).toBe(0o755)
    expect(readdirSync(join(root, 'a/b'))).toEqual(['c.sh'])
  })

  test("I11: in the person's own folder a file that was not read there is not replaced", async () => {
    Object.assign(context, { inPlace: true })
    put('mine.txt', 'a moment ago')
    const refused = await use('write', { path: 'mine.txt', content: 'new' })
    expect(refused).toMatchObject({ is_error: true, text: expect.stringContaining('Read it, then write.') })
    expect(get('mine.txt')).toBe('a moment ago')
    expect((await use('write', { path: 'mine.txt', content: 'a moment ago' })).is_error).toBe(false)
    put('other.txt', 'o')
    await use('read', { path: 'other.txt' })
    expect((await use('write', { path: 'other.txt', content: 'new' })).is_error).toBe(false)
    expect((await use('write', { path: 'fresh.txt', content: 'new' })).is_error).toBe(false)
  })

  test('I11: a file that changed since it was read is not replaced', async () => {
    put('a.txt', 'read\n')
    await use('read', { path: 'a.txt' })
    put('a.txt', 'by a person\n')
    const refused = await use('write', { path: 'a.txt', content: 'by the agent\n' })
    expect(refused).toMatchObject({ is_error: true, detail: { code: 'changed' } })
    expect(get('a.txt')).toBe('by a person\n')
    await use('read', { path: 'a.txt' })
    expect(await use('write', { path: 'a.txt', content: 'by the agent\n' })).toMatchObject({
      is_error: false,
    })
  })

  test('I11: a reader never sees half a file', async () => {
    const sizes = new Set<number>()
    const content = (n: number): string => String(n % 10).repeat(400_000)
    put('a.txt', content(0))
    let writing = true
    const reading = (async () => {
      while (writing) {
        sizes.add(statSync(join(root, 'a.txt')).size)
        await new Promise((resolve) => setImmediate(resolve))
      }
    })()
    for (let n = 1; n <= 20; n++) await use('write', { path: 'a.txt', content: content(n) })
    writing = false
    await reading
    expect([...sizes]).toEqual([400_000])
  })

  test('F50: NUL is written as it is, half a surrogate pair is refused', async () => {
    await use('write', { path: 'a', content: 'x\0y' })
    expect(get('a')).toBe('x\0y')
    expect(await use('write', { path: 'a', content: 'x\ud83d' })).toMatchObject({ is_error: true })
    expect(get('a')).toBe('x\0y')
  })

  test('says what is in the way', async () => {
    put('file', 'x')
    mkdirSync(join(root, 'folder'))
    expect((await use('write', { path: 'file/x', content: '' })).text).toContain('is a file, not a folder')
    expect((await use('write', { path: 'folder', content: '' })).text).toContain('is a folder')
    expect((await use('write', { path: 'n'.repeat(300), content: '' })).text).toContain('too long')
  })
})

describe('edit', () => {
  const edit = (old_string: string, new_string: string, more = {}): Promise<ToolAnswer> =>
    use('edit', { path: 'a.txt', old_string, new_string, ...more })

  test('replaces what is unique, and shows the difference', async () => {
    put('a.txt', 'one\ntwo\nthree\n')
    const result = await edit('two\n', 'zwei\n')
    expect(result).toMatchObject({ is_error: false, detail: { replacements: 1, added: 1, removed: 1 } })
    expect(result.detail?.['diff']).toContain(' one\n-two\n+zwei\n three')
    expect(get('a.txt')).toBe('one\nzwei\nthree\n')
  })

  test('takes text as it is: no patterns, no replacement signs', async () => {
    put('a.txt', 'a.b $1 a?b')
    await edit('a.b', "$& $1 $'")
    expect(get('a.txt')).toBe("$& $1 $' $1 a?b")
  })

  test('what is not unique needs replace_all', async () => {
    put('a.txt', 'x x x')
    expect(await edit('x', 'y')).toMatchObject({ is_error: true, detail: { code: 'not-unique' } })
    expect(get('a.txt')).toBe('x x x')
    expect(await edit('x', 'y', { replace_all: true })).toMatchObject({ detail: { replacements: 3 } })
    expect(get('a.txt')).toBe('y y y')
  })

  test('what is not there is told with a hint', async () => {
    put('a.txt', 'if (a) {\n    b\n}\n')
    expect((await edit('if (a) {\n  b', 'c')).text).toContain('other white space')
    expect((await edit('     1\tif (a) {', 'c')).text).toContain('line numbers')
    expect((await edit('zzz', 'c')).text).toContain('Read the file again')
    expect(await edit('b', 'b')).toMatchObject({ is_error: true })
    expect(await edit('', 'b')).toMatchObject({ is_error: true })
  })

  test('keeps CRLF and a byte order mark', async () => {
    put('a.txt', '\ufeffone\r\ntwo\r\nthree\r\n')
    expect(await edit('one\ntwo\n', '1\n2\n2.5\n')).toMatchObject({ is_error: false })
    expect(get('a.txt')).toBe('\ufeff1\r\n2\r\n2.5\r\nthree\r\n')
    expect(await edit('three', '3\n4')).toMatchObject({ is_error: false })
    expect(get('a.txt')).toBe('\ufeff1\r\n2\r\n2.5\r\n3\r\n4\r\n')
  })

  test('leaves mixed line endings as they are', async () => {
    put('a.txt', 'a\r\nb\nc\r\nd')
    expect(await edit('b\nc', 'B\nC')).toMatchObject({ is_error: false })
    expect(get('a.txt')).toBe('a\r\nB\nC\r\nd')
    expect(await edit('C\nd', 'c\nD')).toMatchObject({ is_error: false })
    expect(get('a.txt')).toBe('a\r\nB\nc\r\nD')
  })

  test('does not damage a file that is not UTF-8', async () => {
    const bytes = Buffer.from('caf\xe9 one\n', 'latin1')
    put('a.txt', bytes)
    expect(await edit('one', 'two')).toMatchObject({ is_error: true })
    expect(readFileSync(join(root, 'a.txt'))).toEqual(bytes)
  })

  test('the same edit again after an interruption is no error', async () => {
    put('a.txt', 'one two\n')
    await edit('one', 'eins')
    expect(await edit('one', 'eins')).toMatchObject({ is_error: false })
    expect(get('a.txt')).toBe('eins two\n')
  })
})

test('what runs with each session is not written where it is kept', async () => {
  put('baton.config.ts', 'export default {}')
  symlinkSync('baton.config.ts', join(root, 'alias'))
  put('sub/baton.config.ts', 'x')
  const own = { ...context, stay: { kept: ['baton.config.ts'], end: async () => undefined } }
  const write = builtinTools().find(({ spec }) => spec.name === 'write')
  for (const path of ['baton.config.ts', './sub/../baton.config.ts', 'alias'])
    expect(await write?.execute({ path, content: 'evil' }, own), path).toMatchObject({
      detail: { code: 'kept' },
    })
  expect(get('baton.config.ts')).toBe('export default {}')
  const inside = await write?.execute({ path: 'sub/baton.config.ts', content: 'fine' }, own)
  expect(inside).toMatchObject({ is_error: false })
  expect(await use('write', { path: 'baton.config.ts', content: 'fine' })).toMatchObject({ is_error: false })
})

test('every tool has a schema that forbids what it does not know, and the policies of the contract', async () => {
  const policies = builtinTools().map(({ spec }) => [spec.name, spec.replay, spec.access])
  expect(policies).toEqual([
    ['bash', 'never', 'run'],
    ['job', 'safe', 'read'],
    ['read', 'safe', 'read'],
    ['write', 'safe', 'edit'],
    ['edit', 'safe', 'edit'],
    ['glob', 'safe', 'read'],
    ['grep', 'safe', 'read'],
    ['fetch', 'safe', 'run'],
  ])
  for (const { spec } of builtinTools()) {
    expect(spec.schema).toMatchObject({ type: 'object', additionalProperties: false })
    expect(JSON.parse(JSON.stringify(spec))).toEqual(spec)
  }
})
