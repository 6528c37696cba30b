/**
 * Pass 1: a check in every loop.
 *
 * A loop charges one unit of fuel an iteration; when the fuel runs out it calls the imported `interrupt`, which refills it
 * and may unwind the stack.
 *
 *     (loop                               (loop
 *       body)                    =>         (global.set $fuel (i32.sub (global.get $fuel) (i32.const 1)))
 *                                           (if (i32.lt_s (global.get $fuel) (i32.const 0)) (then (call $interrupt)))
 *                                           body)
 *
 * A small inner loop that calls nothing is strip-mined: it counts iterations in a local of its own and touches the fuel only
 * once a chunk. The first chunk is free, which is sound because whatever enters it again and again does so from a
 * loop that pays.
 */
import binaryen from 'binaryen'
import {
  api,
  children,
  functions,
  kindOf,
  walk,
  type Expr,
  type Func,
  type Module,
  type Slot,
} from './walk.ts'

/** Iterations of a strip-mined loop between two looks at the fuel. Short enough for 5 ms, see `fuelPerCheck`. */
export const chunk = 256

/** A unit of fuel pays for 64 bytes: about the time of an iteration. */
const bytesPerFuelLog2 = 6

export const fuelGlobal = 'baton_fuel'
export const interruptImport = { module: 'baton', base: 'interrupt', internal: 'baton_interrupt' }

export interface LoopCounts {
  checked: number
  stripMined: number
}

/** Adds the checks to a module. */
export function instrumentLoops(module: Module): LoopCounts {
  const { i32, none } = binaryen
  module.addFunctionImport(
    interruptImport.internal,
    interruptImport.module,
    interruptImport.base,
    binaryen.createType([]),
    none,
  )
  module.addGlobal(fuelGlobal, i32, true, module.i32.const(0))
  module.addGlobalExport(fuelGlobal, fuelGlobal)
  const counts: LoopCounts = { checked: 0, stripMined: 0 }
  for (const func of functions(module)) instrument(module, func, counts)
  return counts
}

function instrument(module: Module, func: Func, counts: LoopCounts): void {
  chargeBulk(module, func)
  const found: Slot[] = []
  collect({ expr: func.body, put: (value) => api.Function.setBody(func.ref, value) }, found)
  for (const { expr: loop, put } of found) {
    counts.checked++
    const body = api.Loop.getBody(loop)
    const withCheck = (check: Expr): void =>
      api.Loop.setBody(loop, module.block(null, [check, body], binaryen.getExpressionType(body)))
    if (!isSmall(loop)) {
      withCheck(fuelCheck(module, 1))
      continue
    }
    counts.stripMined++
    const budget = api._BinaryenFunctionAddVar(func.ref, binaryen.i32)
    withCheck(chunkCheck(module, budget))
    const start = module.local.set(budget, module.i32.const(chunk))
    put(module.block(null, [start, loop], binaryen.getExpressionType(loop)))
  }
}

/**
 * Copying and filling memory costs fuel too, or a program that does little else would run too long between two checks. The
 * check itself is left to the next loop.
 */
function chargeBulk(module: Module, func: Func): void {
  const { i32 } = binaryen
  let size: number | undefined
  walk(func.body, (expr, kind) => {
    if (kind !== 'MemoryCopy' && kind !== 'MemoryFill') return
    const bytes = children(expr).at(-1)!
    if (kindOf(bytes.expr) === 'Const') return
    size ??= api._BinaryenFunctionAddVar(func.ref, i32)
    const cost = module.i32.shr_u(module.local.tee(size, bytes.expr, i32), module.i32.const(bytesPerFuelLog2))
    const left = module.i32.sub(module.global.get(fuelGlobal, i32), cost)
    bytes.put(module.block(null, [module.global.set(fuelGlobal, left), module.local.get(size, i32)], i32))
  })
}

function collect(slot: Slot, found: Slot[]): void {
  if (kindOf(slot.expr) === 'Loop') found.push(slot)
  for (const child of children(slot.expr)) collect(child, found)
}

/** An inner loop that calls nothing. */
function isSmall(loop: Expr): boolean {
  let small = true
  for (const { expr } of children(loop)) {
    walk(expr, (_, kind) => {
      if (kind === 'Loop' || kind === 'Call' || kind === 'CallIndirect') small = false
    })
  }
  return small && kindOf(loop) === 'Loop'
}

function fuelCheck(module: Module, cost: number): Expr {
  const { i32, none } = binaryen
  return module.block(null, [
    module.global.set(fuelGlobal, module.i32.sub(module.global.get(fuelGlobal, i32), module.i32.const(cost))),
    module.if(
      module.i32.lt_s(module.global.get(fuelGlobal, i32), module.i32.const(0)),
      module.call(interruptImport.internal, [], none),
    ),
  ])
}

function chunkCheck(module: Module, budget: number): Expr {
  const { i32 } = binaryen
  const left = module.i32.sub(module.local.get(budget, i32), module.i32.const(1))
  return module.if(
    module.i32.eqz(module.local.tee(budget, left, i32)),
    module.block(null, [module.local.set(budget, module.i32.const(chunk)), fuelCheck(module, chunk)]),
  )
}
