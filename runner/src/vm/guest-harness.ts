/** The guest VM as the session loop sees it: one guest, in a thread that it shares with others. */
import { BatonError } from '@baton/shared/errors.ts'
import type { GuestMessage, Pause } from '@baton/shared/guest.ts'
import type { Harness, Snapshot, SnapshotHeader, SnapshotOptions } from '../harness.ts'
import { dense } from './codec.ts'
import type { GuestParts, Limits } from './messages.ts'
import { loadProgram } from './program.ts'
import type { Thread } from './thread.ts'
import { threads, type Threads } from './threads.ts'

export interface GuestHarnessOptions {
  /** engine.wasm */
  engine: Uint8Array
  /** What bundleAgent made. */
  bundle: Uint8Array
  /** Bytes of guest heap, 256 MiB by default; more is an error in the guest (F57). */
  memoryMax?: number
  /** Instead of those of the process. */
  threads?: Threads
}

/** Where the guest is. */
type Place = { at: 'nowhere' } | { at: 'thread'; thread: Thread; guest: number } | { at: 'closed' }

/**
 * Drives one guest. Throws BatonError: `guest-state` for a call that the state does not allow, `agent-invalid`, `snapshot-…`,
 * `guest-trapped` when the thread dies. An error of the agent itself is not thrown; it is the pause `failed`.
 */
export class GuestHarness implements Harness {
  readonly #options: GuestHarnessOptions
  readonly #threads: Threads
  readonly #stop = new Int32Array(new SharedArrayBuffer(4))
  #place: Place = { at: 'nowhere' }
  #busy = false

  constructor(options: GuestHarnessOptions) {
    this.#options = options
    this.#threads = options.threads ?? threads
  }

  async open(): Promise<SnapshotHeader> {
    const { thread, guest, parts } = await this.#begin()
    return this.#alone(thread.ask({ op: 'open', guest, parts }))
  }

  async restore(chain: Uint8Array[]): Promise<Pause> {
    const { thread, guest, parts } = await this.#begin()
    try {
      return await this.#alone(thread.ask({ op: 'restore', guest, parts, chain }))
    } catch (error) {
      await this.close()
      throw error
    }
  }

  /** `limits` end the run by themselves; the pause is then `interrupted`. */
  async deliver(message: GuestMessage, limits: Limits = {}): Promise<Pause> {
    const { thread, guest } = this.#open()
    Atomics.store(this.#stop, 0, 0)
    return this.#alone(thread.ask({ op: 'deliver', guest, message, limits }))
  }

  async run(limits: Limits = {}): Promise<Pause> {
    const { thread, guest } = this.#open()
    Atomics.store(this.#stop, 0, 0)
    return this.#alone(thread.ask({ op: 'run', guest, limits }))
  }

  interrupt(): void {
    Atomics.store(this.#stop, 0, 1)
    // It may wait for its turn while another one runs.
    if (this.#busy && this.#place.at === 'thread') this.#place.thread.ring()
  }

  async snapshot(options: SnapshotOptions = {}): Promise<Snapshot> {
    const { thread, guest } = this.#open()
    const snapshot = await this.#alone(thread.ask({ op: 'snapshot', guest, options }))
    return options.lean ? dense(snapshot) : snapshot
  }

  async close(): Promise<void> {
    const place = this.#place
    this.#place = { at: 'closed' }
    if (place.at !== 'thread') return
    Atomics.store(this.#stop, 0, 1)
    // With a thread that died there is nothing left to end.
    await place.thread.ask({ op: 'drop', guest: place.guest }).catch(() => undefined)
    this.#threads.leave(place.thread)
  }

  async #begin(): Promise<{ thread: Thread; guest: number; parts: GuestParts }> {
    if (this.#place.at !== 'nowhere' || this.#busy)
      throw new BatonError('guest-state', '(it was opened before)')
    const { engine, bundle, memoryMax } = this.#options
    const program = await this.#alone(loadProgram(engine, bundle))
    if (this.#place.at !== 'nowhere') throw new BatonError('guest-state', '(it was closed)')
    const thread = this.#threads.enter()
    const guest = thread.number()
    this.#place = { at: 'thread', thread, guest }
    const stop = this.#stop.buffer
    return { thread, guest, parts: { ...program, stop, ...(memoryMax !== undefined && { memoryMax }) } }
  }

  #open(): Extract<Place, { at: 'thread' }> {
    if (this.#place.at !== 'thread') throw new BatonError('guest-state', '(it is not open)')
    if (this.#busy) throw new BatonError('guest-state', '(it is still busy with the call before)')
    return this.#place
  }

  async #alone<T>(work: Promise<T>): Promise<T> {
    this.#busy = true
    try {
      return await work
    } finally {
      this.#busy = false
    }
  }
}
