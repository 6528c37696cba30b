/** Refuses what Asyncify gets wrong or dies on, by function name, before anything is changed. */
import binaryen from 'binaryen'
import { functions, walk, type Module } from './walk.ts'

const numbers = [binaryen.i32, binaryen.i64, binaryen.f32, binaryen.f64]
const isReturn = binaryen as unknown as Record<'Call' | 'CallIndirect', { isReturn(expr: number): number }>

/** Throws when a function has tail calls, locals that are not numbers, or expressions that the passes do not know. */
export function refuseUnsupported(module: Module): void {
  for (const func of functions(module)) {
    const refuse = (why: string): never => {
      throw new Error(`function ${func.name} ${why}; the engine can't be built from this module`)
    }
    const types = [...binaryen.expandType(func.params), ...func.vars, ...binaryen.expandType(func.results)]
    if (types.some((type) => !numbers.includes(type)))
      refuse('has a parameter, local or result that is not a number')
    try {
      walk(func.body, (expr, kind) => {
        if ((kind === 'Call' || kind === 'CallIndirect') && isReturn[kind].isReturn(expr))
          refuse('has a tail call')
      })
    } catch (error) {
      if (error instanceof Error && error.message.startsWith('function ')) throw error
      refuse(`can't be read: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
}
