/**
 * A harness for tests of the session loop: a generator that yields what it asks for and gets the next message back. Its
 * snapshot is the list of messages that it has got; a restore replays them. No guest VM, yet every promise of the interface.
 */
import { sha256Hex, utf8, fromUtf8 } from '@baton/shared/bytes.ts'
import { BatonError } from '@baton/shared/errors.ts'
import type { EffectRequest, GuestMessage, Json, Pause } from '@baton/shared/guest.ts'
import type { Harness, Snapshot, SnapshotHeader } from '@baton/runner/harness.ts'

export type Step = { ask?: EffectRequest[]; blockOn?: number }
export type Program = () => Generator<Step, Json, GuestMessage>

const HASH = 'a'.repeat(64)

export class ScriptHarness implements Harness {
  readonly #messages: GuestMessage[] = []
  #run: Generator<Step, Json, GuestMessage>
  #pause: Pause = { state: 'quiescent', asked: [] }
  /** Requests of model calls, for resends. */
  readonly #llm = new Map<number, EffectRequest>()
  closed = false

  constructor(program: Program) {
    this.#run = program()
  }

  async open(): Promise<SnapshotHeader> {
    this.#run.next()
    return { abi: 1, engine: HASH, bundle: HASH, baseline: HASH, state: 'quiescent' }
  }

  async restore(chain: Uint8Array[]): Promise<Pause> {
    const newest = chain.at(-1)
    if (!newest) throw new BatonError('snapshot-foreign')
    let saved: { messages: GuestMessage[] }
    try {
      saved = JSON.parse(fromUtf8(newest)) as { messages: GuestMessage[] }
    } catch {
      throw new BatonError('snapshot-torn')
    }
    await this.open()
    for (const message of saved.messages) {
      if (message.type === 'reseed') this.#messages.push(message)
      else this.#step(message)
    }
    return { ...this.#pause, asked: [] }
  }

  async deliver(message: GuestMessage): Promise<Pause> {
    if (this.closed) throw new BatonError('guest-state', '(closed)')
    if (message.type === 'reseed') {
      this.#messages.push(message)
      return { ...this.#pause, asked: [] }
    }
    if (message.type === 'resend') {
      const again = this.#llm.get(message.effect)
      return { ...this.#pause, asked: again ? [again] : [] }
    }
    if (
      this.#pause.state === 'blocked' &&
      !(message.type === 'outcome' && message.effect === this.#pause.on)
    ) {
      throw new BatonError('guest-state', `(blocked on ${this.#pause.on})`)
    }
    return this.#step(message)
  }

  #step(message: GuestMessage): Pause {
    this.#messages.push(message)
    const { done, value } = this.#run.next(message)
    if (done) this.#pause = { state: 'finished', asked: [], result: value }
    else {
      const asked = value.ask ?? []
      for (const ask of asked) if (ask.kind === 'llm') this.#llm.set(ask.id, ask)
      this.#pause =
        value.blockOn === undefined
          ? { state: 'quiescent', asked }
          : { state: 'blocked', on: value.blockOn, asked }
    }
    return { ...this.#pause, asked: [...this.#pause.asked] }
  }

  async run(): Promise<Pause> {
    throw new BatonError('guest-state', '(not interrupted)')
  }

  interrupt(): void {}

  async snapshot(): Promise<Snapshot> {
    const bytes = utf8(JSON.stringify({ messages: this.#messages }))
    const { state } = this.#pause
    if (state === 'finished' || state === 'failed') throw new BatonError('guest-state')
    const on = this.#pause.state === 'blocked' ? { on: this.#pause.on } : {}
    const header: SnapshotHeader = { abi: 1, engine: HASH, bundle: HASH, baseline: HASH, state, ...on }
    return { header, bytes, hash: sha256Hex(bytes) }
  }

  async close(): Promise<void> {
    this.closed = true
  }
}
