/** A runner: announces itself, takes offers, holds sessions, and lets them all go when it ends. */
import { hostname } from 'node:os'
import type { ConnectionState } from '@baton/shared/connection.ts'
import { BatonError, explain } from '@baton/shared/errors.ts'
import type { RunnerAbout } from '@baton/shared/journal.ts'
import { poolTag, type Account, type Device } from '@baton/shared/keys.ts'
import type { Notice, SessionInfo } from '@baton/shared/protocol.ts'
import { happened } from '../happenings.ts'
import type { SessionOptions } from '../session/options.ts'
import { moment, type Moment } from '../power/moment.ts'
import { Session } from '../session/session.ts'
import { SavingTurns } from '../session/urgency.ts'
import { Announcing } from './announcing.ts'
import { Away } from './away.ts'
import { Later } from './later.ts'
import { Leases } from './leases.ts'
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
  hands: Omit<
    SessionOptions,
    'link' | 'account' | 'device' | 'tags' | 'isRevoked' | 'isCrowded' | 'isNews' | 'log'
  >
  log: (message: string) => void
  onState?: (state: ConnectionState) => void
  /** How long a session may compute while others wait for its place. Default: 30 s. */
  turn_ms?: number
}

/** A lost notice costs at most this. */
const POLL_MS = 10_000
/** The relay says again with every sweep, which is once a second, that others wait for room. */
const CROWDED_MS = 2_500
const TURN_MS = 30_000
/** Changes of what is away come in bunches. */
const AWAY_SETTLES_MS = 200
/** Of the time that there is to let go, running effects get this share; the rest is for saving. */
const FINISH_SHARE = 0.4
/** How many save at once: more would all be late on a slow disk, fewer leave a fast one idle. */
const SAVING_AT_ONCE = 3
export class Runner {
  readonly #options: RunnerOptions
  readonly #turn_ms: number
  readonly #link: Link
  readonly #leases: Leases
  readonly #sessions = new Map<string, { session: Session; ended: Promise<void> }>()
  readonly #claiming = new Map<string, Promise<void>>()
  /** Offered again before the last of them was put away here. */
  readonly #wanted = new Set<string>()
  /** Offered while the last one was still being put away: the relay counts its place as free from its release on. */
  readonly #passed = new Set<string>()
  /** Sessions that this runner, as it is, can't continue. */
  readonly #unfit = new Set<string>()
  /** Those that could not be continued here, for now. */
  readonly #later = new Later()
  readonly #revoked = new Set<string>()
  readonly #tags: string[]
  readonly #poll: ReturnType<typeof setInterval>
  readonly #away: Away
  readonly #announcing: Announcing
  #awayTimer: ReturnType<typeof setTimeout> | undefined
  /** How many sessions wait for room here, and until when to believe it. */
  #crowd = 0
  #crowded_until = 0
  #draining = false
  #asleep = false

