/** Opened entries for tests of the reducer, numbered as a journal numbers them. */
import type { BodyOf } from '../src/entries.ts'
import type { Json } from '../src/guest.ts'
import type { SealedKind } from '../src/protocol.ts'
import type { Read } from '../src/view/entry.ts'

const HASH = 'a'.repeat(64)

export class Journal {
  readonly entries: Read[] = []
  #at = 1000

  get seq(): number {
    return this.entries.length
  }

  /** Lets time pass on the relay's clock. */
  later(ms: number): this {
    this.#at += ms
    return this
  }

  add<K extends SealedKind>(kind: K, body: BodyOf<K>): this {
    this.entries.push({ kind, seq: this.seq + 1, at: this.#at, body } as Read)
    return this
  }

  lease(change: 'claimed' | 'released' | 'expired', holder: string): this {
    this.entries.push({ kind: 'lease', seq: this.seq + 1, at: this.#at, lease: { change, holder } })
    return this
  }

  unreadable(): this {
    this.entries.push({ kind: 'unreadable', seq: this.seq + 1, at: this.#at })
    return this
  }

  prompt(text: string, id = `prompt-${this.seq}`): this {
    return this.add('received', { kind: 'prompt', id, device: 'phone', now: 0, command: { text } })
  }

  stop(): this {
    return this.add('received', {
      kind: 'stop',
      id: `stop-${this.seq}`,
      device: 'phone',
      now: 0,
      command: {},
    })
  }

  move(label: string, prefer: string): this {
    return this.add('received', {
      kind: 'move',
      id: `move-${this.seq}`,
      device: 'phone',
      now: 0,
      command: { label },
      place: { prefer },
    })
  }

  llm(effect: number, attempt = 1): this {
    return this.add('intent', { effect, kind: 'llm', replay: 'safe', digest: HASH, attempt, now: 0 })
  }

  says(effect: number, text: string, more: { repeated?: number } = {}): this {
    const result: Json = { content: [{ type: 'text', text }], stop_reason: 'end_turn', model: 'm', usage: {} }
    return this.add('outcome', { effect, now: 0, result, ...more })
  }

  asks(effect: number, name: string, input: { [key: string]: Json }, digest = HASH): this {
    const approve = { name, input, digest }
    return this.add('intent', {
      effect,
      kind: 'approve',
      replay: 'safe',
      digest,
      attempt: 1,
      now: 0,
      approve,
    })
  }

  decided(effect: number, approved: boolean, device = 'phone'): this {
    return this.add('outcome', { effect, now: 0, result: { approved, device } })
  }

  call(effect: number, name: string, input: { [key: string]: Json }, approval?: number, attempt = 1): this {
    const tool = { name, input, ...(approval === undefined ? {} : { approval }) }
    return this.add('intent', { effect, kind: 'tool', replay: 'never', digest: HASH, attempt, now: 0, tool })
  }

  did(effect: number, text: string, is_error = false): this {
    return this.add('outcome', { effect, now: 0, result: { text, is_error }, duration_ms: 40 })
  }

  failed(effect: number, code: string, more: { partial?: string } = {}): this {
    return this.add('outcome', { effect, now: 0, error: { code, message: `it was ${code}` }, ...more })
  }

  snapshot(bytes: number): this {
    return this.add('snapshot', {
      chain: [],
      bytes,
      state: 'quiescent',
      covers: this.seq,
      undelivered: [],
      asked: 0,
      start: 1,
      open: [],
      previous: 0,
      approvals: [],
      mode: { value: 'ask', revision: 0 },
      rules: [],
      agent: { name: 'coder', engine: HASH, bundle: HASH, baseline: HASH, bundle_blob: HASH },
    })
  }
}
