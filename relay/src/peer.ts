/** A signed-in connection: who it is, and all that lives as long as it does. */
import { randomBytes } from 'node:crypto'
import type { RelayFrame } from '@baton/shared/protocol.ts'
import type { Context } from './context.ts'
import { Deltas } from './deltas.ts'
import { InboxFeed } from './inbox-feed.ts'
import type { Peer } from './hub.ts'
import { Watcher, type WatchTarget } from './watch.ts'
import { sawDevice, type Identity } from './sign-in.ts'

/** What a peer does with its socket. */
export interface Outlet extends WatchTarget {
  /** Sends; a peer that has too much waiting already is closed. */
  send: (frame: RelayFrame) => void
  revoked: () => void
}

/** Whether changes of the account are told: while the list is being read they wait, so that they arrive after it. */
type Listing = { at: 'no' } | { at: 'reading'; held: RelayFrame[] } | { at: 'yes' }

export class SignedIn implements Peer {
  /** Names the connection to other relays, as the one through which a runner is online. */
  readonly id = randomBytes(12).toString('base64url')
  readonly identity: Identity
  readonly feeds = new Map<string, InboxFeed>()
  readonly deltas: Deltas
  serving = false
  /** Pools that it serves. */
  tags: readonly string[] = []
  readonly #context: Context
  readonly #outlet: Outlet
  readonly #watchers = new Map<string, Watcher>()
  #listing: Listing = { at: 'no' }
  #closed = false

  constructor(context: Context, identity: Identity, outlet: Outlet) {
    this.#context = context
    this.identity = identity
    this.#outlet = outlet
    this.deltas = new Deltas(context, identity)
  }

  change(frame: RelayFrame): void {
    if (this.#listing.at === 'yes') this.#outlet.send(frame)
    else if (this.#listing.at === 'reading') this.#listing.held.push(frame)
  }

  deliver(frame: RelayFrame): Promise<void> {
    return this.#outlet.deliver(frame)
  }

  revoked(): void {
    this.#outlet.revoked()
  }

  /** Runs `read`, then tells of changes. */
  async listWhile<T>(read: () => Promise<T>): Promise<T> {
    const held: RelayFrame[] = []
    const before = this.#listing
    this.#listing = { at: 'reading', held }
    try {
      const result = await read()
      // The answer leaves in a microtask, so these follow it.
      setImmediate(() => {
        this.#listing = { at: 'yes' }
        for (const frame of held) this.change(frame)
      })
      return result
    } catch (error) {
      this.#listing = before
      for (const frame of held) this.change(frame)
      throw error
    }
  }

  /** Replaces an earlier watch of the session. The caller starts it once the journal's end is known. */
  async watch(sid: string, from: number): Promise<Watcher> {
    this.unwatch(sid)
    const { redis, notices, log, options } = this.#context
    const watcher = new Watcher(redis, notices, log, this.#outlet, sid, from, options.poll_ms)
    this.#watchers.set(sid, watcher)
    await watcher.listen()
    // Closed, or replaced by a later watch, while it began to listen.
    if (this.#closed || this.#watchers.get(sid) !== watcher) watcher.close()
    return watcher
  }

  unwatch(sid: string): void {
    this.#watchers.get(sid)?.close()
    this.#watchers.delete(sid)
  }

  /** The feed of a session that this peer holds. */
  feed(sid: string): InboxFeed {
    let feed = this.feeds.get(sid)
    if (!feed) {
      feed = new InboxFeed(this.#context.redis, sid, this.identity.device, this.#outlet.deliver)
      this.feeds.set(sid, feed)
    }
    return feed
  }

  close(): void {
    this.#closed = true
    for (const sid of [...this.#watchers.keys()]) this.unwatch(sid)
    this.feeds.clear()
    this.deltas.close()
    this.#context.hubs.leave(this)
    const { account, device } = this.identity
    this.#context.background(sawDevice(this.#context.redis, this.identity))
    if (!this.serving) return
    this.#context.background(this.#context.presence.leave(account, device, this.id))
  }
}
