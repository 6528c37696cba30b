/**
 * Shortens the lives of locals in the bodies that specialise.ts makes.
 *
 * Asyncify saves one set of locals at every call that may unwind, so each of them stays alive everywhere and the registers
 * overflow into memory. Most are dead at a given call: whatever runs after the call sets them before it reads them, and the
 * call itself, which a rewind makes again, does not read them. This
 * pass finds them and gives them zeros on the way out:
 *
 *     (br_if $unwind (i32.const 7) unwinding)   =>   (br_if $unwind_3 (i32.const 7) unwinding)
 *                                                    …
 *                                                    ;; end of $unwind_3: the dead locals of call 7 and others like it
 *                                                    (local.set $9 (i32.const 0)) … (br $unwind index)
 *
 * Sound because a rewound frame goes on with the same code after the same call: what is dead here is dead there.
 */
import binaryen from 'binaryen'
import { api, children, kindOf, stateGlobal, type Expr, type Module } from './walk.ts'

/** A set of locals, one bit each. */
type Locals = bigint

interface Node {
  expr: Expr
  kind: string
  below: Node[]
  /** Of a local access: the local's bit. */
  bit: Locals
  /** Of a block or loop: its label; of a branch: its targets. */
  labels: string[]
  /** Of a branch out to the unwinding code: what is read when the call is entered again and has returned. */
  resume?: Locals
  /** Of such a branch: its call was found, and what the call reads is in `resume`. */
  complete?: boolean
}

const unwindLabel = '__asyncify_unwind'

/** Adds to `body` (of a function whose locals have the given types) the zeros described above. Returns the new body. */
export function dropDeadLocals(
  module: Module,
  body: Expr,
  types: number[],
  addLocal: (type: number) => number,
): Expr {
  const root = read(body)
  const unwind = find(root, (node) => node.kind === 'Block' && node.labels[0] === unwindLabel)
  if (unwind === undefined) return body
  const last = unwind.below.at(-1)
  if (last === undefined || binaryen.getExpressionType(last.expr) !== binaryen.unreachable) return body
  const saved = new Liveness(root).run()

  const classes = new Map<Locals, Node[]>()
  for (const site of sites(unwind)) {
    if (site.resume === undefined || site.complete !== true) continue
    const dead = saved & ~site.resume
    if (dead === 0n) continue
    const members = classes.get(dead)
    if (members === undefined) classes.set(dead, [site])
    else members.push(site)
  }
  if (classes.size === 0) return body

  const { i32 } = binaryen
  const index = addLocal(i32)
  let inner = module.block(
    null,
    unwind.below.map((node) => node.expr),
    binaryen.unreachable,
  )
  let number = 0
  for (const [dead, members] of classes) {
    const label = `${unwindLabel}_${number++}`
    for (const site of members) setLabel(site.expr, label)
    const zeros = types.flatMap((type, local) =>
      dead & (1n << BigInt(local)) ? [module.local.set(local, zero(module, type))] : [],
    )
    inner = module.block(null, [
      module.local.set(index, module.block(label, [inner], i32)),
      ...zeros,
      module.br(unwindLabel, undefined, module.local.get(index, i32)),
    ])
  }
  const { Block } = api
  while (Block.getNumChildren(unwind.expr) > 0) removeLast(unwind.expr)
  appendChild(unwind.expr, inner)
  return body
}

function zero(module: Module, type: number): Expr {
  if (type === binaryen.i32) return module.i32.const(0)
  if (type === binaryen.i64) return module.i64.const(0n)
  if (type === binaryen.f32) return module.f32.const(0)
  if (type === binaryen.f64) return module.f64.const(0)
  throw new Error('the engine has a local that is not a number')
}

const blockEdits = (binaryen as unknown as { Block: BlockEdits }).Block
interface BlockEdits {
  getName(expr: Expr): string
  removeChildAt(expr: Expr, index: number): Expr
  appendChild(expr: Expr, child: Expr): number
}
const removeLast = (block: Expr): void =>
  void blockEdits.removeChildAt(block, api.Block.getNumChildren(block) - 1)
