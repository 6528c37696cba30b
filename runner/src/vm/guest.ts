/**
 * A guest, synchronously: everything that the worker and the tests do with one instance. Calls block until the guest pauses;
 * whoever needs to stop it meanwhile passes `shouldStop`.
 */
import { BatonError } from '@baton/shared/errors.ts'
import type { EffectError, EffectRequest, GuestMessage, Json, Pause } from '@baton/shared/guest.ts'
import type { Snapshot, SnapshotHeader, SnapshotOptions } from '../harness.ts'
import type { Baseline, HostFunction } from './baseline.ts'
import { abi, sha256, type SnapshotFile } from './codec.ts'
import type { Value } from './exports.ts'
import { Instance } from './instance.ts'
import { Saving } from './saving.ts'
import { Stack, type Slice } from './stack.ts'
import { checkDelivery, checkRun, checkSave, type Entry, type State } from './state.ts'

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

/** How main has ended. */
type Ended = { result: Json } | { error: EffectError }

export class Guest {
  readonly #options: GuestOptions
  readonly #instance: Instance
  readonly #stack: Stack
  readonly #saving: Saving
  #state: State = { name: 'quiescent' }
  #now = 0
  #asked: EffectRequest[] = []
  #askedChars = 0
  #blockOn: number | undefined
  #reply = ''
  #ended: Ended | undefined

  constructor(options: GuestOptions) {
    this.#options = options
    const { module, baseline, memoryMax, stackMax } = options
    this.#instance = new Instance(module, {
      interrupt: () => this.#stack.interrupted(),
      call: (name, args) => this.#called(name, args),
      now: () => this.#now,
    })
    const instance = this.#instance
    const stack = new Stack(instance, stackMax)
    this.#stack = stack
    const bounds = memoryMax === undefined ? {} : { memoryMax }
    this.#saving = new Saving({ instance, module, stack, baseline, header: this.header, ...bounds })
  }

  get state(): State {
    return this.#state
  }

  /** Of the fuel that the last slice was given: what it left. */
  get fuelLeft(): number {
    return this.#stack.fuelLeft
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
    this.#state = { name: 'running', entry }
    return this.#guarded(() => {
      let next = entry
      let resume = rewind
      this.#stack.begin(slice, { isFresh: !rewind })
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
    return this.#stack.enter(
      () =>
        entry === 'deliver' ? exports.qjs_call(deliver, self, 1, argv) : exports.qjs_execute_pending_job(),
      rewind,
    )
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

  #takeRequest(text: string): void {
    this.#asked.push(JSON.parse(text) as EffectRequest)
    this.#askedChars += text.length
  }

  #called(name: string, args: Value[]): Value {
    const instance = this.#instance
    if (this.#stack.isRewinding) {
      return this.#stack.rewound(() => {
        const reply = instance.newString(this.#reply)
        this.#reply = ''
        return reply
      })
    }
    const value = this.#stack.asHost(() => this.#perform(name, args[0] ?? 0))
    if (name === 'block') this.#stack.unwind()
    return value
  }

  /** As the host: what this calls of the guest does not unwind. */
  #perform(name: string, first: Value): Value {
    const instance = this.#instance
    const { exports } = instance
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
        return 0
      default:
        return instance.throwInGuest(`there is no host function ${JSON.stringify(name)}`)
    }
  }

  // --- saving and restoring --------------------------------------------------------------------------------------

  /** Saves a paused guest; see Harness.snapshot. */
  snapshot({ full = false, lean = false }: SnapshotOptions = {}): Snapshot {
    const ended = this.#ended === undefined ? {} : { ended: JSON.stringify(this.#ended) }
    return this.#saving.save(checkSave(this.#state), { now: this.#now, full, lean, ...ended })
  }

  /** Restores a fresh guest. `chain` runs from the oldest snapshot to the newest. Throws `snapshot-…`. */
  restore(chain: Uint8Array[]): Pause {
    return this.#resumeAt(this.#saving.restore(chain))
  }

  #resumeAt({ state, on, host }: SnapshotFile['header']): Pause {
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
}

function guestError(message: string, stack: string): EffectError {
  const code = /out of memory/.test(message) ? 'guest-memory' : 'guest-failed'
  const where = stack.split('\n')[0]?.trim()
  return { code, message: where ? `${message} (${where})` : message }
}
