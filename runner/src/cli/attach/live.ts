/** One session as `attach` knows it: what the journal says, what waits in the inbox, and what was sent from here and is on its way. */
import { openCommand } from '@baton/shared/entries.ts'
import { BatonError, explain } from '@baton/shared/errors.ts'
import { newId } from '@baton/shared/keys.ts'
import type { CommandKind, Placement } from '@baton/shared/protocol.ts'
import type { COMMANDS } from '@baton/shared/journal.ts'
import { readToolResult, readModelText } from '@baton/shared/view/results.ts'
import type { BlobRef } from '@baton/shared/view/items.ts'
import type { Read } from '@baton/shared/view/entry.ts'
import { EMPTY, reduce, withDelta, type Transcript } from '@baton/shared/view/transcript.ts'
import type { Json } from '@baton/shared/guest.ts'
import type * as v from 'valibot'
import type { AccountView } from '../account.ts'
import { Follow } from '../follow.ts'

type Body<K extends CommandKind> = v.InferInput<(typeof COMMANDS)[K]>

/** A command of this device, until the journal shows it as applied. Its id is fixed, so sending it again is harmless (I6). */
export interface Outgoing {
  id: string
  kind: CommandKind
  /** Of a prompt. */
  text?: string
  /** Of a decision. */
  decided?: { effect: number; approved: boolean }
  state: 'sending' | 'sent' | 'refused'
  error?: string
}

/** A prompt of another device that waits in the inbox. */
export interface Waiting {
  id: string
  text: string
}

/** Refusals that time heals. */
const PASSING: ReadonlySet<string> = new Set([
  'offline',
  'timeout',
  'too-fast',
  'store-down',
  'disk-full',
  'internal',
])
const AGAIN_MS = 2000

