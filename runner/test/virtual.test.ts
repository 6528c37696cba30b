import { randomBytes } from 'node:crypto'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Json } from '@baton/shared/guest.ts'
import { VirtualFiles } from '../src/virtual/files.ts'
import { packChange, unpackChange } from '../src/virtual/pack.ts'
import { ScratchTrees } from '../src/virtual/scratch.ts'
import { virtualTools } from '../src/virtual/tools.ts'
import {
  assertCarried,
  changeBetween,
  digestOf,
  withChange,
  type Node,
  type Tree,
} from '../src/virtual/tree.ts'
import { VirtualWorkspace } from '../src/virtual/workspace.ts'
import { builtinTools } from '../src/tools/index.ts'
import type { ToolAnswer } from '../src/tools/tool.ts'
import type { PackFile } from '../src/workspace/workspace.ts'

let workspace: VirtualWorkspace
beforeEach(() => (workspace = VirtualWorkspace.open()))
afterEach(() => workspace.close())

/** A call, and the checkpoint that lands with its outcome. */
async function use(
  name: string,
  input: { [key: string]: Json },
  signal = new AbortController().signal,
): Promise<ToolAnswer> {
  const answer = await call(name, input, signal)
  await workspace.checkpoint()
  return answer
}

function call(
  name: string,
  input: { [key: string]: Json },
  signal = new AbortController().signal,
  own = workspace,
): Promise<ToolAnswer> {
  const tool = virtualTools('virtual').find(({ spec }) => spec.name === name)
  if (!tool) throw new Error(`no tool ${name}`)
  return tool.execute(input, { root: own.root, readFiles: new Map(), signal, stay: own.stay })
}

const run = (command: string, more: { [key: string]: Json } = {}) => use('bash', { command, ...more })

test('T12: the tools have the names and schemas of any other workspace', () => {
  const usual = new Map(builtinTools().map(({ spec }) => [spec.name, spec]))
  for (const { spec } of virtualTools('virtual')) {
    expect(usual.has(spec.name)).toBe(true)
    if (spec.name !== 'bash') expect(spec).toEqual(usual.get(spec.name))
  }
  expect(virtualTools('virtual').map(({ spec }) => spec.name)).toEqual([
    'bash',
    'read',
    'write',
    'edit',
    'glob',
    'grep',
    'fetch',
  ])
})

test('files are written, edited, read, found and searched', async () => {
  expect((await use('write', { path: 'src/a.txt', content: 'one\ntwo 😀\n' })).text).toBe(
    'Created src/a.txt (13 bytes).',
  )
  expect((await use('edit', { path: 'src/a.txt', old_string: 'two', new_string: 'TWO' })).is_error).toBe(
    false,
  )
  expect((await use('read', { path: '/workspace/src/a.txt' })).text).toBe('     1\tone\n     2\tTWO 😀')
  await run('mkdir -p lib node_modules/x && echo "TWO too" > lib/b.md && echo TWO > node_modules/x/c.txt')
  expect((await use('glob', { pattern: '**' })).text).toBe('lib/b.md\nsrc/a.txt')
  expect((await use('glob', { pattern: '*.txt', path: 'src' })).text).toBe('src/a.txt')
  expect((await use('grep', { pattern: 'TWO' })).text).toBe('lib/b.md:1:TWO too\nsrc/a.txt:2:TWO 😀')
  expect((await use('grep', { pattern: 't[w]o', ignore_case: true, glob: '*.txt', context: 1 })).text).toBe(
    'src/a.txt-1-one\nsrc/a.txt:2:TWO 😀',
  )
  expect((await use('grep', { pattern: 'TWO t', literal: true, files_only: true })).text).toBe('lib/b.md')
  expect((await use('grep', { pattern: '(' })).text).toContain('The search failed')
  expect((await use('read', { path: 'none' })).text).toContain('There is no file none')
  expect((await use('read', { path: 'src' })).text).toContain('is a folder')
})

test('a command sees the files, and what it does to them is seen', async () => {
  await use('write', { path: 'in.txt', content: 'b\na\n' })
  expect(
    await run('sort in.txt > out.txt; cat out.txt; pwd; rm in.txt; chmod 755 out.txt; ln -s out.txt link'),
  ).toMatchObject({
    text: 'a\nb\n/workspace',
    is_error: false,
  })
  expect([...workspace.files.tree.keys()].toSorted()).toEqual(['link', 'out.txt'])
  expect(workspace.files.tree.get('out.txt')).toMatchObject({ mode: 0o755 })
  expect((await use('read', { path: 'link' })).text).toBe('     1\ta\n     2\tb')
  expect(await run('echo out; echo err >&2; exit 3')).toMatchObject({
    text: 'out\nerr\n[Exit code 3.]',
    is_error: true,
  })
  expect((await run('if then')).text).toContain('syntax error')
})

