/**
 * The one object between the screens and the relay: the connection, the account as listed, the outbox, and the sessions that
 * are on screen. It holds state in cells and knows nothing of React.
 */
import { httpBlobs, type HttpBlobs } from '@baton/shared/blobs.ts'
import { Connection, type ConnectionState } from '@baton/shared/connection.ts'
import { BatonError } from '@baton/shared/errors.ts'
import {
  SessionMeta,
  type DeviceAbout,
  RunnerAbout,
  DeviceAbout as DeviceAboutSchema,
} from '@baton/shared/journal.ts'
import {
  accountKey,
  newPairing,
  pairingLink,
  sessionKey,
  type Account,
  type Device,
} from '@baton/shared/keys.ts'
import type { Notice, SessionInfo } from '@baton/shared/protocol.ts'
import { openJson, place } from '@baton/shared/seal.ts'
import * as v from 'valibot'
import { Cell } from '../store/cell.ts'
import type { Database, Seen } from '../store/db.ts'
import type { Approval } from '@baton/shared/view/items.ts'
import { Dismissed } from '../store/dismissed.ts'
import { merged, type Runner, type NamedDevice } from '../store/account.ts'
// What reads journals is not needed for the first picture; it comes with the session's screen.
import type { Live } from './live.ts'
import { Sender, type Ask, type OutboxStorage } from './sender.ts'

export interface HubOptions {
  origin: string
  account: Account
  device: Device
  about: DeviceAbout
  db: Database
}

const SEEN_WRITE_MS = 500
/** Of the list, so many are looked at for how they ended; of those that change meanwhile all. */
const NEWEST = 20
/** Of some 300 KB each: what a screen or two shows. */
const PICTURES_MAX = 24

export class Hub {
  readonly connection = new Cell<ConnectionState>({ at: 'closed' })
  readonly seen = new Cell<Seen>({ sessions: [], runners: [], devices: [] })
  /** The list has come from the relay since the start; until then `seen` is this device's memory. */
  readonly listed = new Cell(false)
  /** What waiting sessions wait for, by sid. */
  readonly glances = new Cell<ReadonlyMap<string, readonly Approval[]>>(new Map())
  /** Sessions that rest because their last turn ended in an error, as far as was looked. */
  readonly troubled = new Cell<ReadonlySet<string>>(new Set())
  readonly dismissed: Dismissed
  readonly outbox: Sender
  readonly blobs: HttpBlobs
  readonly account: Account
  readonly device: Device
  readonly origin: string
  readonly #db: Database
  readonly #connection: Connection
  readonly #lives = new Map<string, { live: Live; users: number }>()
  readonly #keys = new Map<string, Uint8Array>()
  readonly #opened = new Map<string, unknown>()
  readonly #glanced = new Map<string, number>()
  readonly #pictures = new Map<string, Promise<Uint8Array>>()
  #write: ReturnType<typeof setTimeout> | undefined

