/**
 * The outbox at work: keeps it durable, sends what may be sent, and sends it again, with the same id, until the relay has
 * acknowledged it. Whoever queues something awaits its durability before letting go of the draft (F10, F14).
 */
import type { BlobBox } from '@baton/shared/blobs.ts'
import { BatonError } from '@baton/shared/errors.ts'
import type { AskGives, AskName, AskWith } from '@baton/shared/protocol.ts'
import { Cell } from '../store/cell.ts'
import {
  discarded,
  enqueued,
  isHere,
  isPassing,
  resendUnknown,
  sendable,
  withoutApplied,
  withTried,
  withState,
  type NewOutboxItem,
  type OutboxItem,
} from '../store/outbox.ts'

/** Where the outbox lives across reloads. */
export interface OutboxStorage {
  load(): Promise<OutboxItem[]>
  /** Writes and deletes in one transaction; `draft` names a draft that is deleted with it. */
  commit(put: readonly OutboxItem[], del: readonly string[], draft?: string): Promise<void>
}

/** Stores what a command names before the command goes; again is harmless. */
export type Upload = (sid: string, blob: BlobBox) => Promise<void>

export type Ask = <N extends AskName>(what: N, with_: AskWith<N>) => Promise<AskGives<N>>

const RETRY_MS = 3_000

const nowhere: Upload = () => Promise.reject(new BatonError('offline'))

export class Sender {
  readonly items = new Cell<readonly OutboxItem[]>([])
  readonly #storage: OutboxStorage
  readonly #ask: Ask
  readonly #upload: Upload
  /** Hashes of what is stored, so that a prompt that goes again does not carry its pictures again. */
  readonly #stored = new Set<string>()
  readonly #now: () => number
  readonly #retry_ms: number
  #open = false
  #retry: ReturnType<typeof setTimeout> | undefined

  constructor(
    storage: OutboxStorage,
    ask: Ask,
    { now = Date.now, retry_ms = RETRY_MS, upload = nowhere } = {},
  ) {
    this.#storage = storage
    this.#ask = ask
    this.#upload = upload
    this.#now = now
    this.#retry_ms = retry_ms
  }

  async load(): Promise<void> {
    const items = await this.#storage.load()
    this.items.set(resendUnknown(items.toSorted((a, b) => a.n - b.n)))
    this.#pump()
  }

  /** Resolves when all of them are durable on this device. Rejects when the browser can't store them; then none is queued. */
  async enqueue(fresh: readonly NewOutboxItem[], draft?: string): Promise<void> {
    const next = enqueued(this.items.get(), fresh, this.#now())
    const added = next.slice(next.length - fresh.length)
    // In memory at once, so that two quick ones keep their order; sent only when durable.
    const ids = new Set(added.map((item) => item.id))
    this.#undurable = this.#undurable.union(ids)
    this.items.set(next)
    try {
      await this.#storage.commit(added, [], draft)
    } catch (error) {
      this.items.update((items) => items.filter((item) => !ids.has(item.id)))
      throw error
    } finally {
      this.#undurable = this.#undurable.difference(ids)
    }
    this.#pump()
  }
  #undurable = new Set<string>()

  /** The connection opened or ended. */
  connected(open: boolean): void {
    this.#open = open
    if (!open) return
    this.items.update(resendUnknown)
    this.#pump()
  }

  /** The journal shows these commands as applied. */
  applied(ids: ReadonlySet<string>): void {
    this.#replace(withoutApplied(this.items.get(), ids))
  }

  /** The relay lists the session and says how many of its commands still wait. */
  listed(sid: string, pending: number): void {
    const gone = (item: OutboxItem): boolean =>
      item.sid === sid && item.state === 'acknowledged' && (item.ask.what === 'create' || pending === 0)
    const items = this.items.get()
    if (items.some(gone)) this.#replace(items.filter((item) => !gone(item)))
  }

  retry(id: string): void {
    this.items.set(withState(this.items.get(), id, 'queued'))
    this.#persist(id)
    this.#pump()
  }

  /** Takes back what has not left this device. False when it has: then it stays. */
  takeBack(id: string): boolean {
    const item = this.items.get().find((other) => other.id === id)
    if (!item || !isHere(item)) return false
    this.discard(id)
    return true
  }

  discard(id: string): void {
    this.#replace(discarded(this.items.get(), id))
  }

  close(): void {
    this.#open = false
    clearTimeout(this.#retry)
  }

  #pump(): void {
    if (!this.#open) return
    for (const item of sendable(this.items.get())) {
      if (!this.#undurable.has(item.id)) void this.#send(item)
    }
  }

  async #send(item: OutboxItem): Promise<void> {
    this.items.set(withState(this.items.get(), item.id, 'sent'))
    try {
      await this.#carry(item)
      // What has no face of its own is done when the relay has it; a `create` stays until the relay lists the session.
      if (item.shown.as === 'hidden' && item.ask.what === 'command') {
        this.#replace(withoutApplied(this.items.get(), new Set([item.id])))
      } else {
        this.items.set(withState(this.items.get(), item.id, 'acknowledged'))
        this.#persist(item.id)
      }
      this.#pump()
    } catch (error) {
      const known = error instanceof BatonError ? error : new BatonError('internal', String(error))
      if (isPassing(known.code)) {
        this.items.set(withState(this.items.get(), item.id, 'queued'))
        clearTimeout(this.#retry)
        this.#retry = setTimeout(() => this.#pump(), this.#retry_ms)
      } else {
        const refusal = { code: known.code, message: known.message }
        this.items.set(withState(this.items.get(), item.id, 'refused', refusal))
        this.#persist(item.id)
        this.#pump()
      }
    }
  }

  async #carry({ sid, id, ask, pictures = [] }: OutboxItem): Promise<unknown> {
    if (ask.what === 'create') return this.#ask('create', { sid, meta: ask.meta, place: ask.place })
    for (const { hash, box } of pictures) {
      if (this.#stored.has(hash)) continue
      await this.#upload(sid, { hash, box })
      this.#stored.add(hash)
    }
    const { kind, body, place } = ask
    // Should the page end before the answer comes, the next one knows that it may have arrived.
    this.items.set(withTried(this.items.get(), id))
    this.#persist(id)
    return this.#ask('command', { sid, id, kind, body, ...(place ? { place } : {}) })
  }

  #replace(next: readonly OutboxItem[]): void {
    const kept = new Set(next.map((item) => item.id))
    const gone = this.items.get().filter((item) => !kept.has(item.id))
    if (gone.length === 0) return
    this.items.set(next)
    // Should deleting fail, the item is sent again after a reload, and its id makes that harmless.
    this.#storage
      .commit(
        [],
        gone.map((item) => item.id),
      )
      .catch(() => undefined)
    this.#pump()
  }

  #persist(id: string): void {
    const item = this.items.get().find((other) => other.id === id)
    if (item) this.#storage.commit([item], []).catch(() => undefined)
  }
}
