/**
 * Undoes Asyncify's cost where the stack is not being rewound.
 *
 * Asyncify splits a function at every call that may unwind and guards each piece with `state == normal`, so that a rewind
 * can skip forward to the right call. Only a rewinding frame needs that. So each function becomes three:
 *
 *     f(args)          = if (state == rewinding) f$rewind(args) else f$fast(args)
 *     f$rewind(args)   = what Asyncify made, untouched
 *     f$fast(args)     = the same with `state` known; calls other `$fast` functions directly
 *
 * In `f$fast` the state is `normal` at entry, and after a call it is `normal` or `unwinding`; Asyncify's own test for
 * `unwinding` follows each call at once, and stays. Every other read of the state therefore yields `normal`, and is replaced
 * by it; the optimizer then joins the pieces again. Both bodies save and load the same locals in the same places because
 * they are the same code, so a stack that one has saved is loaded by the other.
 *
 * A read in a shape that this file does not know leaves the function as Asyncify made it.
 */
import binaryen from 'binaryen'
import { dropDeadLocals } from './liveness.ts'
import {
  api,
  children,
  functions,
  kindOf,
  stateGlobal,
  walk,
  type Expr,
  type Func,
  type Module,
} from './walk.ts'

const normal = 0
const unwinding = 1
const rewinding = 2

export interface SpecialiseCounts {
  specialised: number
  /** Functions left as Asyncify made them. */
  left: number
}

/** Splits every function that Asyncify instrumented. Run it right after Asyncify, once. */
export function specialise(module: Module): SpecialiseCounts {
  const split: { func: Func; fast: Expr }[] = []
  let left = 0
  for (const func of functions(module)) {
    if (func.name.startsWith('asyncify_') || !readsState(func.body)) continue
    const copy = module.copyExpression(func.body)
    if (assumeNotRewinding(module, copy)) split.push({ func, fast: copy })
    else left++
  }
  const names = new Set(split.map(({ func }) => func.name))
  for (const { func, fast } of split) {
    const types = [...binaryen.expandType(func.params), ...func.vars]
    const vars = [...func.vars]
    const addLocal = (type: number): number => types.length + vars.push(type) - 1 - func.vars.length
    const body = dropDeadLocals(module, fast, types, addLocal)
    callFast(body, names)
    module.addFunction(`${func.name}$rewind`, func.params, func.results, func.vars, func.body)
    module.addFunction(`${func.name}$fast`, func.params, func.results, vars, body)
    const isRewinding = module.i32.eq(
      module.global.get(stateGlobal, binaryen.i32),
      module.i32.const(rewinding),
    )
    const call = (name: string): Expr => module.call(`${func.name}$${name}`, args(module, func), func.results)
    api.Function.setBody(func.ref, module.if(isRewinding, call('rewind'), call('fast')))
  }
  return { specialised: split.length, left }
}

const args = (module: Module, func: Func): Expr[] =>
  binaryen.expandType(func.params).map((type, i) => module.local.get(i, type))

const readsState = (expr: Expr): boolean =>
  isState(expr) || children(expr).some((child) => readsState(child.expr))

const isState = (expr: Expr): boolean =>
  kindOf(expr) === 'GlobalGet' && api.GlobalGet.getName(expr) === stateGlobal

/** Replaces every read of the state but the tests for `unwinding`. False when a read has an unknown shape. */
function assumeNotRewinding(module: Module, root: Expr): boolean {
  const visit = (expr: Expr): boolean => {
    for (const child of children(expr)) {
      if (!isState(child.expr)) {
        if (!visit(child.expr)) return false
        continue
      }
      const use = useOf(expr, child.expr)
      if (use === 'unknown') return false
      if (use === 'known') child.put(module.i32.const(normal))
    }
    return true
  }
  return !isState(root) && visit(root)
}

function useOf(parent: Expr, state: Expr): 'unwinding' | 'known' | 'unknown' {
  switch (kindOf(parent)) {
    case 'Binary': {
      const op = api.Binary.getOp(parent)
      // `state | x` is x where the state is normal, which is nought.
      if (op === api.OrInt32) return 'known'
      const other = api.Binary.getRight(parent)
      if ((op !== api.EqInt32 && op !== api.NeInt32) || kindOf(other) !== 'Const') return 'unknown'
      return api.Const.getValueI32(other) === unwinding ? 'unwinding' : 'known'
    }
    case 'Unary':
      return api.Unary.getOp(parent) === api.EqZInt32 ? 'known' : 'unknown'
    case 'If':
      return api.If.getCondition(parent) === state ? 'known' : 'unknown'
    case 'Break':
      return api.Break.getCondition(parent) === state ? 'known' : 'unknown'
    case 'Select':
      return 'known'
    default:
      return 'unknown'
  }
}

function callFast(body: Expr, names: Set<string>): void {
  walk(body, (expr, kind) => {
    if (kind !== 'Call') return
    const target = api.Call.getTarget(expr)
    if (names.has(target)) api.Call.setTarget(expr, `${target}$fast`)
  })
}