const appendChild = (block: Expr, child: Expr): void => void blockEdits.appendChild(block, child)

const named = binaryen as unknown as {
  Loop: { getName(expr: Expr): string | null }
  Break: { getName(expr: Expr): string; setName(expr: Expr, name: string): void }
  Switch: {
    getNumNames(expr: Expr): number
    getNameAt(expr: Expr, index: number): string
    getDefaultName(expr: Expr): string
  }
  LocalGet: { getIndex(expr: Expr): number }
  LocalSet: { getIndex(expr: Expr): number }
}
const setLabel = (expr: Expr, label: string): void => named.Break.setName(expr, label)

function read(expr: Expr): Node {
  const kind = kindOf(expr)
  const node: Node = { expr, kind, bit: 0n, labels: [], below: children(expr).map((slot) => read(slot.expr)) }
  if (kind === 'LocalGet') node.bit = 1n << BigInt(named.LocalGet.getIndex(expr))
  else if (kind === 'LocalSet') node.bit = 1n << BigInt(named.LocalSet.getIndex(expr))
  else if (kind === 'Block') node.labels = [blockEdits.getName(expr)]
  else if (kind === 'Loop') node.labels = [named.Loop.getName(expr) ?? '']
  else if (kind === 'Break') node.labels = [named.Break.getName(expr)]
  else if (kind === 'Switch') {
    const { Switch } = named
    for (let i = 0; i < Switch.getNumNames(expr); i++) node.labels.push(Switch.getNameAt(expr, i))
    node.labels.push(Switch.getDefaultName(expr))
  }
  return node
}

function find(node: Node, test: (node: Node) => boolean): Node | undefined {
  if (test(node)) return node
  for (const child of node.below) {
    const found = find(child, test)
    if (found !== undefined) return found
  }
  return undefined
}

function* sites(node: Node): Generator<Node> {
  if (node.kind === 'Break' && node.labels[0] === unwindLabel) yield node
  for (const child of node.below) yield* sites(child)
}

/** Is this the test that Asyncify puts after a call? */
function isUnwindingTest(node: Node): boolean {
  return (
    node.kind === 'Binary' &&
    api.Binary.getOp(node.expr) === api.EqInt32 &&
    node.below[0]?.kind === 'GlobalGet' &&
    api.GlobalGet.getName(node.below[0].expr) === stateGlobal
  )
}

/** The branch to the unwinding code in Asyncify's test after a call. */
function siteOf(node: Node): Node | undefined {
  if (node.kind === 'Break') return node.labels[0] === unwindLabel ? node : undefined
  if (node.kind === 'Drop') return siteOf(node.below[0]!)
  return node.kind === 'If' && isUnwindingTest(node.below[0]!) ? siteOf(node.below[1]!) : undefined
}

/** Is this the call that the test belongs to? A rewind makes it again, so what it reads, the target too, must be there. */
const calls = ({ kind, below }: Node): boolean =>
  kind === 'Call' || kind === 'CallIndirect' || ((kind === 'LocalSet' || kind === 'Drop') && calls(below[0]!))

/** The value of a condition where it is known, as it is where the state was tested. */
function truth(node: Node): boolean | undefined {
  if (node.kind === 'Const') return api.Const.getValueI32(node.expr) !== 0
  if (node.kind === 'Unary' && api.Unary.getOp(node.expr) === api.EqZInt32) {
    const value = truth(node.below[0]!)
    return value === undefined ? undefined : !value
  }
  if (node.kind !== 'Binary') return undefined
  const [left, right] = node.below as [Node, Node]
  const op = api.Binary.getOp(node.expr)
  if (op === api.OrInt32) {
    if (truth(left) === true || truth(right) === true) return true
    return truth(left) === false ? truth(right) : truth(right) === false ? truth(left) : undefined
  }
  if (left.kind !== 'Const' || right.kind !== 'Const') return undefined
  const same = api.Const.getValueI32(left.expr) === api.Const.getValueI32(right.expr)
  return op === api.EqInt32 ? same : op === api.NeInt32 ? !same : undefined
}

