/** What happens in an account, told to its connections at this relay. One hub an account, made with the first connection. */
import type { DeviceInfo, RelayFrame, RunnerInfo, SessionInfo } from '@baton/shared/protocol.ts'
import type { Redis } from 'ioredis'
import type { InboxFeed } from './inbox-feed.ts'
import { accountChannel, accountKeys } from './keys.ts'
import type { Listener, Notices } from './notices.ts'
import type { Presence } from './presence.ts'
import { infoOf, readState } from './sessions.ts'
import { readDevice, readDevices, type Identity } from './sign-in.ts'

/** A signed-in connection, as far as the hub is concerned. */
export interface Peer {
  identity: Identity
  serving: boolean
  feeds: Map<string, InboxFeed>
  /** A change of the account; dropped by those that did not ask for the list. */
  change: (frame: RelayFrame) => void
  deliver: (frame: RelayFrame) => Promise<void>
  revoked: () => void
}

export interface Everything {
  sessions: SessionInfo[]
  runners: RunnerInfo[]
  devices: DeviceInfo[]
}

/** A session that changes all the time is told of this often. */
const QUIET_MS = 100

export class Hub {
  readonly peers = new Set<Peer>()
  readonly #account: string
  readonly #redis: Redis
  readonly #notices: Notices
  readonly #presence: Presence
  readonly #listener: Listener
  /** Sessions told of just now → whether they changed again. */
  readonly #quiet = new Map<string, boolean>()
  /** Runners as last told. */
  readonly #runners = new Map<string, string>()

  constructor(account: string, redis: Redis, notices: Notices, presence: Presence) {
    this.#account = account
    this.#redis = redis
    this.#notices = notices
    this.#presence = presence
    this.#listener = { message: (text) => this.#hear(text), resumed: () => void this.#tellEverything() }
  }

  async open(): Promise<void> {
    await this.#notices.listen(accountChannel(this.#account), this.#listener)
  }

  close(): void {
    this.#notices.drop(accountChannel(this.#account), this.#listener)
  }

  async everything(): Promise<Everything> {
    const [sessions, runners, devices] = await Promise.all([
      this.#sessions(),
      this.#presence.runners(this.#account),
      readDevices(this.#redis, this.#account),
    ])
    return { sessions, runners, devices }
  }

  /** Tells what changed with the runners, also when nobody said so: a relay that dies says nothing (F5). */
  async tellRunners(): Promise<void> {
    for (const runner of await this.#presence.runners(this.#account)) {
      const text = JSON.stringify(runner)
      if (this.#runners.get(runner.device) === text) continue
      this.#runners.set(runner.device, text)
      this.#tell({ t: 'runner', runner })
    }
  }

  #hear(text: string): void {
    const [what, first = '', second = ''] = text.split(' ')
    switch (what) {
      case 'session':
        this.#sessionChanged(first)
        break
      case 'inbox':
        for (const peer of this.peers) void peer.feeds.get(first)?.pump()
        break
      case 'offer':
        for (const peer of this.peers) {
          if (peer.serving && peer.identity.device === first)
            ignore(peer.deliver({ t: 'offer', sid: second }))
        }
        break
      case 'crowded':
        for (const peer of this.peers) {
          if (peer.serving && peer.identity.device === first)
            ignore(peer.deliver({ t: 'crowded', waiting: Number(second) }))
        }
        break
      case 'runners':
        ignore(this.tellRunners())
        break
      case 'device':
        ignore(this.#tellDevice(first))
        break
      case 'revoked':
        for (const peer of [...this.peers]) if (peer.identity.device === first) peer.revoked()
        break
    }
  }

  #tell(frame: RelayFrame): void {
    for (const peer of this.peers) peer.change(frame)
  }

  /** At once, then at most once in a while, the last change always. */
  #sessionChanged(sid: string): void {
    if (this.#quiet.has(sid)) {
      this.#quiet.set(sid, true)
      return
    }
    this.#quiet.set(sid, false)
    ignore(this.#tellSession(sid))
    setTimeout(() => {
      const again = this.#quiet.get(sid) === true
      this.#quiet.delete(sid)
      if (again) this.#sessionChanged(sid)
    }, QUIET_MS)
  }

  async #tellSession(sid: string): Promise<void> {
    const state = await readState(this.#redis, sid)
    if (state?.account === this.#account) this.#tell({ t: 'session', session: infoOf(sid, state) })
  }

  async #tellDevice(device: string): Promise<void> {
    const info = await readDevice(this.#redis, { account: this.#account, device })
    if (info) this.#tell({ t: 'device', device: info })
  }

  async #sessions(): Promise<SessionInfo[]> {
    const sids = await this.#redis.smembers(accountKeys(this.#account).sessions)
    const sessions = await Promise.all(
      sids.map(async (sid) => {
        const state = await readState(this.#redis, sid)
        return state?.account === this.#account ? infoOf(sid, state) : undefined
      }),
    )
    return sessions.filter((session) => session !== undefined)
  }

  /** Messages may have been lost: says how everything stands. */
  async #tellEverything(): Promise<void> {
    try {
      for (const peer of this.peers) for (const feed of peer.feeds.values()) void feed.pump()
      const { sessions, runners, devices } = await this.everything()
      for (const session of sessions) this.#tell({ t: 'session', session })
      for (const runner of runners) this.#tell({ t: 'runner', runner })
      for (const device of devices) this.#tell({ t: 'device', device })
    } catch {
      // Redis is away again; when it is back, this runs again.
    }
  }
}

/** Notices may be lost: with Redis away or the socket closed there is nobody to tell, and everything is read anew later. */
function ignore(promise: Promise<void>): void {
  promise.catch(() => undefined)
}

/** The hubs of one relay. */
export class Hubs {
  readonly #hubs = new Map<string, { hub: Hub; opened: Promise<void> }>()
  readonly #make: (account: string) => Hub

  constructor(redis: Redis, notices: Notices, presence: Presence) {
    this.#make = (account) => new Hub(account, redis, notices, presence)
  }

  /** Resolves once nothing more can be missed. Throws when Redis is away. */
  async join(peer: Peer): Promise<Hub> {
    const { account } = peer.identity
    let entry = this.#hubs.get(account)
    if (!entry) {
      const hub = this.#make(account)
      entry = { hub, opened: hub.open() }
      this.#hubs.set(account, entry)
    }
    entry.hub.peers.add(peer)
    try {
      await entry.opened
    } catch (error) {
      this.leave(peer)
      throw error
    }
    return entry.hub
  }

  leave(peer: Peer): void {
    const entry = this.#hubs.get(peer.identity.account)
    if (!entry?.hub.peers.delete(peer) || entry.hub.peers.size > 0) return
    this.#hubs.delete(peer.identity.account)
    entry.hub.close()
  }

  of(account: string): Hub | undefined {
    return this.#hubs.get(account)?.hub
  }

  *[Symbol.iterator](): Generator<Hub> {
    for (const { hub } of this.#hubs.values()) yield hub
  }
}
