/**
 * The call stack of one instance: how the guest is entered, stopped in its middle (unwound into a memory of its own) and entered again
 * (rewound), and the fuel that says when. Between unwind and rewind no export runs; `phase` says who runs now, so that an import
 * knows whether it may unwind.
 */
import type { Instance } from './instance.ts'

/** Loop iterations between two looks at the stop flag: some ten microseconds of JavaScript. */
const fuelPerCheck = 2000
/** The data structure of the unwound stack: two words at the start of its memory. */
const headerBytes = 8

/** How long the guest may run before it is interrupted. Without limits it runs to its next pause. */
export interface Slice {
  shouldStop?(): boolean
  /** Loop iterations. Exact: the same fuel stops the same guest at the same place. */
  fuel?: number
}

type Phase = 'host' | 'guest' | 'unwinding' | 'rewinding'

export class Stack {
  readonly #instance: Instance
  readonly #bytesMax: number | undefined
  #phase: Phase = 'host'
  #slice: Slice = {}
  #fuelLeft = Infinity

  /** `bytesMax`: of the unwound stack; more is a trap. By default all that the engine has room for. */
  constructor(instance: Instance, bytesMax: number | undefined) {
    this.#instance = instance
    this.#bytesMax = bytesMax
  }

  /** Of the fuel that the last slice was given: what it left. */
  get fuelLeft(): number {
    return this.#fuelLeft
  }

  /** Whether the host function that was called is the one to which a rewound stack leads. */
  get isRewinding(): boolean {
    return this.#phase === 'rewinding'
  }

  /** `isFresh`: nothing of it is on the stack yet. */
  begin(slice: Slice, { isFresh }: { isFresh: boolean }): void {
    this.#slice = slice
    this.#fuelLeft = slice.fuel ?? Infinity
    if (!isFresh) return
    // Once a slice: what one job leaves is for the next one, so that an endless chain of short jobs is stopped like any loop.
    this.#phase = 'guest'
    this.#refuel()
    this.#phase = 'host'
  }

  /** Calls an export, or goes on in its middle. Returns its value, or undefined when the stack was unwound. Throws when it traps. */
  enter(call: () => number, rewind: boolean): number | undefined {
    const { exports } = this.#instance
    this.#phase = 'guest'
    if (rewind) {
      this.#phase = 'rewinding'
      exports.asyncify_start_rewind(0)
    }
    let ended: Phase
    let value: number
    try {
      value = call()
    } finally {
      // It has changed meanwhile.
      ended = this.#phase as Phase
      this.#phase = 'host'
    }
    if (ended === 'rewinding') throw new Error('the stack was not rewound to where it was unwound')
    if (ended !== 'unwinding') return value
    exports.asyncify_stop_unwind()
    return undefined
  }

  /** A loop check found the fuel used up. */
  interrupted(): void {
    if (this.#phase === 'rewinding') {
      this.#instance.exports.asyncify_stop_rewind()
      this.#phase = 'guest'
      this.#refuel()
      return
    }
    if (this.#phase === 'guest' && (this.#fuelLeft <= 0 || this.#slice.shouldStop?.() === true)) this.unwind()
    else this.#refuel()
  }

  /** In the host function to which it leads: the stack is as it was. `body` makes what that function returns. */
  rewound<T>(body: () => T): T {
    this.#instance.exports.asyncify_stop_rewind()
    this.#phase = 'host'
    const value = body()
    this.#phase = 'guest'
    this.#refuel()
    return value
  }

  /** In a host function: whatever it calls of the guest does not unwind. */
  asHost<T>(body: () => T): T {
    const phase = this.#phase
    this.#phase = 'host'
    try {
      return body()
    } finally {
      this.#phase = phase
    }
  }

  /** Begins to unwind: the import that calls this returns into a stack that is going away. */
  unwind(): void {
    const { exports } = this.#instance
    const words = new DataView(exports.asyncify_memory.buffer)
    const end = words.byteLength
    // It ends where its memory ends, so that a frame too many is out of bounds.
    words.setUint32(0, end - (this.#bytesMax ?? end - headerBytes), true)
    words.setUint32(4, end, true)
    this.#phase = 'unwinding'
    exports.asyncify_start_unwind(0)
  }

  /** The used part of the unwound stack, its two words included. */
  bytes(): Uint8Array {
    const { buffer } = this.#instance.exports.asyncify_memory
    return new Uint8Array(buffer.slice(0, new DataView(buffer).getUint32(0, true)))
  }

  /** Takes an unwound stack of another instance. Throws RangeError when there is no room for it. */
  load(bytes: Uint8Array): void {
    new Uint8Array(this.#instance.exports.asyncify_memory.buffer).set(bytes)
  }

  #refuel(): void {
    const fuel = this.#phase === 'guest' ? Math.min(fuelPerCheck, this.#fuelLeft) : fuelPerCheck
    if (this.#phase === 'guest') this.#fuelLeft -= fuel
    this.#instance.exports.baton_fuel.value = fuel
  }
}
