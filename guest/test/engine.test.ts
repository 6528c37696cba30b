import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import binaryen from 'binaryen'
import { expect, test } from 'vitest'
import type { EngineInfo } from '../src/build-engine.ts'
import { limitMemory } from '../src/engine/limit-memory.ts'
import { instrumentLoops } from '../src/engine/loops.ts'
import { refuseUnsupported } from '../src/engine/refuse.ts'

const dist = (name: string): URL => new URL(`../dist/${name}`, import.meta.url)

test('the built engine is what engine.json says, and every mutable global is exported', () => {
  const engine = readFileSync(dist('engine.wasm'))
  const info = JSON.parse(readFileSync(dist('engine.json'), 'utf8')) as EngineInfo
  expect(createHash('sha256').update(engine).digest('hex')).toBe(info.hash)
  const module = new WebAssembly.Module(engine)
  const exported = WebAssembly.Module.exports(module).filter(({ kind }) => kind === 'global')
  expect(exported.map(({ name }) => name).toSorted()).toEqual(info.globals.toSorted())
  const read = binaryen.readBinary(engine)
  const mutable = Array.from({ length: read.getNumGlobals() }, (_, i) =>
    binaryen.getGlobalInfo(read.getGlobalByIndex(i)),
  )
  expect(mutable.filter((global) => global.mutable).length).toBe(info.globals.length)
  read.dispose()
})

test('a loop that calls pays one unit an iteration; a small inner loop pays a chunk at a time; both end the same', () => {
  const text = `(module
    (import "env" "f" (func $f))
    (func (export "calls") (param $n i32) (result i32) (local $i i32)
      (loop $l (call $f) (local.set $i (i32.add (local.get $i) (i32.const 1))) (br_if $l (i32.lt_u (local.get $i) (local.get $n))))
      (local.get $i))
    (func (export "small") (param $n i32) (result i32) (local $i i32)
      (loop $l (local.set $i (i32.add (local.get $i) (i32.const 1))) (br_if $l (i32.lt_u (local.get $i) (local.get $n))))
      (local.get $i)))`
  const build = (): Uint8Array<ArrayBuffer> => {
    const module = binaryen.parseText(text)
    expect(instrumentLoops(module)).toEqual({ checked: 2, stripMined: 1 })
    const bytes = Uint8Array.from(module.emitBinary())
    module.dispose()
    return bytes
  }
  const bytes = build()
  expect(Buffer.from(build())).toEqual(Buffer.from(bytes))
  let stops = 0
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(bytes), {
    env: { f: () => undefined },
    baton: {
      interrupt: () => {
        stops++
        fuel.value = 99
      },
    },
  })
  const fuel = exports['baton_fuel'] as WebAssembly.Global
  const run = (name: string, n: number): number => (exports[name] as (n: number) => number)(n)
  fuel.value = 99
  expect(run('calls', 1000)).toBe(1000)
  expect(stops).toBe(10)
  stops = 0
  expect(run('small', 100_000)).toBe(100_000)
  expect(stops).toBe(Math.floor(100_000 / 256))
})

test('what Asyncify gets wrong is refused by function name', () => {
  const refuse = (text: string): void => {
    const module = binaryen.parseText(text)
    try {
      module.setFeatures(binaryen.Features.All)
      refuseUnsupported(module)
    } finally {
      module.dispose()
    }
  }
  expect(() => refuse('(module (func $a) (func $jump (return_call $a)))')).toThrow(
    /function jump has a tail call/,
  )
  expect(() => refuse('(module (func $holds (local externref)))')).toThrow(
    /function holds has a parameter, local or result/,
  )
  expect(() => refuse('(module (tag $t) (func $raise (throw $t)))')).toThrow(
    /function raise can't be read.*Throw/,
  )
  expect(() => refuse('(module (func $fine (param i32) (result i32) (local.get 0)))')).not.toThrow()
})

test('memory gets a maximum, whatever it had', () => {
  for (const memory of ['(memory 2)', '(memory 2 9)']) {
    const module = binaryen.parseText(`(module ${memory} (export "m" (memory 0)) (func (export "f")))`)
    const limited = limitMemory(module.emitBinary(), 300)
    module.dispose()
    const { exports } = new WebAssembly.Instance(new WebAssembly.Module(limited), {})
    const grown = exports['m'] as WebAssembly.Memory
    expect(grown.buffer.byteLength).toBe(2 * 65_536)
    grown.grow(298)
    expect(() => grown.grow(1)).toThrow()
  }
})
