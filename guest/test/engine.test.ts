import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import binaryen from 'binaryen'
import { expect, test } from 'vitest'
import type { EngineInfo } from '../src/build-engine.ts'
import { shareSaving } from '../src/engine/save.ts'
import { limitMemory } from '../src/engine/limit-memory.ts'
import { instrumentLoops } from '../src/engine/loops.ts'
import { functions } from '../src/engine/walk.ts'
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

test('F56: every shape of endless loop is interrupted, and one that ends returns what it did before', () => {
  const text = `(module
    (func (export "back") (loop $l (br $l)))
    (func (export "if") (param $n i32) (loop $l (if (local.get $n) (then (br $l)))))
    (func (export "table") (param $n i32) (block $b (loop $l (br_table $b $l (local.get $n)))))
    (func (export "many") (param $n i32)
      (loop $l (br_if $l (local.get $n)) (br_if $l (local.get $n)) (br_if $l (local.get $n)) (br_if $l (local.get $n))))
    (func (export "nest") (loop $a (loop $b (br $a))))
    (func (export "deep") (param $n i32) (loop $a (loop $b (loop $c (br_if $b (local.get $n)) (br $a)))))
    (func $self (export "self") (loop $l (call $self) (br $l)))
    (func (export "value") (param $n i32) (result i32) (local $i i32)
      (i32.add (i32.const 1000) (loop $l (result i32)
        (local.set $i (i32.add (local.get $i) (i32.const 3)))
        (br_if $l (i32.lt_u (local.get $i) (local.get $n)))
        (local.get $i))))
    (func (export "nested") (param $n i32) (result i32) (local $i i32) (local $j i32) (local $s i32)
      (loop $a
        (local.set $j (i32.const 0))
        (loop $b
          (local.set $s (i32.add (local.get $s) (i32.mul (local.get $i) (local.get $j))))
          (local.set $j (i32.add (local.get $j) (i32.const 1)))
          (br_if $b (i32.lt_u (local.get $j) (local.get $n))))
        (local.set $i (i32.add (local.get $i) (i32.const 1)))
        (br_if $a (i32.lt_u (local.get $i) (local.get $n))))
      (local.get $s)))`
  const module = binaryen.parseText(text)
  const plain = instantiate(Uint8Array.from(module.emitBinary()), () => undefined)
  module.setFeatures(binaryen.Features.MutableGlobals)
  instrumentLoops(module)
  expect(module.validate()).toBeTruthy()
  const bytes = Uint8Array.from(module.emitBinary())
  module.dispose()
  for (const name of ['back', 'if', 'table', 'many', 'nest', 'deep', 'self']) {
    let stops = 0
    const endless = instantiate(bytes, () => {
      if (++stops === 5) throw new Error('stopped')
      ;(endless['baton_fuel'] as WebAssembly.Global).value = 700
    })
    expect(() => (endless[name] as (n: number) => void)(1)).toThrow('stopped')
  }
  for (const name of ['value', 'nested'])
    for (const n of [0, 1, 2, 255, 256, 257, 400])
      for (const refill of [0, 1, 300]) {
        const checked = instantiate(bytes, () => {
          ;(checked['baton_fuel'] as WebAssembly.Global).value = refill
        })
        const run = (exports: WebAssembly.Instance['exports']): number =>
          (exports[name] as (n: number) => number)(n)
        expect(run(checked)).toBe(run(plain))
      }
})

test('F55: a frame is saved by shared code as by code of its own', () => {
  const save = (locals: string, pop: string): string => `
    (i32.store $asyncify_memory (i32.load $asyncify_memory (global.get $__asyncify_data)) (local.get $index))
    (i32.store $asyncify_memory (global.get $__asyncify_data)
      (i32.add (i32.load $asyncify_memory (global.get $__asyncify_data)) (i32.const 4)))
    ${locals}
    (i32.store $asyncify_memory (global.get $__asyncify_data)
      (i32.add (i32.load $asyncify_memory (global.get $__asyncify_data)) (i32.const ${pop})))`
  const start = `(local.tee $p (i32.load $asyncify_memory (global.get $__asyncify_data)))`
  const text = `(module
    (memory $memory 1)
    (memory $asyncify_memory 1)
    (export "m" (memory $asyncify_memory))
    (global $__asyncify_data (mut i32) (i32.const 8))
    (func $set (export "set") (param $at i32) (i32.store $asyncify_memory (i32.const 8) (local.get $at)))
    (func $shared (param $index i32) (param $a i32) (param $b i64) (param $c f64) (result i32) (local $p i32)
      ${save(
        `(i32.store $asyncify_memory ${start} (local.get $a))
        (i64.store $asyncify_memory offset=4 align=4 (local.get $p) (local.get $b))
        (f64.store $asyncify_memory offset=12 align=4 (local.get $p) (local.get $c))
        (i32.store $asyncify_memory offset=20 (local.get $p) (i32.const 7))`,
        '24',
      )}
      (i32.const 0))
    (func $wanted (param $index i32) (param $a i32) (param $b i64) (param $c f64) (result i32) (local $p i32)
      ${save(`(i32.store $asyncify_memory ${start} (local.get $a))`, '4')}
      (local.get $p))
    (func $other (param $index i32) (param $a i32) (param $b i64) (param $c f64) (result i32) (local $p i32)
      ${save(`(i32.store $asyncify_memory ${start} (local.get $a))`, '8')}
      (i32.const 0))
    (export "shared" (func $shared)) (export "wanted" (func $wanted)) (export "other" (func $other)))`
  const module = binaryen.parseText(text)
  module.setFeatures(binaryen.Features.MultiMemory | binaryen.Features.MutableGlobals)
  const own = instantiate(Uint8Array.from(module.emitBinary()), () => undefined)
  expect(shareSaving(module, functions(module))).toBe(1)
  expect(module.validate()).toBeTruthy()
  const shared = instantiate(Uint8Array.from(module.emitBinary()), () => undefined)
  module.dispose()
  for (const name of ['shared', 'wanted', 'other']) {
    const results = [own, shared].map((exports) => {
      ;(exports['set'] as (at: number) => void)(64)
      const save = exports[name] as (index: number, a: number, b: bigint, c: number) => number
      const result = save(3, -5, -(2n ** 62n), -0.1)
      return [result, Buffer.from((exports['m'] as WebAssembly.Memory).buffer).toString('base64')]
    })
    expect(results[1]).toEqual(results[0])
  }
})

function instantiate(bytes: Uint8Array<ArrayBuffer>, interrupt: () => void): WebAssembly.Instance['exports'] {
  return new WebAssembly.Instance(new WebAssembly.Module(bytes), { baton: { interrupt } }).exports
}

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