test('F50: bytes of files stay as they are', async () => {
  await run(
    `echo /wD+8J+YgA== | base64 -d > odd.bin; mkdir -p 'a b/ü😀'; printf x > 'a b/ü😀/-n'; cp odd.bin cp.bin; cat cp.bin > copy.bin`,
  )
  const node = workspace.files.tree.get('copy.bin')
  expect(node?.type === 'file' && Buffer.from(node.bytes).toString('hex')).toBe('ff00fef09f9880')
  expect(workspace.files.tree.has('a b/ü😀/-n')).toBe(true)
})

describe('T13: nothing of the machine is in reach', () => {
  test.each(['../secret', '/etc/passwd', 'up/x', 'leak'])('%s leads out for every tool', async (path) => {
    await run('ln -s / up; ln -s /etc/passwd leak')
    for (const [name, input] of [
      ['read', { path }],
      ['write', { path, content: 'x' }],
      ['edit', { path, old_string: 'a', new_string: 'b' }],
      ['grep', { pattern: 'x', path }],
    ] as const) {
      expect(await use(name, input), name).toMatchObject({
        is_error: true,
        detail: { code: 'outside-workspace' },
      })
    }
  })

  test('the shell has a disk, a network and an environment of its own', async () => {
    process.env['CANARY'] = 'canary-env'
    const { text } = await run(
      'cat /etc/hostname; ls /work /home; env; curl http://127.0.0.1/; node -v; git status; cat /proc/self/environ',
    )
    delete process.env['CANARY']
    expect(text).not.toContain('canary')
    expect(text).toMatch(/curl: command not found/)
    expect(text).toMatch(/node: command not found/)
  })
})

describe('what takes too long is ended, and the files are as before', () => {
  test('at the time-out', async () => {
    await use('write', { path: 'a', content: '1' })
    const result = await run('echo 2 > a; while :; do :; done', { timeout_ms: 400 })
    expect(result).toMatchObject({ is_error: true, detail: { ended_by: 'timeout' } })
    expect((await run('cat a')).text).toBe('1')
  })

  test('by Stop', async () => {
    const stop = new AbortController()
    const running = call('bash', { command: 'echo 2 > a; while :; do :; done' }, stop.signal)
    stop.abort()
    await expect(running).rejects.toMatchObject({ code: 'stopped' })
    expect((await run('cat a')).text).toContain('No such file')
  })

  test('a pattern that explodes', async () => {
    await use('write', { path: 'a', content: `${'a'.repeat(40)}!\n` })
    const stop = new AbortController()
    const search = call('grep', { pattern: '^(a+)+$' }, stop.signal)
    setImmediate(() => stop.abort())
    await expect(search).rejects.toMatchObject({ code: 'stopped' })
  })
})

test('more than a session can carry is refused, and nothing is changed', async () => {
  const big: Node = { type: 'file', mode: 0o644, bytes: new Uint8Array(65 << 20) }
  expect(() => assertCarried(new Map([['big', big]]))).toThrow(/65 MB of files/)
  const a1: Node = { type: 'file', mode: 0o644, bytes: new Uint8Array(60 << 20) }
  const files = new VirtualFiles(new Map([['a1', a1]]))
  const place = await files.place('a2', 'write')
  const message = expect.stringContaining('Nothing was changed')
  const writing = files.change(() => files.replace(place, new Uint8Array(5 << 20)))
  await expect(writing).rejects.toMatchObject({ code: 'too-large', message })
  expect([...files.tree.keys()]).toEqual(['a1'])
  await files.end()
})

test('I7: one change at a time, and each checkpoint holds only changes that are over', async () => {
  const first = call('bash', { command: 'echo 1 >> log' })
  const second = call('bash', { command: 'echo 2 >> log' })
  await first
  const one = await workspace.checkpoint()
  // The second has not begun before: what is stored is what the first one left.
  const pack = await packed(await workspace.pack(one?.commit ?? '', undefined, 1 << 20))
  const tree = withChange(new Map(), unpackChange(pack))
  expect(textIn(tree, 'log')).toBe('1\n')
  await second
  await workspace.checkpoint()
  expect(textIn(workspace.files.tree, 'log')).toBe('1\n2\n')
})

