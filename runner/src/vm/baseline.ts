/**
 * The baseline: guest memory right after the agent's bundle was loaded. It is the same everywhere for one engine and one
 * bundle, so it never travels: each machine computes it, and instances start as copies of it.
 */
import { BatonError } from '@baton/shared/errors.ts'
import { sha256 } from './codec.ts'
import { globalsOf, type Value } from './exports.ts'
import { Instance } from './instance.ts'

/** Host functions that the SDK may call. The order is part of the baseline; the table never changes. */
export const hostFunctions = ['ask', 'block', 'sha256', 'end'] as const
export type HostFunction = (typeof hostFunctions)[number]

/** QuickJS' own stack limit: deep recursion is an error that the guest can catch, at the same depth everywhere. */
const stackBytes = 512 * 1024

export interface Baseline {
  /** In shared memory, so that all workers use one copy. */
  memory: Uint8Array
  globals: Record<string, number>
  /** Hex SHA-256 of memory and globals. */
  hash: string
  /** Addresses inside the baseline that the host needs. */
  handles: Handles
}

export interface Handles {
  /** The SDK's function that takes a message. */
  deliver: Value
  /** The `this` of that call. */
  self: Value
  /** Room for its one argument. */
  argv: number
  /** Where the SDK's random generator keeps its four words. */
  random: number
}

/** Loads a bundle into a fresh instance. Throws `agent-invalid` when the bundle can't be loaded. */
export function computeBaseline(module: WebAssembly.Module, bundle: Uint8Array): Baseline {
  const instance = new Instance(module, {
    // Refills only: a bundle that never ends while loading is stopped by the caller's deadline on the worker.
    interrupt: () => {
      instance.exports.baton_fuel.value = 1_000_000
    },
    call: () => instance.throwInGuest('an agent can ask for nothing while it is loaded'),
    now: () => 0,
  })
  const { exports } = instance
  exports._initialize()
  if (exports.qjs_init() !== 0) throw new BatonError('guest-memory')
  exports.qjs_set_max_stack_size(stackBytes)
  provideHost(instance)
  load(instance, bundle)
  const handles = findHandles(instance)
  scrub(instance)

  exports.baton_fuel.value = 0
  const shared = new Uint8Array(new SharedArrayBuffer(instance.bytes().length))
  shared.set(instance.bytes())
  const globals = Object.fromEntries(globalsOf(exports).map(([name, global]) => [name, global.value]))
  const hash = sha256(Buffer.concat([shared, Buffer.from(JSON.stringify(globals))]))
  return { memory: shared, globals, hash, handles }
}

function provideHost(instance: Instance): void {
  const { exports } = instance
  const host = exports.qjs_new_object()
  for (const name of hostFunctions) {
    const func = instance.withText(name, (at, length) => exports.qjs_new_host_function(at, length, 0))
    instance.setProperty(host, name, func)
  }
  const global = exports.qjs_get_global()
  instance.setProperty(global, '__batonHost', host)
  exports.qjs_free_value(global)
}

function load(instance: Instance, bundle: Uint8Array): void {
  const { exports } = instance
  const source = Buffer.from(bundle).toString()
  const result = instance.withText(source, (code, length) =>
    instance.withText('agent.js', (file) => exports.qjs_eval(code, length, file, 0)),
  )
  const failed = exports.qjs_is_exception(result) !== 0
  exports.qjs_free_value(result)
  if (failed) {
    const { message, stack } = instance.takeException()
    throw new BatonError('agent-invalid', `(${[message, ...stack.split('\n').slice(0, 3)].join(' ').trim()})`)
  }
}

/**
 * Zeros what lies free. Whatever the agent keeps there later is stored as its difference from the baseline, and what is left of
 * loading (copies of the source above all) would make that difference large.
 */
function scrub(instance: Instance): void {
  const { exports } = instance
  const end = instance.bytes().length
  const taken: number[] = []
  for (let size = 64 << 10; size >= 32; size /= 2) {
    for (;;) {
      const at = exports.wasm_malloc(size)
      if (at === 0) break
      taken.push(at)
      instance.bytes().fill(0, at, at + size)
      // Beyond what there was, memory is new.
      if (at + size >= end) break
    }
  }
  for (const at of taken) exports.wasm_free(at)
}

function findHandles(instance: Instance): Handles {
  const { exports } = instance
  const global = exports.qjs_get_global()
  const deliver = instance.property(global, '__batonDeliver')
  const state = instance.property(global, '__batonRandom')
  exports.qjs_free_value(global)
  if (exports.qjs_is_object(deliver) === 0)
    throw new BatonError('agent-invalid', '(the bundle was not made by Baton: it takes no messages)')
  const argv = exports.wasm_malloc(8)
  const random = exports.qjs_get_array_buffer(state, argv)
  return { deliver, self: exports.qjs_get_undefined(), argv, random }
}
