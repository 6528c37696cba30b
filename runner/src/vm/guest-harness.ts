/** The guest VM as the session loop sees it: one guest in a thread of its own. */
import { BatonError } from '@baton/shared/errors.ts'
import type { GuestMessage, Pause } from '@baton/shared/guest.ts'
import type { Harness, Snapshot, SnapshotHeader } from '../harness.ts'
import type { GuestParts, Limits } from './messages.ts'
import { loadProgram } from './program.ts'
import { returnThread, takeThread, type Thread } from './thread.ts'

export interface GuestHarnessOptions {
  /** engine.wasm */
  engine: Uint8Array
  /** What bundleAgent made. */
  bundle: Uint8Array
  /** Bytes of guest heap, 256 MiB by default; more is an error in the guest (F57). */
  memoryMax?: number
}

/**
 * Drives one guest. Throws BatonError: `guest-state` for a call that the state does not allow, `agent-invalid`, `snapshot-…`,
 * `guest-trapped` when the thread dies. An error of the agent itself is not thrown; it is the pause `failed`.
 */
export class GuestHarness implements Harness {
  readonly #options: GuestHarnessOptions
  readonly #stop = new Int32Array(new SharedArrayBuffer(4))
  #thread: Thread | undefined
  #closed = false

  constructor(options: GuestHarnessOptions) {
    this.#options = options
  }

  async open(): Promise<SnapshotHeader> {
    const { thread, parts } = await this.#begin()
    return thread.ask({ op: 'open', parts })
  }

  async restore(chain: Uint8Array[]): Promise<Pause> {
    const { thread, parts } = await this.#begin()
    try {
      return await thread.ask({ op: 'restore', parts, chain })
    } catch (error) {
      await this.close()
      throw error
    }
  }

  /** `limits` end the slice by themselves; the pause is then `interrupted`. */
  async deliver(message: GuestMessage, limits: Limits = {}): Promise<Pause> {
    Atomics.store(this.#stop, 0, 0)
    return this.#open().ask({ op: 'deliver', message, limits })
  }

  async run(limits: Limits = {}): Promise<Pause> {
    Atomics.store(this.#stop, 0, 0)
    return this.#open().ask({ op: 'run', limits })
  }

  interrupt(): void {
    Atomics.store(this.#stop, 0, 1)
  }

  async snapshot({ full = false }: { full?: boolean } = {}): Promise<Snapshot> {
    return this.#open().ask({ op: 'snapshot', full })
  }

  async close(): Promise<void> {
    const thread = this.#thread
    this.#thread = undefined
    this.#closed = true
    if (thread !== undefined) await returnThread(thread)
  }

  async #begin(): Promise<{ thread: Thread; parts: GuestParts }> {
    if (this.#thread !== undefined || this.#closed)
      throw new BatonError('guest-state', '(it was opened before)')
    const { engine, bundle, memoryMax } = this.#options
    const program = await loadProgram(engine, bundle)
    const thread = takeThread()
    this.#thread = thread
    const stop = this.#stop.buffer
    return { thread, parts: { ...program, stop, ...(memoryMax !== undefined && { memoryMax }) } }
  }

  #open(): Thread {
    if (this.#thread === undefined) throw new BatonError('guest-state', '(it is not open)')
    return this.#thread
  }
}