export class LiveSession implements Disposable {
  readonly sid: string
  transcript: Transcript = EMPTY
  /** Seq of the last entry that is known to exist. */
  tail = 0
  waiting: readonly Waiting[] = []
  outgoing: readonly Outgoing[] = []
  refused: BatonError | undefined
  /** Whole results by the hash of their blob: fetched, or why not. */
  readonly wholes = new Map<string, string>()
  readonly #view: AccountView
  readonly #changed: () => void
  readonly #onRead: ((entries: readonly Read[]) => void) | undefined
  readonly #applied = new Set<string>()
  readonly #sends = new Map<string, () => Promise<unknown>>()
  readonly #follow: Follow
  readonly #ends: (() => void)[]
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(
    view: AccountView,
    sid: string,
    changed: () => void,
    onRead?: (entries: readonly Read[]) => void,
  ) {
    this.#view = view
    this.sid = sid
    this.#changed = changed
    this.#onRead = onRead
    this.#follow = new Follow(view, sid, 0, {
      onEntries: (entries, tail) => this.#take(entries, tail),
      onDelta: (effect, { text, thought }) => {
        this.transcript = withDelta(this.transcript, effect, text, thought)
        changed()
      },
      onGap: () => {
        this.transcript = EMPTY
        changed()
      },
      onRefused: (error) => {
        this.refused = error
        changed()
      },
    })
    this.#ends = [
      view.onState((state) => {
        if (state.at === 'open') void this.#sendAll()
      }),
    ]
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    for (const end of this.#ends) end()
    this.#follow[Symbol.dispose]()
  }

  get isRead(): boolean {
    return this.tail > 0 && this.transcript.seq >= this.tail
  }

  /** Sends a command, now or when there is a connection, until the relay has it or refuses it. */
  send<K extends CommandKind>(
    kind: K,
    body: Body<K>,
    shown: Pick<Outgoing, 'text' | 'decided'> = {},
    place?: Placement,
  ): void {
    const id = newId()
    const options = { id, ...(place === undefined ? {} : { place }) }
    this.#sends.set(id, () => this.#view.command(this.sid, kind, body, options))
    this.outgoing = [...this.outgoing, { id, kind, state: 'sending', ...shown }]
    this.#changed()
    void this.#sendAll()
  }

  /** Takes back what was refused. */
  drop(id: string): void {
    this.#sends.delete(id)
    this.outgoing = this.outgoing.filter((other) => other.id !== id)
    this.#changed()
  }

  /** Texts of prompts that the relay does not have; they are not lost when this ends. */
  unsent(): string[] {
    return this.outgoing.flatMap(({ text, state }) => (text !== undefined && state !== 'sent' ? [text] : []))
  }

  /** Has everything been taken by the relay, or refused? */
  get isSettled(): boolean {
    return this.outgoing.every(({ state }) => state !== 'sending')
  }

  /** Waits until it has, at most so long. */
  async settle(within_ms: number): Promise<void> {
    const deadline = Date.now() + within_ms
    while (!this.isSettled && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20))
  }

  /** Prompts of all devices that wait in the inbox. `pending`: how many commands do. */
  async refreshWaiting(pending: number): Promise<void> {
    if (pending === 0 && this.waiting.length === 0) return
    const { commands } = await this.#view.link.ask('inbox', { sid: this.sid }).catch(() => ({ commands: [] }))
    const key = this.#view.keyOf(this.sid)
    this.waiting = commands.flatMap((command) => {
      const { id, kind } = command
      if (kind !== 'prompt' || this.#applied.has(id)) return []
      try {
        return [{ id, text: openCommand(key, this.sid, { ...command, kind }).text }]
      } catch {
        // The transcript will say so when it is applied.
        return []
      }
    })
    this.#changed()
  }

  /** Fetches the whole of a long result, once. */
  async fetchWhole({ hash }: BlobRef, of: 'text' | 'tool'): Promise<void> {
    if (this.wholes.has(hash)) return
    this.wholes.set(hash, '(fetching …)')
    try {
      const bytes = await this.#view.link.blobs.get(this.sid, this.#view.keyOf(this.sid), hash)
      const result = JSON.parse(new TextDecoder().decode(bytes)) as Json
      this.wholes.set(hash, of === 'text' ? readModelText(result) : readToolResult(result).text)
    } catch (error) {
      this.wholes.set(hash, `(it can not be fetched: ${explain(error)})`)
    }
    this.#changed()
  }

  #take(entries: readonly Read[], tail: number): void {
    this.transcript = reduce(this.transcript, entries)
    this.tail = Math.max(this.tail, tail)
    const applied = entries.flatMap((entry) => (entry.kind === 'received' ? [entry.body.id] : []))
    if (applied.length > 0) {
      for (const id of applied) {
        this.#applied.add(id)
        this.#sends.delete(id)
      }
      this.outgoing = this.outgoing.filter(({ id }) => !this.#applied.has(id))
      this.waiting = this.waiting.filter(({ id }) => !this.#applied.has(id))
    }
    this.#onRead?.(entries)
    this.#changed()
  }

  #sending = false

  /** In order: a prompt must not overtake the one before it. */
  async #sendAll(): Promise<void> {
    if (this.#sending) return
    this.#sending = true
    clearTimeout(this.#timer)
    try {
      for (;;) {
        const next = this.outgoing.find(({ state }) => state === 'sending')
        const send = next && this.#sends.get(next.id)
        if (!next || !send) return
        try {
          await send()
          this.#become(next.id, { state: 'sent' })
        } catch (error) {
          if (error instanceof BatonError && PASSING.has(error.code)) {
            // Without a connection its opening is awaited instead.
            if (this.#view.link.connection.state.at === 'open')
              this.#timer = setTimeout(() => void this.#sendAll(), AGAIN_MS)
            return
          }
          this.#become(next.id, { state: 'refused', error: explain(error) })
        }
      }
    } finally {
      this.#sending = false
    }
  }

  #become(id: string, change: Partial<Outgoing>): void {
    this.outgoing = this.outgoing.map((other) => (other.id === id ? { ...other, ...change } : other))
    if (change.state !== 'sending') this.#sends.delete(id)
    this.#changed()
  }
}