describe('checkpoints', () => {
  test('packs hold what changed, and yield the same files elsewhere', async () => {
    const packs: PackFile[] = []
    let last: string | undefined
    const store = async () => {
      const checkpoint = await workspace.checkpoint()
      if (!checkpoint) return false
      packs.push(await workspace.pack(checkpoint.commit, last, 1 << 26))
      last = checkpoint.commit
      return true
    }
    expect(await store()).toBe(true)
    expect(await store()).toBe(false)
    for (let at = 1; at < 10; at++) {
      await call('write', { path: `big${at}`, content: randomBytes(50_000).toString('base64') })
      await store()
    }
    await call('bash', { command: 'mkdir -p empty/sub' })
    expect(await store()).toBe(true)
    await call('bash', { command: 'echo x > small; rm big1; rm -r empty; ln -s small big1; chmod 700 big2' })
    expect(await store()).toBe(true)
    expect(packs.reduce((sum, { bytes }) => sum + bytes, 0)).toBeGreaterThan(400_000)
    // The changed mode sends its file again; the others stay at home.
    expect(packs.at(-1)?.bytes).toBeLessThan(60_000)
    const there = await VirtualWorkspace.restore({ commit: last ?? '' }, packs)
    expect(digestOf(there.files.tree)).toBe(digestOf(workspace.files.tree))
    expect(await there.checkpoint()).toBeUndefined()
    expect((await call('bash', { command: 'cat big1; ls' }, undefined, there)).text).toMatch(
      /^x\nbig1\nbig2\n/,
    )
    await there.close()
    await expect(VirtualWorkspace.restore({ commit: last ?? '' }, packs.slice(0, -1))).rejects.toMatchObject({
      code: 'checkpoint-torn',
    })
  })

  test('F49: a torn pack is refused', () => {
    const pack = packChange({
      set: [['a', { type: 'file', mode: 0o644, bytes: Buffer.from('hello') }]],
      removed: [],
    })
    expect(unpackChange(pack).set[0]?.[0]).toBe('a')
    for (const torn of [pack.subarray(0, 10), new Uint8Array(), Buffer.from('nonsense')])
      expect(() => unpackChange(torn)).toThrow(/files of the session/)
    const out = packChange({ set: [['../a', { type: 'folder', mode: 0o755 }]], removed: [] })
    expect(() => unpackChange(out)).toThrow(/files of the session/)
  })

  test('a change between two trees makes one of the other', () => {
    const file = (text: string, mode = 0o644): Node => ({ type: 'file', mode, bytes: Buffer.from(text) })
    const before: Tree = new Map([
      ['a', file('1')],
      ['b', file('2')],
      ['c', { type: 'link', target: 'a' }],
    ])
    const after: Tree = new Map([
      ['a', file('1')],
      ['b', file('2', 0o755)],
      ['d', { type: 'folder', mode: 0o755 }],
    ])
    const change = changeBetween(before, after)
    expect(change.set.map(([path]) => path)).toEqual(['b', 'd'])
    expect(digestOf(withChange(before, change))).toBe(digestOf(after))
    expect(digestOf(before)).not.toBe(digestOf(after))
  })
})

test('T14: scratch files are there again on the runner that has them, and told to be gone anywhere else', async () => {
  const here = new ScratchTrees()
  const scratch = VirtualWorkspace.scratch(here.of('s1'), ['not stored'])
  await call('write', { path: 'a', content: 'kept' }, undefined, scratch)
  const checkpoint = await scratch.checkpoint()
  const name = checkpoint?.commit ?? ''
  expect((await scratch.pack(name, undefined, 1000)).bytes).toBeLessThan(100)
  expect(await scratch.checkpoint()).toBeUndefined()
  await scratch.close()
  const back = VirtualWorkspace.scratch(here.of('s1'), [], name)
  expect(textIn(back.files.tree, 'a')).toBe('kept')
  // Elsewhere it went on without them; what is left here is of another time.
  expect(VirtualWorkspace.scratch(here.of('s1'), [], 'f'.repeat(64)).files.tree.size).toBe(0)
  expect(VirtualWorkspace.scratch(new ScratchTrees().of('s1'), ['gone'], name).files.tree.size).toBe(0)
})

test('T15: a command on stored files may run again after a crash, one on scratch files may not', () => {
  expect(virtualTools('virtual')[0]?.spec).toMatchObject({ name: 'bash', replay: 'safe', access: 'run' })
  expect(virtualTools('scratch')[0]?.spec).toMatchObject({ name: 'bash', replay: 'never', access: 'run' })
})

function textIn(tree: Tree, path: string): string | undefined {
  const node = tree.get(path)
  return node?.type === 'file' ? Buffer.from(node.bytes).toString('utf8') : undefined
}

async function packed(pack: PackFile): Promise<Uint8Array> {
  const pieces: Uint8Array[] = []
  for await (const piece of pack.pieces(1 << 20)) pieces.push(piece)
  return Buffer.concat(pieces)
}
