/** What an engine instance exports, as far as the host uses it. Pointers and JavaScript values are i32. */
import { BatonError } from '@baton/shared/errors.ts'

/** Address of a boxed JavaScript value; `free_value` gives it back. */
export type Value = number
export type Pointer = number

export interface EngineExports {
  memory: WebAssembly.Memory
  /** Holds the unwound stack: two words (position, end), then frames. */
  asyncify_memory: WebAssembly.Memory
  __stack_pointer: WebAssembly.Global
  /** Loop iterations until the next call of `interrupt`. */
  baton_fuel: WebAssembly.Global

  asyncify_start_unwind(data: Pointer): void
  asyncify_stop_unwind(): void
  asyncify_start_rewind(data: Pointer): void
  asyncify_stop_rewind(): void

  _initialize(): void
  wasm_malloc(bytes: number): Pointer
  wasm_free(at: Pointer): void

  qjs_init(): number
  qjs_set_max_stack_size(bytes: number): void
  qjs_set_memory_limit(bytes: number): void
  qjs_eval(code: Pointer, length: number, file: Pointer, flags: number): Value
  qjs_call(func: Value, self: Value, argc: number, argv: Pointer): Value
  qjs_is_job_pending(): number
  /** Below zero: the job threw. */
  qjs_execute_pending_job(): number

  qjs_get_global(): Value
  qjs_get_undefined(): Value
  qjs_new_object(): Value
  qjs_new_string(text: Pointer, length: number): Value
  qjs_new_host_function(name: Pointer, length: number, flags: number): Value
  qjs_new_error(): Value
  qjs_throw(error: Value): Value
  qjs_get_exception(): Value
  qjs_is_exception(value: Value): number
  qjs_is_object(value: Value): number
  qjs_get_prop_string(object: Value, name: Pointer): Value
  qjs_set_prop_string(object: Value, name: Pointer, value: Value): number
  qjs_get_string_len(value: Value, lengthOut: Pointer): Pointer
  qjs_free_cstring(text: Pointer): void
  qjs_get_float64(value: Value): number
  /** Where the bytes of an ArrayBuffer are. */
  qjs_get_array_buffer(value: Value, lengthOut: Pointer): Pointer
  qjs_free_value(value: Value): void
}

const needed = [
  'memory',
  'asyncify_memory',
  'baton_fuel',
  'asyncify_start_unwind',
  'asyncify_start_rewind',
  'qjs_call',
] as const

/** Checks that a module is an engine. Throws `snapshot-engine` when it is something else. */
export function asEngine(exports: Record<string, unknown>): EngineExports {
  const missing = needed.find((name) => exports[name] === undefined)
  if (missing !== undefined)
    throw new BatonError('snapshot-engine', `(this file is not a Baton engine: it has no ${missing})`)
  return exports as unknown as EngineExports
}

/** The mutable globals, by export name: with the memories they are all of an instance's state. */
export function globalsOf(exports: EngineExports): [name: string, global: WebAssembly.Global][] {
  const all = Object.entries(exports as unknown as Record<string, unknown>)
  return all
    .filter((entry): entry is [string, WebAssembly.Global] => entry[1] instanceof WebAssembly.Global)
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
}
