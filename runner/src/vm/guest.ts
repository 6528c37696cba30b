/**
 * A guest, synchronously: everything that the worker and the tests do with one instance. Calls block until the guest pauses;
 * whoever needs to stop it meanwhile passes `shouldStop`.
 */
import { BatonError } from '@baton/shared/errors.ts'
import type { EffectError, EffectRequest, GuestMessage, Json, Pause } from '@baton/shared/guest.ts'
import type { Snapshot, SnapshotHeader } from '../harness.ts'
import type { Baseline, HostFunction } from './baseline.ts'
import { abi, checkFits, decodeSnapshot, encodeSnapshot, sha256, type SnapshotFile } from './codec.ts'
import { globalsOf, type Value } from './exports.ts'
import { Instance } from './instance.ts'
import { applyPages, diffPages } from './pages.ts'
import { checkDelivery, checkRun, checkSave, type Entry, type State } from './state.ts'

/** Loop iterations between two looks at the stop flag: some ten microseconds of JavaScript. */
const fuelPerCheck = 2000
/** The data structure of the unwound stack: two words at the start of its memory. */
const stackHeaderBytes = 8

export const memoryMaxDefault = 256 * 2 ** 20

export interface GuestOptions {
  module: WebAssembly.Module
  baseline: Baseline
  /** Hex SHA-256 of engine.wasm and of the bundle. */
  engine: string
  bundle: string
  /** Bytes of JavaScript heap; more is an error in the guest. */
  memoryMax?: number
  /** Bytes of unwound stack; more is a trap. By default all that the engine has room for. */
  stackMax?: number
}

/** How long the guest may run before it is interrupted. Without limits it runs to its next pause. */
export interface Slice {
  shouldStop?(): boolean
  /** Loop iterations. Exact: the same fuel stops the same guest at the same place. */
  fuel?: number
}

/** How main has ended. */
type Ended = { result: Json } | { error: EffectError }

type Phase = 'host' | 'guest' | 'unwinding' | 'rewinding'

export class Guest {
  readonly #options: GuestOptions
  readonly #instance: Instance
  #state: State = { name: 'quiescent' }
  /** Who runs, so that an import knows whether it may unwind. */
  #phase: Phase = 'host'
  #now = 0
  #asked: EffectRequest[] = []
  #askedChars = 0
  #slice: Slice = {}
  #fuelLeft = Infinity
  #blockOn: number | undefined
  #reply = ''
  #ended: Ended | undefined
  /** Memory at the last snapshot, and that snapshot's hash. */
  #parent: { memory: Uint8Array; hash: string } | undefined

