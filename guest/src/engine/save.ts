/**
 * Saving a frame, in functions of its own.
 *
 * Asyncify ends every function with the code that saves its locals. It runs when the stack is unwound, which is rare, but it
 * stands in each function, makes it two or three times as large, and keeps a compiler from inlining it. Here it becomes a
 * call of a function that functions with the same types of locals share:
 *
 *     (store stack.position call-index)
 *     (store stack.position (+ stack.position 4))
 *     (store (tee $p stack.position) a)           =>      (call $baton_save_ij call-index a b)
 *     (store offset=4 $p b) …
 *     (store stack.position (+ stack.position 12))
 *
 * What it writes is the same, byte for byte. Code of another shape is left as it is.
 */
import binaryen from 'binaryen'
import { api, children, kindOf, type Expr, type Func, type Module } from './walk.ts'

/** Where Asyncify keeps the address of its stack: of two words, the position first. */
const dataGlobal = '__asyncify_data'
const memory = 'asyncify_memory'

const letters = new Map([
  [binaryen.i32, 'i'],
  [binaryen.i64, 'j'],
  [binaryen.f32, 'f'],
  [binaryen.f64, 'd'],
])

interface Store {
  ptr: Expr
  value: Expr
  offset: number
  bytes: number
}

/** Moves the saving code out of functions into shared ones, which it adds to the module. Returns how many it moved. */
export function shareSaving(module: Module, funcs: Func[]): number {
  const shared = new Map<string, number[]>()
  let moved = 0
  for (const { ref } of funcs) {
    const body = api.Function.getBody(ref)
    const found = kindOf(body) === 'Block' ? findSaving(body) : undefined
    if (found === undefined) continue
    const types = found.values.map((value) => binaryen.getExpressionType(value))
    if (!types.every((type) => letters.has(type))) continue
    const name = `baton_save_${types.map((type) => letters.get(type)).join('')}`
    shared.set(name, types)
    const { Block } = api
    const after: Expr[] = []
    for (let i = Block.getNumChildren(body) - 1; i >= found.end; i--)
      after.unshift(Block.removeChildAt(body, i))
    for (let i = found.end - 1; i >= found.start; i--) Block.removeChildAt(body, i)
    Block.appendChild(body, module.call(name, [found.index, ...found.values], binaryen.none))
    for (const expr of after) Block.appendChild(body, expr)
    moved++
  }
  for (const [name, types] of shared) addSaver(module, name, types)
  return moved
}

function addSaver(module: Module, name: string, types: number[]): void {
  const { i32 } = binaryen
  const data = (): Expr => module.global.get(dataGlobal, i32)
  const position = (): Expr => module.i32.load(0, 4, data(), memory)
  const local = types.length + 1
  let offset = 4
  const stores = [
    module.i32.store(0, 4, module.local.tee(local, position(), i32), module.local.get(0, i32), memory),
  ]
  for (const [i, type] of types.entries()) {
    const at = module.local.get(local, i32)
    const value = module.local.get(i + 1, type)
    const [kind, bytes] = storeOf(module, type)
    stores.push(kind.store(offset, 4, at, value, memory))
    offset += bytes
  }
  stores.push(
    module.i32.store(
      0,
      4,
      data(),
      module.i32.add(module.local.get(local, i32), module.i32.const(offset)),
      memory,
    ),
  )
  const params = binaryen.createType([i32, ...types])
  module.addFunction(name, params, binaryen.none, [i32], module.block(null, stores, binaryen.none))
}

function storeOf(module: Module, type: number): [Pick<Module['i32'], 'store'>, bytes: number] {
  if (type === binaryen.i32) return [module.i32, 4]
  if (type === binaryen.f32) return [module.f32, 4]
  return type === binaryen.i64 ? [module.i64, 8] : [module.f64, 8]
}

/** The saving code among the children of a function's outermost block. */
function findSaving(body: Expr): { start: number; end: number; index: Expr; values: Expr[] } | undefined {
  const { Block } = api
  const count = Block.getNumChildren(body)
  const at = (i: number): Store | undefined => (i < count ? storeAt(Block.getChildAt(body, i)) : undefined)
  let start = 0
  for (; start < count; start++) {
    const store = at(start)
    if (store !== undefined && isPosition(store.ptr) && store.offset === 0 && store.bytes === 4) break
  }
  const index = at(start)
  if (index === undefined || !advances(at(start + 1), 4)) return undefined
  const values: Expr[] = []
  let end = start + 2
  let offset = 0
  let pointer: number | undefined
  for (; ; end++) {
    const store = at(end)
    if (store === undefined) return values.length === 0 ? done() : undefined
    if (values.length > 0 && advances(store, offset)) {
      end++
      break
    }
    if (store.offset !== offset || store.bytes !== bytesOf(store.value)) return undefined
    if (values.length === 0) {
      if (isPosition(store.ptr)) pointer = -1
      else if (kindOf(store.ptr) === 'LocalSet' && isPosition(api.LocalSet.getValue(store.ptr)))
        pointer = api.LocalSet.getIndex(store.ptr)
      else return undefined
    } else if (kindOf(store.ptr) !== 'LocalGet' || api.LocalGet.getIndex(store.ptr) !== pointer)
      return undefined
    if (!['LocalGet', 'Const'].includes(kindOf(store.value))) return undefined
    values.push(store.value)
    offset += store.bytes
  }
  // The pointer's local is not set any more, so nobody may want it.
  if (pointer !== undefined && pointer >= 0) {
    const rest = Array.from({ length: count - end }, (_, i) => Block.getChildAt(body, end + i))
    if ([...values, ...rest].some((expr) => readsLocal(expr, pointer))) return undefined
  }
  return done()

  function done(): { start: number; end: number; index: Expr; values: Expr[] } {
    return { start, end, index: index!.value, values }
  }
}

const readsLocal = (expr: Expr, local: number): boolean =>
  (kindOf(expr) === 'LocalGet' && api.LocalGet.getIndex(expr) === local) ||
  children(expr).some((child) => readsLocal(child.expr, local))

function storeAt(expr: Expr): Store | undefined {
  if (kindOf(expr) !== 'Store') return undefined
  const { Store } = api
  return {
    ptr: Store.getPtr(expr),
    value: Store.getValue(expr),
    offset: Store.getOffset(expr),
    bytes: Store.getBytes(expr),
  }
}

const isData = (expr: Expr): boolean =>
  kindOf(expr) === 'GlobalGet' && api.GlobalGet.getName(expr) === dataGlobal
const isPosition = (expr: Expr): boolean =>
  kindOf(expr) === 'Load' && isData(api.Load.getPtr(expr)) && api.Load.getOffset(expr) === 0

/** Does a store move the position by so many bytes? */
function advances(store: Store | undefined, bytes: number): boolean {
  if (store === undefined || !isData(store.ptr) || kindOf(store.value) !== 'Binary') return false
  const { Binary, Const, AddInt32 } = api
  const by = Binary.getRight(store.value)
  return (
    Binary.getOp(store.value) === AddInt32 &&
    isPosition(Binary.getLeft(store.value)) &&
    kindOf(by) === 'Const' &&
    Const.getValueI32(by) === bytes
  )
}

function bytesOf(value: Expr): number {
  const type = binaryen.getExpressionType(value)
  return type === binaryen.i64 || type === binaryen.f64 ? 8 : 4
}
