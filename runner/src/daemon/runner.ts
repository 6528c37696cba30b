/** A runner: announces itself, takes offers, holds sessions, and lets them all go when it ends. */
import { hostname } from 'node:os'
import type { ConnectionState } from '@baton/shared/connection.ts'
import { BatonError, explain } from '@baton/shared/errors.ts'
import type { RunnerAbout } from '@baton/shared/journal.ts'
import { accountKey, poolTag, type Account, type Device } from '@baton/shared/keys.ts'
import type { Notice } from '@baton/shared/protocol.ts'
import { place, sealJson } from '@baton/shared/seal.ts'
import type { SessionOptions } from '../session/options.ts'
import { Session } from '../session/session.ts'
import { Leases, moment, type Moment } from './leases.ts'
import { Link } from './link.ts'

export interface RunnerOptions {
  origin: string
  account: Account
  device: Device
  name: string
  pools: string[]
  capacity: number
  workspaces: RunnerAbout['workspaces']
  /** What sessions need besides the connection. */
  hands: Omit<SessionOptions, 'link' | 'account' | 'device' | 'tags' | 'isRevoked' | 'log'>
  log: (message: string) => void
  onState?: (state: ConnectionState) => void
}

/** A lost notice costs at most this. */
const POLL_MS = 10_000
const ANNOUNCE_AGAIN_MS = 1_000

export class Runner {
  readonly #options: RunnerOptions
  readonly #link: Link
  readonly #leases: Leases
  readonly #sessions = new Map<string, { session: Session; ended: Promise<void> }>()
  readonly #claiming = new Set<string>()
  /** Offered again before the last of them was put away here. */
  readonly #wanted = new Set<string>()
  /** Sessions that this runner, as it is, can't continue. */
  readonly #unfit = new Set<string>()
  readonly #revoked = new Set<string>()
  readonly #tags: string[]
  readonly #poll: ReturnType<typeof setInterval>
  #draining = false

  constructor(options: RunnerOptions) {
    this.#options = options
    this.#tags = options.pools.map((label) => poolTag(options.account, label))
    const { origin, account, device, name } = options
    this.#link = new Link({
      ...{ origin, account, device },
      about: { name, kind: options.pools.length > 0 ? 'cloud' : 'laptop' },
      onState: (state) => this.#onState(state),
      onNotice: (notice) => this.#onNotice(notice),
    })
    this.#leases = new Leases(this.#link, () => this.#link.connection.nudge())
    this.#poll = setInterval(() => this.#pollInboxes(), POLL_MS)
  }

  /** Resolves when the runner is announced. Rejects with the relay's refusal. */
  async start(): Promise<void> {
    this.#link.connection.start()
    await this.#link.ready()
  }

  /** Lets all sessions go, each saved at the relay, then ends. What still runs after `within_ms` is cut off. */
  async drain(within_ms: number): Promise<void> {
    this.#draining = true
    for (const { session } of this.#sessions.values()) session.leave({ why: 'shutdown', within_ms })
    await Promise.all(Array.from(this.#sessions.values(), ({ ended }) => ended))
    this.close()
  }

  close(): void {
    this.#draining = true
    clearInterval(this.#poll)
    this.#leases.close()
    this.#link.connection.close()
  }

  #onState(state: ConnectionState): void {
    this.#options.onState?.(state)
    if (state.at !== 'open') return
    void this.#announce(state)
    this.#leases?.renew()
    this.#pollInboxes()
  }

  /** First who is revoked, then offers; again until both are answered or the connection is another one. */
  async #announce(connected: ConnectionState): Promise<void> {
    const { name, pools, workspaces, capacity, account, device, hands, log } = this.#options
    const about: RunnerAbout = {
      ...{ name, pools, workspaces, model: hands.model.name },
      platform: `${process.platform} ${process.arch}`,
    }
    const body = sealJson(accountKey(account), about, place.runner(device.id))
    while (!this.#draining && this.#link.connection.state === connected) {
      try {
        const { devices } = await this.#link.ask('list', {})
        for (const known of devices) if (known.revoked) this.#revoked.add(known.device)
        await this.#link.ask('serve', { capacity, tags: this.#tags, body })
        return
      } catch (error) {
        log(`could not announce, trying again: ${explain(error)}`)
        await new Promise((resolve) => setTimeout(resolve, ANNOUNCE_AGAIN_MS))
      }
    }
  }

  #onNotice(notice: Notice): void {
    if (notice.t === 'offer') this.#offered(notice.sid)
    else if (notice.t === 'inbox') this.#sessions.get(notice.sid)?.session.command(notice.command)
    else if (notice.t === 'device' && notice.device.revoked) this.#revoked.add(notice.device.device)
  }

  #offered(sid: string): void {
    this.#take(sid).catch((error: unknown) => {
      if (!(error instanceof BatonError)) throw error
      if (error.code !== 'lease-held') this.#options.log(`could not claim: ${explain(error)}`)
    })
  }

  async #take(sid: string): Promise<void> {
    const taken = this.#sessions.size + this.#claiming.size
    const present = this.#sessions.get(sid)
    if (this.#unfit.has(sid)) return
    if (present?.session.isReleased) this.#wanted.add(sid)
    if (present || this.#draining || taken >= this.#options.capacity || this.#claiming.has(sid)) return
    this.#claiming.add(sid)
    try {
      const claimed_at = moment()
      const lease = { ...(await this.#link.ask('claim', { sid })), sid }
      this.#hold(new Session(this.#sessionOptions(), lease), lease.ttl_ms, claimed_at)
    } finally {
      this.#claiming.delete(sid)
    }
  }

  #hold(session: Session, ttl_ms: number, claimed_at: Moment): void {
    const { sid, epoch } = session
    this.#leases.add(session, ttl_ms, claimed_at)
    this.#options.log(`${sid} claimed, epoch ${epoch}`)
    const ended = session.run().then((ending) => {
      this.#leases.remove(sid)
      this.#sessions.delete(sid)
      this.#options.log(`${sid} ${ending}`)
      if (ending === 'unfit') this.#unfit.add(sid)
      if (this.#wanted.delete(sid)) this.#offered(sid)
    })
    this.#sessions.set(sid, { session, ended })
    // Claimed while the runner began to end.
    if (this.#draining) session.leave({ why: 'shutdown', within_ms: 0 })
  }

  #sessionOptions(): SessionOptions {
    const { account, device, hands, log } = this.#options
    return {
      ...hands,
      ...{ link: this.#link, account, device: device.id, tags: this.#tags },
      isRevoked: (id) => this.#revoked.has(id),
      log: (sid, message) => log(`${sid} ${message}`),
    }
  }

  #pollInboxes(): void {
    for (const [sid, { session }] of this.#sessions) {
      this.#link.ask('inbox', { sid }).then(
        ({ commands }) => commands.forEach((command) => session.command(command)),
        () => undefined,
      )
    }
  }
}

/** The name that a runner has when none is given. */
export function defaultName(): string {
  return hostname().split('.')[0] || 'runner'
}