  constructor(options: RunnerOptions) {
    this.#options = options
    this.#turn_ms = options.turn_ms ?? TURN_MS
    this.#tags = options.pools.map((label) => poolTag(options.account, label))
    const { origin, account, device, name } = options
    this.#away = new Away(device.id, this.#tags)
    this.#link = new Link({
      ...{ origin, account, device },
      about: { name, kind: options.pools.length > 0 ? 'cloud' : 'laptop' },
      onState: (state) => this.#onState(state),
      onNotice: (notice) => this.#onNotice(notice),
    })
    this.#announcing = new Announcing({
      ...{ runner: options, link: this.#link, tags: this.#tags, away: this.#away },
      capacity: () => this.#capacity,
      onRevoked: (id) => this.#revoked.add(id),
    })
    this.#leases = new Leases(this.#link, () => this.#link.connection.nudge())
    this.#poll = setInterval(() => this.#pollInboxes(), POLL_MS)
  }

  /** Resolves when the runner is announced. Rejects with the relay's refusal. */
  async start(): Promise<void> {
    this.#link.connection.start()
    await this.#link.ready()
  }

  /** Lets all sessions go, each saved at the relay, within about `within_ms`, then ends. What runs too long is cut off. */
  async drain(within_ms: number): Promise<void> {
    this.#draining = true
    await this.#letAllGo(within_ms)
    this.close()
  }

  /** The machine will sleep: as `drain`, but the runner stays, away from its relay until `wake`. */
  async sleep(within_ms: number): Promise<void> {
    if (this.#asleep || this.#draining) return
    this.#asleep = true
    await this.#letAllGo(within_ms)
    // Offline for all to see, and at once (F5). Not if it is awake again by now.
    if (this.#asleep) this.#link.connection.close()
  }

  /** Serves again after `sleep`, and finds out what became of its sessions. */
  wake(): void {
    if (!this.#asleep) return
    this.#asleep = false
    if (this.#link.connection.state.at === 'closed') this.#link.connection.start()
    else {
      this.lookAgain()
      void this.#announcing.announce()
    }
  }

  /** After a sleep that nobody had spoken of, or in another network: is the connection alive, are the leases still ours? */
  lookAgain(): void {
    // Slept and handed over: whoever notices is awake.
    if (this.#asleep && this.#link.connection.state.at === 'closed') this.wake()
    else if (this.#link.connection.state.at !== 'closed') this.#link.connection.nudge()
    this.#leases.renew()
  }

  /** For metrics. */
  get numbers(): { held: number; capacity: number; waiting: number; connected: boolean } {
    return {
      held: this.#sessions.size,
      capacity: this.#capacity,
      waiting: performance.now() < this.#crowded_until ? this.#crowd : 0,
      connected: this.#link.connection.state.at === 'open',
    }
  }

  close(): void {
    this.#draining = true
    clearInterval(this.#poll)
    clearTimeout(this.#awayTimer)
    this.#leases.close()
    this.#link.connection.close()
  }

  #onState(state: ConnectionState): void {
    this.#options.onState?.(state)
    if (state.at !== 'open') return
    void this.#announcing.announce()
    this.#leases?.renew()
    this.#pollInboxes()
  }

  get #isLeaving(): boolean {
    return this.#draining || this.#asleep
  }

  get #capacity(): number {
    return this.#isLeaving ? 0 : this.#options.capacity
  }

  async #letAllGo(within_ms: number): Promise<void> {
    const { log } = this.#options
    // The relay hears of it first, so that what is given back is offered to others at once.
    await this.#announcing.leave(within_ms)
    const turns = new SavingTurns(SAVING_AT_ONCE, this.#sessions.size)
    for (const { session } of this.#sessions.values()) {
      session.leave({ why: 'shutdown', within_ms: within_ms * FINISH_SHARE, turns })
    }
    const began = performance.now()
    const count = this.#sessions.size + this.#claiming.size
    while (this.#sessions.size + this.#claiming.size > 0) {
      const ends = Array.from(this.#sessions.values(), ({ ended }) => ended)
      await Promise.allSettled([...this.#claiming.values(), ...ends])
    }
    if (count > 0) log(`all ${count} sessions are let go, after ${Math.round(performance.now() - began)} ms`)
  }

  #onNotice(notice: Notice): void {
    if (notice.t === 'offer') this.#offered(notice.sid)
    else if (notice.t === 'inbox') this.#sessions.get(notice.sid)?.session.command(notice.command)
    else if (notice.t === 'crowded') this.#crowded(notice.waiting)
    else if (notice.t === 'session') this.#see(notice.session)
    else if (notice.t === 'device' && notice.device.revoked) this.#revoked.add(notice.device.device)
  }

  /** Sessions wait for room here. Those that rest make it, the longest rest first; whoever comes to rest soon does, too. */
  #crowded(waiting: number): void {
    this.#crowd = waiting
    this.#crowded_until = performance.now() + CROWDED_MS
    const resting = Array.from(this.#sessions.values(), ({ session }) => session)
      .filter(({ rests_since }) => rests_since !== undefined)
      .toSorted((a, b) => (a.rests_since ?? 0) - (b.rests_since ?? 0))
    for (const session of resting.slice(0, waiting)) session.makeRoom()
    if (resting.length === 0) this.#takeTurns()
  }

  /** All places are taken by sessions that work. One that has computed for long goes to the end of the queue. */
  #takeTurns(): void {
    const now = performance.now()
    const [longest] = Array.from(this.#sessions.values(), ({ session }) => session)
      .filter(({ computes_since }) => computes_since !== undefined && now - computes_since > this.#turn_ms)
      .toSorted((a, b) => (a.computes_since ?? 0) - (b.computes_since ?? 0))
    longest?.leave({ why: 'room', within_ms: this.#options.hands.finish_within_ms })
  }

  /** A session changed somewhere; perhaps it is away now, or home again. */
  #see(session: SessionInfo): void {
    if (!this.#away.see(session) || this.#isLeaving) return
    clearTimeout(this.#awayTimer)
    this.#awayTimer = setTimeout(() => void this.#announcing.announce(), AWAY_SETTLES_MS)
  }

  #offered(sid: string): void {
    happened('offer', {})
    const taken = this.#sessions.size + this.#claiming.size
    const present = this.#sessions.get(sid)
    if (this.#unfit.has(sid) || this.#later.isTooEarly(sid)) return
    if (present?.session.isReleased) this.#wanted.add(sid)
    if (present || this.#isLeaving || this.#claiming.has(sid)) return
    if (taken >= this.#options.capacity) {
      this.#passed.add(sid)
      return
    }
    this.#passed.delete(sid)
    const claim = this.#claim(sid)
      .catch((error: unknown) => {
        const code = error instanceof BatonError ? error.code : 'internal'
        // Somebody was faster, or the session was moved meanwhile.
        if (code !== 'lease-held' && code !== 'placed-elsewhere')
          this.#options.log(`could not claim: ${explain(error)}`)
      })
      .finally(() => this.#claiming.delete(sid))
    this.#claiming.set(sid, claim)
  }

  async #claim(sid: string): Promise<void> {
    const claimed_at = moment()
    const lease = { ...(await this.#link.ask('claim', { sid })), sid }
    happened('claim', { waited_ms: lease.waited_ms })
    this.#hold(new Session(this.#sessionOptions(), lease), lease.ttl_ms, claimed_at)
  }

  #hold(session: Session, ttl_ms: number, claimed_at: Moment): void {
    const { sid, epoch } = session
    this.#leases.add(session, ttl_ms, claimed_at)
    this.#options.log(`${sid} claimed, epoch ${epoch}`)
    const ended = session
      .run()
      .catch(() => 'lost' as const)
      .then((ending) => {
        this.#leases.remove(sid)
        this.#sessions.delete(sid)
        this.#options.log(`${sid} ${ending}`)
        happened('ending', { how: ending })
        if (ending === 'unfit') this.#unfit.add(sid)
        if (ending === 'later') this.#later.putOff(sid)
        else this.#later.forget(sid)
        if (ending === 'lost' || this.#isLeaving)
          this.#away.left(sid, epoch, ending === 'lost' ? 'lost' : 'released')
        if (this.#wanted.delete(sid)) this.#offered(sid)
        const [passed] = this.#passed
        if (passed !== undefined) this.#offered(passed)
      })
    this.#sessions.set(sid, { session, ended })
    // Claimed while the runner began to let go.
    if (this.#isLeaving) session.leave({ why: 'shutdown', within_ms: 0 })
  }

  #sessionOptions(): SessionOptions {
    const { account, device, hands, log } = this.#options
    return {
      ...hands,
      ...{ link: this.#link, account, device: device.id, tags: this.#tags },
      isRevoked: (id) => this.#revoked.has(id),
      isCrowded: () => performance.now() < this.#crowded_until,
      isNews: (sid, words) => this.#later.isNews(sid, words),
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