  constructor({ origin, account, device, about, db }: HubOptions) {
    this.origin = origin
    this.account = account
    this.device = device
    this.#db = db
    this.dismissed = new Dismissed(db)
    this.#connection = new Connection({
      origin,
      account,
      device,
      about,
      onState: (state) => this.#became(state),
      onNotice: (notice) => this.#noticed(notice),
    })
    this.blobs = httpBlobs(origin, () => {
      const { state } = this.#connection
      if (state.at !== 'open') throw new BatonError('offline')
      return state.welcome.token
    })
    this.outbox = new Sender(outboxStorage(db), (what, with_) => this.#connection.ask(what, with_), {
      upload: (sid, blob) => this.blobs.putBox(sid, blob),
    })
  }

  /** Shows what this device remembers, then connects. */
  async start(): Promise<void> {
    const seen = await this.#db.get('seen', 'account').catch(() => undefined)
    if (seen) this.seen.set(seen)
    await this.dismissed.load()
    await this.outbox.load()
    this.#connection.start()
  }

  close(): void {
    clearTimeout(this.#write)
    for (const { live } of this.#lives.values()) live.close()
    this.outbox.close()
    this.#connection.close()
  }

  /** The page became visible or the network came back (F1). A socket that still lives may have missed a notice: catch up. */
  nudge(): void {
    this.#connection.nudge()
    if (this.#connection.state.at === 'open') this.#refresh()
  }

  /** The system says that there is no network. Shown at once, and asked of the relay: it may run on this very machine. */
  offline(): void {
    if (this.#connection.state.at !== 'open') return
    this.connection.set({ at: 'connecting', attempt: 0 })
    // What is said from here on stays here, and can be taken back.
    this.outbox.connected(false)
    this.nudge()
  }

  /** Tries again after a refusal whose cause is gone. */
  restart(): void {
    this.#connection.start()
  }

  keyOf(sid: string): Uint8Array {
    let key = this.#keys.get(sid)
    if (!key) this.#keys.set(sid, (key = sessionKey(this.account, sid)))
    return key
  }

  /** A session's metadata; undefined when this device can't read it. */
  readonly metaOf = (sid: string, sealed: string): SessionMeta | undefined =>
    this.#read(SessionMeta, this.keyOf(sid), sealed, place.meta(sid))

  runners(seen = this.seen.get()): Runner[] {
    return seen.runners.map((runner) => ({
      ...runner,
      about: this.#read(RunnerAbout, accountKey(this.account), runner.body, place.runner(runner.device)),
    }))
  }

  devices(seen = this.seen.get()): NamedDevice[] {
    return seen.devices.map((device) => ({
      ...device,
      about: this.#read(
        DeviceAboutSchema,
        accountKey(this.account),
        device.body,
        place.device(device.device),
      ),
    }))
  }

  /** Brings a session on screen, as a `Live` of the class given; call the result to let go of it. */
  watch(sid: string, LiveSession: typeof Live): { live: Live; release: () => void } {
    let held = this.#lives.get(sid)
    if (!held) {
      const live = new LiveSession(sid, this.keyOf(sid), this.#connection, this.#db, (ids) =>
        this.outbox.applied(ids),
      )
      this.#lives.set(sid, (held = { live, users: 0 }))
      const pending = this.seen.get().sessions.find((session) => session.sid === sid)?.pending ?? 0
      if (pending > 0) void live.refreshWaiting(pending)
    }
    held.users++
    const { live } = held
    let released = false
    const release = (): void => {
      if (released || !held) return
      released = true
      if (--held.users > 0) return
      this.#lives.delete(sid)
      live.close()
    }
    return { live, release }
  }

  /** Bytes of a picture of a session; the last ones shown are kept. Throws BatonError, as `BlobStore.get`. */
  picture(sid: string, hash: string): Promise<Uint8Array> {
    const known = this.#pictures.get(hash)
    this.#pictures.delete(hash)
    const bytes = known ?? this.blobs.get(sid, this.keyOf(sid), hash)
    this.#pictures.set(hash, bytes)
    // One that failed is fetched again.
    bytes.catch(() => this.#pictures.delete(hash))
    for (const oldest of this.#pictures.keys()) {
      if (this.#pictures.size <= PICTURES_MAX) break
      this.#pictures.delete(oldest)
    }
    return bytes
  }

  /** A link that lets one more device join, for ten minutes. Throws BatonError `offline`, `timeout`. */
  async invite(): Promise<{ link: string; expires_at: number }> {
    const pairing = newPairing(this.account)
    const { offer, box } = pairing
    const { expires_at } = await this.#connection.ask('pairing', { offer, box })
    return { link: pairingLink(this.origin, pairing), expires_at }
  }

  /** Throws BatonError `offline`, `timeout`. */
  async revoke(device: string): Promise<void> {
    await this.#connection.ask('revoke', { device })
  }

  #shows(state: ConnectionState): void {
    this.connection.set(state)
    this.outbox.connected(state.at === 'open')
  }

  #became(state: ConnectionState): void {
    this.#shows(state)
    if (state.at === 'open') this.#refresh()
  }

  #refresh(): void {
    for (const { live } of this.#lives.values()) live.resume()
    this.#connection
      .ask('list', {})
      .then((list) => {
        // It answers, whatever the system said of the network.
        if (this.connection.get().at !== 'open') this.#shows(this.#connection.state)
        this.#see(list)
        this.listed.set(true)
        const newest = list.sessions.toSorted((a, b) => b.changed_at - a.changed_at).slice(0, NEWEST)
        for (const session of list.sessions) this.#sessionSeen(session, newest.includes(session))
      })
      // A lost connection lists again when it is back.
      .catch(() => undefined)
  }

  #noticed(notice: Notice): void {
    switch (notice.t) {
      case 'session':
      case 'runner':
      case 'device':
        this.#see(merged(this.seen.get(), notice))
        if (notice.t === 'session') this.#sessionSeen(notice.session)
        return
      case 'entries':
      case 'gap':
      case 'delta':
        this.#lives.get(notice.sid)?.live.notice(notice)
        return
      case 'offer':
      case 'inbox':
        // For runners.
        return
    }
  }

  #see(seen: Seen): void {
    this.seen.set(seen)
    clearTimeout(this.#write)
    this.#write = setTimeout(() => {
      this.#db.put('seen', seen, 'account').catch(() => undefined)
    }, SEEN_WRITE_MS)
  }

  /** `look`: also for how the last turn ended, when it rests. */
  #sessionSeen(session: SessionInfo, look = true): void {
    const { sid, pending, status, seq } = session
    const held = this.#lives.get(sid)
    // A watched session learns from its journal what was applied; the count alone may be older than the command.
    this.outbox.listed(sid, held ? Math.max(1, pending) : pending)
    // It was watched before the relay had heard of it.
    if (held?.live.view.get().refused) held.live.resume()
    void held?.live.refreshWaiting(pending)
    const rests = status === 'idle' && look
    if (!rests && this.troubled.get().has(sid)) this.#setTroubled(sid, false)
    if ((status === 'waiting' || rests) && this.#glanced.get(sid) !== seq) void this.#glance(sid, seq, rests)
  }

  #setTroubled(sid: string, now: boolean): void {
    const only = new Set([sid])
    this.troubled.update((sids) => (now ? sids.union(only) : sids.difference(only)))
  }

  async #glance(sid: string, seq: number, rests: boolean): Promise<void> {
    this.#glanced.set(sid, seq)
    try {
      const { glance, troubled } = await import('./glance.ts')
      const ask: Ask = (what, with_) => this.#connection.ask(what, with_)
      const key = this.keyOf(sid)
      if (rests) {
        const now = await troubled(ask, key, sid, seq)
        if (this.#glanced.get(sid) === seq) this.#setTroubled(sid, now)
        return
      }
      const approvals = await glance(ask, key, sid, seq)
      // One that began later knows more.
      if (this.#glanced.get(sid) === seq)
        this.glances.update((glances) => new Map(glances).set(sid, approvals))
    } catch {
      if (this.#glanced.get(sid) === seq) this.#glanced.delete(sid)
    }
  }

  /** Opens and validates sealed metadata, once a box. */
  #read<S extends v.GenericSchema>(
    schema: S,
    key: Uint8Array,
    sealed: string,
    where: string,
  ): v.InferOutput<S> | undefined {
    const name = `${where}|${sealed}`
    if (!this.#opened.has(name)) {
      let value: v.InferOutput<S> | undefined
      try {
        value = v.parse(schema, openJson(key, sealed, where))
      } catch {
        value = undefined
      }
      this.#opened.set(name, value)
    }
    return this.#opened.get(name)
  }
}

function outboxStorage(db: Database): OutboxStorage {
  return {
    load: () => db.getAll('outbox'),
    async commit(put, del, draft) {
      // `strict`: acknowledged to the person only when on the disk.
      const tx = db.transaction(['outbox', 'drafts', 'photos'], 'readwrite', { durability: 'strict' })
      const outbox = tx.objectStore('outbox')
      for (const item of put) void outbox.put(item)
      for (const id of del) void outbox.delete(id)
      if (draft !== undefined) {
        void tx.objectStore('drafts').delete(draft)
        void tx.objectStore('photos').delete(draft)
      }
      await tx.done
    },
  }
}
