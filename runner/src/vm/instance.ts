/** One engine instance and the plumbing to talk JavaScript values with it. Knows nothing of sessions. */
import { asEngine, type EngineExports, type Value } from './exports.ts'
import { BoundedLog, wasi } from './wasi.ts'

/** What the engine calls. */
export interface Imports {
  /** A loop check found the fuel used up. */
  interrupt(): void
  /** A host function, by name. Returns the address of its result; 0 after throwing. */
  call(name: string, args: Value[]): Value
  /** The guest's clock. */
  now(): number
}

export class Instance {
  readonly exports: EngineExports
  readonly log = new BoundedLog()

  constructor(module: WebAssembly.Module, imports: Imports) {
    const exports = (): EngineExports => this.exports
    const callHost = (name: number, length: number, _self: number, argc: number, argv: number): Value => {
      const { buffer } = this.exports.memory
      const view = new DataView(buffer)
      const args = Array.from({ length: argc }, (_, i) => view.getUint32(argv + 4 * i, true))
      return imports.call(Buffer.from(buffer, name, length).toString(), args)
    }
    const instance = new WebAssembly.Instance(module, {
      baton: { interrupt: () => imports.interrupt() },
      env: {
        host_call: callHost,
        host_interrupt: () => 0,
        host_promise_rejection: () => undefined,
        host_module_normalize: () => 0,
        host_module_load: () => 0,
        host_get_timezone_offset: () => 0,
      },
      wasi_snapshot_preview1: wasi({ exports, now: () => imports.now(), log: (text) => this.log.add(text) }),
    })
    this.exports = asEngine(instance.exports)
  }

  /** Guest memory as it is now. Growing detaches it: never keep it across a call of the guest. */
  bytes(): Uint8Array {
    return new Uint8Array(this.exports.memory.buffer)
  }

  /** Grows guest memory to at least `bytes`. */
  reserve(bytes: number): void {
    const missing = bytes - this.exports.memory.buffer.byteLength
    if (missing > 0) this.exports.memory.grow(Math.ceil(missing / 65_536))
  }

  /** Runs `use` with a zero-terminated copy of `text` in guest memory. */
  withText<T>(text: string, use: (at: number, length: number) => T): T {
    const encoded = Buffer.from(text)
    const at = this.exports.wasm_malloc(encoded.length + 1)
    if (at === 0) throw new RangeError('out of memory')
    try {
      const memory = this.bytes()
      memory.set(encoded, at)
      memory[at + encoded.length] = 0
      return use(at, encoded.length)
    } finally {
      // What is left of it would make the next snapshot larger.
      this.bytes().fill(0, at, at + encoded.length)
      this.exports.wasm_free(at)
    }
  }

  newString(text: string): Value {
    return this.withText(text, (at, length) => this.exports.qjs_new_string(at, length))
  }

  /** A guest value as text; objects by their own toString. */
  text(value: Value): string {
    const { exports } = this
    const lengthAt = exports.wasm_malloc(4)
    if (lengthAt === 0) throw new RangeError('out of memory')
    try {
      const at = exports.qjs_get_string_len(value, lengthAt)
      if (at === 0) {
        exports.qjs_free_value(exports.qjs_get_exception())
        return '(a value without text)'
      }
      const length = new DataView(exports.memory.buffer).getUint32(lengthAt, true)
      const text = Buffer.from(exports.memory.buffer, at, length).toString()
      exports.qjs_free_cstring(at)
      return text
    } finally {
      exports.wasm_free(lengthAt)
    }
  }

  property(object: Value, name: string): Value {
    return this.withText(name, (at) => this.exports.qjs_get_prop_string(object, at))
  }

  /** Sets a property and gives the value back to the guest. */
  setProperty(object: Value, name: string, value: Value): void {
    this.withText(name, (at) => this.exports.qjs_set_prop_string(object, at, value))
    this.exports.qjs_free_value(value)
  }

  /** Throws an Error inside the guest; to be returned from a host function. */
  throwInGuest(message: string): Value {
    const error = this.exports.qjs_new_error()
    this.setProperty(error, 'message', this.newString(message))
    this.exports.qjs_free_value(this.exports.qjs_throw(error))
    this.exports.qjs_free_value(error)
    return 0
  }

  /** Takes the pending exception: its name, message and where it was thrown. */
  takeException(): { message: string; stack: string } {
    const error = this.exports.qjs_get_exception()
    const message = this.text(error)
    let stack = ''
    if (this.exports.qjs_is_object(error) !== 0) {
      const value = this.property(error, 'stack')
      stack = this.text(value)
      this.exports.qjs_free_value(value)
    }
    this.exports.qjs_free_value(error)
    return { message, stack }
  }
}