  constructor(options: GuestOptions) {
    this.#options = options
    this.#instance = new Instance(options.module, {
      interrupt: () => this.#interrupted(),
      call: (name, args) => this.#called(name, args),
      now: () => this.#now,
    })
    this.#load(options.baseline.memory, options.baseline.globals)
  }

  get state(): State {
    return this.#state
  }

  /** Of the fuel that the last slice was given: what it left. */
  get fuelLeft(): number {
    return this.#fuelLeft
  }

  /** Length of all that it has ever asked for. */
  get askedChars(): number {
    return this.#askedChars
  }

  /** What the engine printed last. */
  get log(): string {
    return this.#instance.log.text
  }

  /** What snapshots of this guest are of. */
  get header(): SnapshotHeader {
    const { engine, bundle, baseline } = this.#options
    return { abi, engine, bundle, baseline: baseline.hash, state: 'quiescent' }
  }

  /** Hex SHA-256 of guest memory (F59). */
  memoryHash(): string {
    return sha256(this.#instance.bytes())
  }

  /** Hands over one message and runs to the next pause. Throws `guest-state` when the state does not allow it. */
  deliver(message: GuestMessage, slice: Slice = {}): Pause {
    checkDelivery(this.#state, message)
    if ('now' in message) this.#now = Math.max(this.#now, message.now)
    if (message.type === 'start' || message.type === 'reseed') this.#seed(message.seed)
    if (message.type === 'reseed') return this.#rest()
    const text = JSON.stringify(message)
    if (this.#state.name === 'blocked') {
      this.#reply = text
      return this.#go(this.#state.entry, slice, true)
    }
    return this.#guarded(() => {
      const argument = this.#instance.newString(text)
      new DataView(this.#instance.exports.memory.buffer).setUint32(
        this.#options.baseline.handles.argv,
        argument,
        true,
      )
      return this.#go('deliver', slice, false)
    })
  }

  /** Goes on after an interruption. */
  run(slice: Slice = {}): Pause {
    return this.#go(checkRun(this.#state).entry, slice, true)
  }

  /** Seeds the SDK's generator in place; see guest/src/sdk/random.ts. */
  #seed(seed: string): void {
    const word = (i: number): number => Number.parseInt(seed.slice(8 * i, 8 * i + 8), 16) >>> 0
    // All 256 bits count, and no seed gives the one state that the generator can't leave.
    const words = [0, 1, 2, 3].map((i) => (word(i) ^ Math.imul(word(i + 4) + i + 1, 0x9e37_79b1)) >>> 0)
    if (!words.some(Boolean)) words[0] = 1
    const memory = new DataView(this.#instance.exports.memory.buffer)
    for (const [i, value] of words.entries())
      memory.setUint32(this.#options.baseline.handles.random + 4 * i, value, true)
  }

  /** The pause that a resting guest is in. */
  #rest(): Pause {
    const state = checkSave(this.#state)
    return state.name === 'blocked'
      ? { state: 'blocked', on: state.on, asked: [] }
      : { state: state.name, asked: [] }
  }

  // --- running ---------------------------------------------------------------------------------------------------

  #go(entry: Entry | undefined, slice: Slice, rewind: boolean): Pause {
    this.#slice = slice
    this.#fuelLeft = slice.fuel ?? Infinity
    this.#state = { name: 'running', entry }
    return this.#guarded(() => {
      let next = entry
      let resume = rewind
      if (!rewind) this.#firstFuel()
      for (;;) {
        if (next === undefined) {
          if (this.#ended !== undefined || this.#instance.exports.qjs_is_job_pending() === 0)
            return this.#rested()
          next = 'job'
        }
        this.#state = { name: 'running', entry: next }
        const value = this.#enter(next, resume)
        if (value === undefined) return this.#unwound(next)
        this.#left(next, value)
        next = undefined
        resume = false
      }
    })
  }

  /** Calls the export of an entry. Returns its value, or undefined when the stack was unwound. */
  #enter(entry: Entry, rewind: boolean): number | undefined {
    const { exports } = this.#instance
    const { deliver, self, argv } = this.#options.baseline.handles
    this.#phase = 'guest'
    if (rewind) {
      this.#phase = 'rewinding'
      exports.asyncify_start_rewind(0)
    }
    const value =
      entry === 'deliver' ? exports.qjs_call(deliver, self, 1, argv) : exports.qjs_execute_pending_job()
    const ended = this.#phase as Phase
    this.#phase = 'host'
    if (ended === 'rewinding') throw new Error('the stack was not rewound to where it was unwound')
    if (ended !== 'unwinding') return value
    exports.asyncify_stop_unwind()
    return undefined
  }

  #left(entry: Entry, value: number): void {
    const { exports } = this.#instance
    const { argv } = this.#options.baseline.handles
    let threw = value < 0
    if (entry === 'deliver') {
      threw = exports.qjs_is_exception(value) !== 0
      exports.qjs_free_value(value)
      exports.qjs_free_value(new DataView(exports.memory.buffer).getUint32(argv, true))
      new DataView(exports.memory.buffer).setUint32(argv, 0, true)
    }
    if (threw) {
      const { message, stack } = this.#instance.takeException()
      this.#ended ??= { error: guestError(message, stack) }
    }
  }

  #unwound(entry: Entry): Pause {
    const asked = this.#takeAsked()
    const on = this.#blockOn
    this.#blockOn = undefined
    this.#state = on === undefined ? { name: 'interrupted', entry } : { name: 'blocked', entry, on }
    return on === undefined ? { state: 'interrupted', asked } : { state: 'blocked', on, asked }
  }

  #rested(): Pause {
    const asked = this.#takeAsked()
    const ended = this.#ended
    if (ended === undefined) {
      this.#state = { name: 'quiescent' }
      return { state: 'quiescent', asked }
    }
    if ('error' in ended) return this.#fail(ended.error, asked)
    this.#state = { name: 'finished', result: ended.result }
    return { state: 'finished', asked, result: ended.result }
  }

  #fail(error: EffectError, asked: EffectRequest[]): Pause {
    this.#state = { name: 'failed', error }
    return { state: 'failed', asked, error }
  }

  /** A trap poisons the instance: its memory may be half written, so nothing is ever done with it again. */
  #guarded(body: () => Pause): Pause {
    try {
      return body()
    } catch (cause) {
      if (cause instanceof BatonError) throw cause
      this.#phase = 'host'
      const message = cause instanceof Error ? cause.message : String(cause)
      const code = /out of memory/i.test(message) ? 'guest-memory' : 'guest-trapped'
      return this.#fail({ code, message }, this.#takeAsked())
    }
  }

  #takeAsked(): EffectRequest[] {
    const asked = this.#asked
    this.#asked = []
    return asked
  }

  // --- imports ---------------------------------------------------------------------------------------------------

  #interrupted(): void {
    if (this.#phase === 'rewinding') {
      this.#instance.exports.asyncify_stop_rewind()
      this.#phase = 'guest'
      this.#refuel()
      return
    }
    if (this.#phase === 'guest' && (this.#fuelLeft <= 0 || this.#slice.shouldStop?.() === true))
      this.#unwind()
    else this.#refuel()
  }

  #refuel(): void {
    const fuel = this.#phase === 'guest' ? Math.min(fuelPerCheck, this.#fuelLeft) : fuelPerCheck
    if (this.#phase === 'guest') this.#fuelLeft -= fuel
    this.#instance.exports.baton_fuel.value = fuel
  }

  /** What one job leaves is for the next one, so that an endless chain of short jobs is stopped like any loop. */
  #firstFuel(): void {
    this.#phase = 'guest'
    this.#refuel()
    this.#phase = 'host'
  }

  #unwind(): void {
    const { exports } = this.#instance
    const words = new DataView(exports.asyncify_memory.buffer)
    const end = words.byteLength
    const { stackMax = end - stackHeaderBytes } = this.#options
    // It ends where its memory ends, so that a frame too many is out of bounds.
    words.setUint32(0, end - stackMax, true)
    words.setUint32(4, end, true)
    this.#phase = 'unwinding'
    exports.asyncify_start_unwind(0)
  }

  #takeRequest(text: string): void {
    this.#asked.push(JSON.parse(text) as EffectRequest)
    this.#askedChars += text.length
  }

  #called(name: string, args: Value[]): Value {
    const instance = this.#instance
    const { exports } = instance
    const phase = this.#phase
    if (phase === 'rewinding') {
      exports.asyncify_stop_rewind()
      this.#phase = 'host'
      const reply = instance.newString(this.#reply)
      this.#phase = 'guest'
      this.#reply = ''
      this.#refuel()
      return reply
    }
    this.#phase = 'host'
    let blocked = false
    try {
      const first = args[0] ?? 0
      switch (name as HostFunction) {
        case 'ask':
          this.#takeRequest(instance.text(first))
          return exports.qjs_get_undefined()
        case 'sha256':
          return instance.newString(sha256(instance.text(first)))
        case 'end':
          this.#ended ??= JSON.parse(instance.text(first)) as Ended
          return exports.qjs_get_undefined()
        case 'block':
          this.#blockOn = exports.qjs_get_float64(first)
          blocked = true
          return 0
        default:
          return instance.throwInGuest(`there is no host function ${JSON.stringify(name)}`)
      }
    } finally {
      this.#phase = phase
      if (blocked) this.#unwind()
    }
  }

  // --- saving and restoring --------------------------------------------------------------------------------------

  /** Saves a paused guest; `full`: relative to the baseline even when there is an earlier snapshot. */
  snapshot({ full = false }: { full?: boolean } = {}): Snapshot {
    const state = checkSave(this.#state)
    const { exports } = this.#instance
    exports.baton_fuel.value = 0
    const memory = this.#instance.bytes()
    const parent = full ? undefined : this.#parent
    const diff = diffPages(memory, parent?.memory ?? this.#options.baseline.memory)
    const stack = this.#stack()
    const header: SnapshotFile['header'] = {
      ...this.header,
      state: state.name,
      ...(state.name === 'blocked' && { on: state.on }),
      ...(parent !== undefined && { parent: parent.hash }),
      host: {
        ...(state.name !== 'quiescent' && { entry: state.entry }),
        now: this.#now,
        ...(this.#ended !== undefined && { ended: JSON.stringify(this.#ended) }),
        memory: memory.length,
        stack: stack.length,
        pages: diff.pages.length,
        globals: Object.fromEntries(globalsOf(exports).map(([name, global]) => [name, global.value])),
      },
    }
    const bytes = encodeSnapshot({ header, stack, diff })
    const hash = sha256(bytes)
    this.#parent = { memory: memory.slice(), hash }
    const { host: _, ...public_ } = header
    return { header: public_ as SnapshotHeader, bytes, hash }
  }

  /** Restores a fresh guest. `chain` runs from the oldest snapshot to the newest. Throws `snapshot-…`. */
  restore(chain: Uint8Array[]): Pause {
    const files = chain.map((bytes) => ({ file: decodeSnapshot(bytes), hash: sha256(bytes) }))
    const newest = files.at(-1)
    if (newest === undefined) throw new BatonError('snapshot-foreign', '(no snapshot was given)')
    let parent: string | undefined
    for (const { file, hash } of files) {
      checkFits(file.header as SnapshotHeader, this.header)
      if (file.header.parent !== parent) {
        const needs = file.header.parent ?? 'none'
        throw new BatonError(
          'snapshot-baseline',
          `(it builds on snapshot ${needs}, but was given ${parent ?? 'none'})`,
        )
      }
      parent = hash
    }
    try {
      for (const { file } of files) {
        this.#instance.reserve(file.diff.bytes)
        applyPages(this.#instance.bytes(), file.diff)
      }
      this.#loadStack(newest.file)
    } catch (cause) {
      throw new BatonError('snapshot-torn', '(its pages do not fit)', { cause })
    }
    this.#parent = { memory: this.#instance.bytes().slice(), hash: newest.hash }
    return this.#resumeAt(newest.file)
  }

  #resumeAt({ header }: SnapshotFile): Pause {
    const { state, on, host } = header
    this.#now = host.now
    if (host.ended !== undefined) this.#ended = JSON.parse(host.ended) as Ended
    const { entry } = host
    if (state === 'quiescent') return { state: 'quiescent', asked: [] }
    if (entry === undefined || (state === 'blocked') !== (on !== undefined))
      throw new BatonError('snapshot-torn', '(its state contradicts itself)')
    if (on === undefined) {
      this.#state = { name: 'interrupted', entry }
      return { state: 'interrupted', asked: [] }
    }
    this.#state = { name: 'blocked', entry, on }
    return { state: 'blocked', on, asked: [] }
  }

  /** The used part of the unwound stack, its two words included; nothing when there is no stack. */
  #stack(): Uint8Array {
    if (this.#state.name === 'quiescent') return new Uint8Array()
    const { buffer } = this.#instance.exports.asyncify_memory
    return new Uint8Array(buffer.slice(0, new DataView(buffer).getUint32(0, true)))
  }

  #loadStack({ header, stack }: SnapshotFile): void {
    const { buffer } = this.#instance.exports.asyncify_memory
    new Uint8Array(buffer).set(stack)
    const known = globalsOf(this.#instance.exports)
    for (const [name, global] of known) {
      const value = header.host.globals[name]
      if (value === undefined) throw new RangeError(`the global ${name} is missing`)
      global.value = value
    }
    this.#limitMemory()
  }

  #load(memory: Uint8Array, globals: Record<string, number>): void {
    this.#instance.reserve(memory.length)
    this.#instance.bytes().set(memory)
    for (const [name, global] of globalsOf(this.#instance.exports)) global.value = globals[name] ?? 0
    this.#limitMemory()
  }

  #limitMemory(): void {
    this.#instance.exports.qjs_set_memory_limit(this.#options.memoryMax ?? memoryMaxDefault)
  }
}

function guestError(message: string, stack: string): EffectError {
  const code = /out of memory/.test(message) ? 'guest-memory' : 'guest-failed'
  const where = stack.split('\n')[0]?.trim()
  return { code, message: where ? `${message} (${where})` : message }
}