/** Backward analysis over structured control flow, repeated until the loops' heads stop growing. */
class Liveness {
  readonly #root: Node
  readonly #labels = new Map<string, Locals>()
  readonly #heads = new Map<Expr, Locals>()
  #changed = false

  constructor(root: Node) {
    this.#root = root
  }

  /** Marks the branches to the unwinding code with what is live after their calls; returns what that code saves. */
  run(): Locals {
    do {
      this.#changed = false
      this.#before(this.#root, 0n)
    } while (this.#changed)
    return this.#labels.get(unwindLabel) ?? 0n
  }

  #before(node: Node, after: Locals): Locals {
    const { below } = node
    switch (node.kind) {
      case 'Block': {
        const label = node.labels[0]
        if (label) this.#labels.set(label, after)
        return this.#sequence(below, after)
      }
      case 'Loop': {
        const label = node.labels[0]
        const head = this.#heads.get(node.expr) ?? 0n
        if (label) this.#labels.set(label, head)
        const live = this.#before(below[0]!, after)
        if (live !== head) {
          this.#heads.set(node.expr, live)
          this.#changed = true
        }
        return live
      }
      case 'If': {
        const [condition, ifTrue, ifFalse] = below as [Node, Node, Node | undefined]
        const known = truth(condition)
        if (known === true) return this.#before(condition, this.#before(ifTrue, after))
        const otherwise = ifFalse === undefined ? after : this.#before(ifFalse, after)
        if (known === false) return this.#before(condition, otherwise)
        if (isUnwindingTest(condition) && this.#leaves(ifTrue, otherwise))
          return this.#before(condition, otherwise)
        return this.#before(condition, otherwise | this.#before(ifTrue, after))
      }
      case 'Break': {
        const target = node.labels[0]!
        const condition = below.at(-1)
        if (target === unwindLabel) {
          if (condition !== undefined && isUnwindingTest(condition)) node.resume = after
          else return this.#sequence(below, after | (this.#labels.get(target) ?? 0n))
          return this.#sequence(below, after)
        }
        const taken = this.#labels.get(target) ?? 0n
        const known = this.#isConditional(node) ? truth(condition!) : true
        return this.#sequence(below, known === true ? taken : known === false ? after : taken | after)
      }
      case 'Switch': {
        let live = 0n
        for (const label of node.labels) live |= this.#labels.get(label) ?? 0n
        return this.#sequence(below, live)
      }
      case 'Return':
      case 'Unreachable':
        return this.#sequence(below, 0n)
      case 'Select': {
        const [ifTrue, ifFalse, condition] = below as [Node, Node, Node]
        const known = truth(condition)
        if (known === undefined) return this.#sequence(below, after)
        return this.#sequence([known ? ifTrue : ifFalse, condition], after)
      }
      case 'LocalGet':
        return after | node.bit
      case 'LocalSet':
        return this.#before(below[0]!, after & ~node.bit)
      default:
        return this.#sequence(below, after)
    }
  }

  #sequence(nodes: Node[], after: Locals): Locals {
    let live = after
    for (let i = nodes.length; i-- > 0;) {
      live = this.#before(nodes[i]!, live)
      const site = nodes[i + 1] && siteOf(nodes[i + 1]!)
      if (site?.resume !== undefined && calls(nodes[i]!)) {
        site.resume |= live
        site.complete = true
      }
    }
    return live
  }

  /** A plain branch to the unwinding code, alone or at the end of a block, taken after a call. */
  #leaves(node: Node, resume: Locals): boolean {
    if (node.kind !== 'Break' || node.labels[0] !== unwindLabel || this.#isConditional(node)) return false
    node.resume = resume
    return node.below.every((child) => child.kind === 'Const')
  }

  #isConditional(node: Node): boolean {
    return loose.Break.getCondition(node.expr) !== 0
  }
}
const loose = binaryen as unknown as { Break: { getCondition(expr: Expr): Expr } }
