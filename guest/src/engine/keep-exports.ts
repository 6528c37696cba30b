/**
 * Drops what the host never calls. The module exports nearly the whole C API of QuickJS; each export costs time at every
 * instantiation and keeps code alive that would be instrumented for nothing.
 */
import binaryen from 'binaryen'
import type { Module } from './walk.ts'

const kept = new Set([
  'memory',
  '__stack_pointer',
  '_initialize',
  'wasm_malloc',
  'wasm_free',
  'qjs_init',
  'qjs_set_max_stack_size',
  'qjs_set_memory_limit',
  'qjs_eval',
  'qjs_call',
  'qjs_is_job_pending',
  'qjs_execute_pending_job',
  'qjs_get_global',
  'qjs_get_undefined',
  'qjs_new_object',
  'qjs_new_string',
  'qjs_new_host_function',
  'qjs_new_error',
  'qjs_throw',
  'qjs_get_exception',
  'qjs_is_exception',
  'qjs_is_object',
  'qjs_get_prop_string',
  'qjs_set_prop_string',
  'qjs_get_string_len',
  'qjs_free_cstring',
  'qjs_get_array_buffer',
  'qjs_get_float64',
  'qjs_free_value',
])

/** Removes all other exports and the code that only they reach. Throws when the module lacks one that is needed. */
export function keepExports(module: Module): void {
  const names: string[] = []
  for (let i = 0; i < module.getNumExports(); i++) {
    names.push(binaryen.getExportInfo(module.getExportByIndex(i)).name)
  }
  const missing = [...kept].filter((name) => !names.includes(name))
  if (missing.length > 0) throw new Error(`the module does not export ${missing.join(', ')}`)
  for (const name of names) if (!kept.has(name)) module.removeExport(name)
  module.runPasses(['remove-unused-module-elements'])
}
