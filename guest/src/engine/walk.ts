/**
 * Walking Binaryen's expression tree. The JavaScript API names every field of every expression kind; the kinds that
 * the engine contains are listed once here, and a kind that is missing stops the build instead of being skipped.
 */
import binaryen from 'binaryen'

export type Expr = number
export type Module = binaryen.Module

/** The global in which Asyncify keeps its state. */
export const stateGlobal = '__asyncify_state'

type Get = (expr: Expr) => Expr
type Set = (expr: Expr, value: Expr) => void

/** Where a child hangs, and how to put another in its place. */
export interface Slot {
  expr: Expr
  put: (value: Expr) => void
}

/** The part of Binaryen's API that its type declarations leave out. */
interface Accessors {
  Block: Indexed<'Child'> & {
    removeChildAt(expr: Expr, index: number): Expr
    appendChild(expr: Expr, child: Expr): number
  }
  If: Field<'Condition'> & Field<'IfTrue'> & Field<'IfFalse'>
  Loop: Field<'Body'> & { getName(expr: Expr): string | null }
  Break: Field<'Condition'> & Field<'Value'> & { getName(expr: Expr): string }
  Switch: Field<'Condition'> &
    Field<'Value'> & {
      getNumNames(expr: Expr): number
      getNameAt(expr: Expr, index: number): string
      getDefaultName(expr: Expr): string
    }
  Call: Indexed<'Operand'> & { getTarget(expr: Expr): string; setTarget(expr: Expr, name: string): void }
  CallIndirect: Field<'Target'> &
    Indexed<'Operand'> & { getParams(expr: Expr): number; getResults(expr: Expr): number }
  LocalGet: { getIndex(expr: Expr): number }
  LocalSet: Field<'Value'> & { getIndex(expr: Expr): number }
  GlobalGet: { getName(expr: Expr): string }
  GlobalSet: Field<'Value'>
  Load: Field<'Ptr'> & { getOffset(expr: Expr): number }
  Store: Field<'Ptr'> & Field<'Value'> & { getOffset(expr: Expr): number; getBytes(expr: Expr): number }
  Const: { getValueI32(expr: Expr): number }
  Unary: Field<'Value'> & { getOp(expr: Expr): number }
  Binary: Field<'Left'> & Field<'Right'> & { getOp(expr: Expr): number }
  Select: Field<'IfTrue'> & Field<'IfFalse'> & Field<'Condition'>
  Drop: Field<'Value'>
  Return: Field<'Value'>
  MemoryGrow: Field<'Delta'>
  MemoryCopy: Field<'Dest'> & Field<'Source'> & Field<'Size'>
  MemoryFill: Field<'Dest'> & Field<'Value'> & Field<'Size'>
  Function: {
    getBody(func: number): Expr
    setBody(func: number, body: Expr): void
    getNumLocals(func: number): number
  }
  _BinaryenFunctionAddVar(func: number, type: number): number
  EqZInt32: number
  EqInt32: number
  NeInt32: number
  OrInt32: number
  AddInt32: number
}
type Field<N extends string> = { [K in `get${N}`]: Get } & { [K in `set${N}`]: Set }
type Indexed<N extends string> = { [K in `getNum${N extends 'Child' ? 'Children' : 'Operands'}`]: Get } & {
  [K in `get${N}At`]: (expr: Expr, index: number) => Expr
} & { [K in `set${N}At`]: (expr: Expr, index: number, value: Expr) => void }

export const api = binaryen as unknown as Accessors
const { ExpressionIds: ids } = binaryen as unknown as { ExpressionIds: Record<string, number> }

/** Kind of an expression: its name in Binaryen, e.g. `Loop`. */
const names = new Map(Object.entries(ids).map(([name, id]) => [id, name]))
export const kindOf = (expr: Expr): string => names.get(binaryen.getExpressionId(expr)) ?? 'Invalid'

/** Fields that hold children, by kind. */
const fields: Record<string, string[]> = {
  If: ['Condition', 'IfTrue', 'IfFalse'],
  Loop: ['Body'],
  Break: ['Value', 'Condition'],
  Switch: ['Value', 'Condition'],
  LocalGet: [],
  LocalSet: ['Value'],
  GlobalGet: [],
  GlobalSet: ['Value'],
  Load: ['Ptr'],
  Store: ['Ptr', 'Value'],
  Const: [],
  Unary: ['Value'],
  Binary: ['Left', 'Right'],
  Select: ['IfTrue', 'IfFalse', 'Condition'],
  Drop: ['Value'],
  Return: ['Value'],
  MemorySize: [],
  MemoryGrow: ['Delta'],
  MemoryCopy: ['Dest', 'Source', 'Size'],
  MemoryFill: ['Dest', 'Value', 'Size'],
  Nop: [],
  Unreachable: [],
}

const loose = binaryen as unknown as Record<string, Record<string, (...args: number[]) => number>>

/** The children of an expression, in order of evaluation. Throws on a kind that the engine build does not know. */
export function children(expr: Expr): Slot[] {
  const kind = kindOf(expr)
  const slots: Slot[] = []
  const list = (count: number, get: (i: number) => Expr, set: (i: number, value: Expr) => void): void => {
    for (let i = 0; i < count; i++) slots.push({ expr: get(i), put: (value) => set(i, value) })
  }
  if (kind === 'Block') {
    const { Block } = api
    list(
      Block.getNumChildren(expr),
      (i) => Block.getChildAt(expr, i),
      (i, value) => Block.setChildAt(expr, i, value),
    )
    return slots
  }
  if (kind === 'Call' || kind === 'CallIndirect') {
    const call = kind === 'Call' ? api.Call : api.CallIndirect
    list(
      call.getNumOperands(expr),
      (i) => call.getOperandAt(expr, i),
      (i, value) => call.setOperandAt(expr, i, value),
    )
    if (kind === 'CallIndirect') {
      const { CallIndirect } = api
      slots.push({ expr: CallIndirect.getTarget(expr), put: (value) => CallIndirect.setTarget(expr, value) })
    }
    return slots
  }
  const known = fields[kind]
  if (known === undefined)
    throw new Error(`the engine contains an expression of kind ${kind}, which is not supported`)
  for (const field of known) {
    const child = loose[kind]![`get${field}`]!(expr)
    if (child !== 0) slots.push({ expr: child, put: (value) => loose[kind]![`set${field}`]!(expr, value) })
  }
  return slots
}

/** Visits every expression below and including `expr`, parents first. */
export function walk(expr: Expr, visit: (expr: Expr, kind: string) => void): void {
  const open = [expr]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    visit(next, kindOf(next))
    const below = children(next)
    for (let i = below.length; i-- > 0;) open.push(below[i]!.expr)
  }
}

export interface Func {
  ref: number
  name: string
  params: number
  results: number
  vars: number[]
  body: Expr
}

/** The functions that have a body. */
export function functions(module: Module): Func[] {
  const found: Func[] = []
  for (let i = 0; i < module.getNumFunctions(); i++) {
    const ref = module.getFunctionByIndex(i)
    const info = binaryen.getFunctionInfo(ref)
    if (info.module) continue
    found.push({
      ref,
      name: info.name,
      params: info.params,
      results: info.results,
      vars: info.vars,
      body: info.body,
    })
  }
  return found
}
