/**
 * Pass 1: a check in every loop.
 *
 * A loop charges one unit of fuel an iteration; when the fuel runs out it calls the imported `interrupt`, which refills it
 * and may unwind the stack. The call stands outside the loop, in a second one around it:
 *
 *     (loop $l                            (loop $again
 *       body)                    =>         (block $out
 *                                             (loop $l
 *                                               (global.set $fuel (i32.sub (global.get $fuel) (i32.const 1)))
 *                                               (br_if $out (i32.lt_s (global.get $fuel) (i32.const 0)))
 *                                               body)
 *                                             (br $end))
 *                                           (call $refuel)
 *                                           (br $again))
 *
 * A compiler keeps the values of a loop in registers as long as nothing in it calls; a call inside, be it never made, has
 * them reloaded in each iteration. For the same reason Asyncify leaves such a loop in one piece.
 *
 * A small inner loop that calls nothing is strip-mined: it counts iterations in a local of its own and touches the fuel only
 * once a chunk. It counts where it goes back, so that a loop that runs once pays nothing. The first chunk is free, which is
 * sound because whatever enters it again and again does so from a loop that pays.
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

/** A small loop that goes back from more places than this counts at its head: less code. */
const backEdgesMax = 3

/** A unit of fuel pays for 64 bytes: about the time of an iteration. */
const bytesPerFuelLog2 = 6

export const fuelGlobal = 'baton_fuel'
export const interruptImport = { module: 'baton', base: 'interrupt', internal: 'baton_interrupt' }
/** Gets fuel, then gives back the unit that the check takes again. */
const refuel = 'baton_refuel'
/** Pays for a chunk; returns the budget for the next one. */
const payChunk = 'baton_pay_chunk'

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
  for (const func of functions(module)) {
    chargeBulk(module, func)
    const instrument = new Instrument(module, func, counts)
    instrument.loops({ expr: func.body, put: (value) => api.Function.setBody(func.ref, value) })
  }
  addHelpers(module)
  return counts
}

function addHelpers(module: Module): void {
  const { i32, none } = binaryen
  const interrupt = (): Expr => module.call(interruptImport.internal, [], none)
  const fuel = (): Expr => module.global.get(fuelGlobal, i32)
  const add = (units: number): Expr =>
    module.global.set(fuelGlobal, module.i32.add(fuel(), module.i32.const(units)))
  module.addFunction(refuel, none, none, [], module.block(null, [interrupt(), add(1)], none))
  const pay = [
    add(-chunk),
    module.if(module.i32.lt_s(fuel(), module.i32.const(0)), interrupt()),
    module.i32.const(chunk),
  ]
  module.addFunction(payChunk, none, i32, [], module.block(null, pay, i32))
}

class Instrument {
  readonly #module: Module
  readonly #func: Func
  readonly #counts: LoopCounts
  #number = 0

  constructor(module: Module, func: Func, counts: LoopCounts) {
    this.#module = module
    this.#func = func
    this.#counts = counts
  }

  /** Adds checks to the loops below and including `slot`, inner ones first. */
  loops(slot: Slot): void {
    for (const child of children(slot.expr)) this.loops(child)
    if (kindOf(slot.expr) !== 'Loop') return
    const isSmallLoop = isSmall(slot.expr)
    this.#counts.checked++
    if (isSmallLoop) this.#stripMine(slot)
    else this.#check(slot)
  }

  #check({ expr: loop, put }: Slot): void {
    const module = this.#module
    const { i32 } = module
    const fuel = (): Expr => module.global.get(fuelGlobal, binaryen.i32)
    const labels = this.#labels()
    this.#atHead(loop, [
      module.global.set(fuelGlobal, i32.sub(fuel(), i32.const(1))),
      module.br(labels.out, i32.lt_s(fuel(), i32.const(0))),
    ])
    put(this.#around(loop, labels, module.call(refuel, [], binaryen.none)))
  }

  #stripMine({ expr: loop, put }: Slot): void {
    const module = this.#module
    const { i32 } = module
    this.#counts.stripMined++
    const labels = this.#labels()
    const budget = api._BinaryenFunctionAddVar(this.#func.ref, binaryen.i32)
    const left = (): Expr =>
      module.local.tee(budget, i32.sub(module.local.get(budget, binaryen.i32), i32.const(1)), binaryen.i32)
    const back = backEdges(loop)
    if (back === undefined || back.length > backEdgesMax) {
      this.#atHead(loop, [module.br(labels.out, i32.eqz(left()))])
    } else {
      const label = api.Loop.getName(loop) ?? ''
      for (const edge of back) {
        const condition = api.Break.getCondition(edge.expr)
        const goBack = module.block(
          null,
          [module.br(label, left()), module.br(labels.out)],
          binaryen.unreachable,
        )
        edge.put(condition === 0 ? goBack : module.if(condition, goBack))
      }
    }
    const start = module.local.set(budget, i32.const(chunk))
    const again = module.local.set(budget, module.call(payChunk, [], binaryen.i32))
    put(module.block(null, [start, this.#around(loop, labels, again)], binaryen.getExpressionType(loop)))
  }

  #labels(): { out: string; again: string; end: string } {
    const name = `baton_loop_${this.#number++}`
    return { out: `${name}_out`, again: `${name}_again`, end: `${name}_end` }
  }

  #atHead(loop: Expr, check: Expr[]): void {
    const body = api.Loop.getBody(loop)
    api.Loop.setBody(loop, this.#module.block(null, [...check, body], binaryen.getExpressionType(body)))
  }

  /** The loop around a loop: whoever leaves for `out` comes back after `pay`. */
  #around(loop: Expr, { out, again, end }: { out: string; again: string; end: string }, pay: Expr): Expr {
    const module = this.#module
    const type = binaryen.getExpressionType(loop)
    const inside =
      type === binaryen.unreachable
        ? [loop]
        : type === binaryen.none
          ? [loop, module.br(end)]
          : [module.br(end, undefined, loop)]
    const outside = module.loop(
      again,
      module.block(
        null,
        [module.block(out, inside, binaryen.none), pay, module.br(again)],
        binaryen.unreachable,
      ),
    )
    return type === binaryen.unreachable ? outside : module.block(end, [outside], type)
  }
}

/** The branches back to the head of a loop. Undefined when a table goes there. */
function backEdges(loop: Expr): Slot[] | undefined {
  const label = api.Loop.getName(loop) ?? ''
  const found: Slot[] = []
  const search = (slot: Slot): boolean => {
    const kind = kindOf(slot.expr)
    if (kind === 'Break' && api.Break.getName(slot.expr) === label) found.push(slot)
    if (kind === 'Switch' && switchLabels(slot.expr).includes(label)) return false
    return children(slot.expr).every(search)
  }
  return children(loop).every(search) ? found : undefined
}

function switchLabels(expr: Expr): string[] {
  const { Switch } = api
  const names = Array.from({ length: Switch.getNumNames(expr) }, (_, i) => Switch.getNameAt(expr, i))
  return [...names, Switch.getDefaultName(expr)]
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

/** An inner loop that calls nothing. */
function isSmall(loop: Expr): boolean {
  let small = true
  for (const { expr } of children(loop)) {
    walk(expr, (_, kind) => {
      if (kind === 'Loop' || kind === 'Call' || kind === 'CallIndirect') small = false
    })
  }
  return small
}
