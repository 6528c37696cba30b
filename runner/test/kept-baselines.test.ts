import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { Baseline } from '../src/vm/baseline.ts'
import { KeptBaselines, type Origin } from '../src/vm/kept-baselines.ts'
import { program } from './vm-programs.ts'

const cli = fileURLToPath(new URL('../src/cli.ts', import.meta.url))
const { engine, bundle: code, baseline } = await program(`export default async function main() { return 1 }`)
const origin: Origin = { engine, bundle: code }

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'baton-kept-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const plain = ({ memory, ...rest }: Baseline): unknown => ({ ...rest, memory: Buffer.from(memory) })

test('a baseline is read back as it was computed, into memory that threads share', () => {
  const kept = new KeptBaselines(folder)
  expect(kept.read(origin)).toBeUndefined()
  kept.keep(origin, baseline)
  const read = kept.read(origin)
  expect(read?.memory.buffer).toBeInstanceOf(SharedArrayBuffer)
  expect(read && plain(read)).toEqual(plain(baseline))
  expect(kept.read({ ...origin, bundle: engine })).toBeUndefined()
  expect(statSync(join(folder, readdirSync(folder)[0]!)).mode & 0o777).toBe(0o600)
})

test('a file that is torn, damaged or foreign counts as none', () => {
  const kept = new KeptBaselines(folder)
  kept.keep(origin, baseline)
  const [name = ''] = readdirSync(folder)
  const file = readFileSync(join(folder, name))
  const flipped = (at: number): Buffer => {
    const copy = Buffer.from(file)
    copy[at] = copy[at]! ^ 1
    return copy
  }
  const cut = [0, 7, 11, 40, file.length - 33, file.length - 1].map((length) => file.subarray(0, length))
  const bits = [0, 9, 30, file.length >> 1, file.length - 1].map(flipped)
  for (const bad of [...cut, ...bits, Buffer.from('something else'), Buffer.concat([file, file])]) {
    writeFileSync(join(folder, name), bad)
    expect(kept.read(origin)).toBeUndefined()
  }
})

test('where nothing can be written nothing is kept, and that is no error', () => {
  const file = join(folder, 'file')
  writeFileSync(file, '')
  const kept = new KeptBaselines(join(file, 'below'))
  kept.keep(origin, baseline)
  expect(kept.read(origin)).toBeUndefined()
})

test('what was kept longest ago makes room', () => {
  const kept = new KeptBaselines(folder)
  for (let i = 0; i < 20; i++) {
    kept.keep({ engine, bundle: String(i) }, baseline)
    const newest = readdirSync(folder)
      .map((name) => join(folder, name))
      .toSorted((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs)[0]!
    utimesSync(newest, i, i)
  }
  const [stale, fresh] = ['a.1.tmp', '.baton-0123456789ab.tmp'].map((name) => join(folder, name))
  for (const path of [stale!, fresh!]) writeFileSync(path, 'half')
  utimesSync(stale!, 1, 1)
  kept.keep({ engine, bundle: '19' }, baseline)
  expect([existsSync(stale!), existsSync(fresh!)]).toEqual([false, true])
  rmSync(fresh!)
  const left = Array.from({ length: 20 }, (_, i) => kept.read({ engine, bundle: String(i) }) !== undefined)
  expect(left.filter(Boolean)).toHaveLength(16)
  expect(left.slice(4).every(Boolean)).toBe(true)
})

test('the next process starts from it, without loading the bundle', async () => {
  const file = join(folder, 'agent.ts')
  const body = `export default async function main() { return 2 }`
  writeFileSync(file, body)
  let times = 0
  const made = (): string => {
    const args = [cli, 'guest', 'new', file, '-o', join(folder, `${++times}.baton`), '--json']
    const env = { ...process.env, XDG_CACHE_HOME: folder }
    return (
      JSON.parse(execFileSync(process.execPath, args, { env, encoding: 'utf8' })) as { baseline: string }
    ).baseline
  }
  const first = made()
  expect(made()).toBe(first)
  expect(first).not.toBe(baseline.hash)
  // That of another agent in its place shows where it comes from.
  const { engine: id, bundle: own } = await program(body)
  new KeptBaselines(join(folder, 'baton', 'baselines')).keep({ engine: id, bundle: own }, baseline)
  expect(made()).toBe(baseline.hash)
})
