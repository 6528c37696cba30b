/**
 * One session on this runner, from the claim to letting go. A single actor: everything that happens (the guest paused, an
 * effect ended, a command arrived, it is time to leave) comes through one mailbox, and between two of them `#advance` does
 * whatever can be done: write intents, start effects, hand the next message to the guest, save, park, hand off.
 *
 * The order is always: durable first, then act (I3). What the guest gets is only what the journal holds (I4, I7).
 */
import { BatonError } from '@baton/shared/errors.ts'
import type { Pause } from '@baton/shared/guest.ts'
import { sessionKey } from '@baton/shared/keys.ts'
import type { Command, Placement } from '@baton/shared/protocol.ts'
import { carryAsks, Diverged, policyOf, sortAsks, stopUnbegun } from './asks.ts'
import { Book } from './book.ts'
import { Departure } from './departure.ts'
import { Effects, outcomeDraft, type Ended } from './effects.ts'
import { aliased } from './copy.ts'
import { consume, Inbox, unreadable } from './inbox.ts'
import { happened } from '../happenings.ts'
import { arrived, Journal, notice, type Draft } from './journal.ts'
import { advanceLeave, begun, type Leave, type LeaveHands, type Leaving } from './leaving.ts'
import { listens, nextOf, takeNext, type Live } from './live.ts'
import { Mailbox } from './mailbox.ts'
import { restore, start, type Opening } from './opening.ts'
import { objectionsTo } from './objections.ts'
import type { Ending, Lease, SessionOptions } from './options.ts'
import { Rest } from './rest.ts'
import { retryOf } from './retry.ts'
import { Snapshots } from './snapshots.ts'
import { startEffect } from './start.ts'
import { waitsForPerson } from './state.ts'
import { steady, steadyBlobs } from './steady.ts'
import type { StoredFiles } from './stored-files.ts'

type Happening =
  | { t: 'paused'; pause: Pause }
  | { t: 'broke'; error: unknown }
  | { t: 'ended'; ended: Ended }
  | { t: 'write'; draft: Draft }
  | { t: 'commands'; commands: Command[] }
  | { t: 'stored'; stored: StoredFiles }
  | { t: 'leave' | 'due' | 'lost' }

/** A guest that computes without end is saved this often. */
const SAVE_EVERY_MS = 5000
const HELD =
  'A job runs in the background, so the session stays on this machine until it ends, or nothing has happened for half an hour.'

export class Session {
  readonly sid: string
  readonly #options: SessionOptions
  readonly #opening: Opening
  readonly #gone = new AbortController()
  readonly #mailbox = new Mailbox<Happening>()
  readonly #book: Book
  readonly #effects: Effects
  readonly #inbox = new Inbox()
  #live: Live | undefined
  #busy = false
  #leave: Leaving | undefined
  readonly #departure: Departure
  readonly #leaveHands: LeaveHands
  readonly #rest: Rest
  readonly #claimed_at = performance.now()
  #toldOfJobs = false
  #saveTimer: ReturnType<typeof setTimeout> | undefined

  constructor(options: SessionOptions, lease: Lease) {
    this.sid = lease.sid
    this.#options = options
    const gone = this.#gone.signal
    const key = sessionKey(options.account, lease.sid)
    const { sid, epoch, seq: tail } = lease
    const given = lease.entries ?? []
    const journal = new Journal(options.link, { sid, key, epoch, tail, gone, given })
    const named = (): Record<string, string> | undefined => this.#live?.state.copied?.blobs
    const blobs = aliased(steadyBlobs(options.link, gone), named)
    const snapshots = new Snapshots(blobs, sid, key)
    this.#book = new Book(journal, blobs, snapshots)
    this.#effects = new Effects((ended) => this.#mailbox.post({ t: 'ended', ended }))
    this.#departure = new Departure({
      ...{ options, lease, gone, book: this.#book, log: (message: string) => options.log(sid, message) },
      unwritten: () => this.#mailbox.drain((item) => item.t === 'write').map(({ draft }) => draft),
    })
    this.#leaveHands = {
      ...{ device: options.device, effects: this.#effects, departure: this.#departure },
      isBusy: () => this.#busy,
      append: (drafts) => this.#append(drafts),
      storing: (files) => this.#storing(files),
      writeEnded: async () => {
        for (const { ended } of this.#mailbox.drain((item) => item.t === 'ended')) await this.#ended(ended)
      },
      wakeIn: (ms) => this.#rest.wakeIn(ms),
    }
    this.#rest = new Rest(options.park_after_ms, () => this.#mailbox.post({ t: 'due' }), options.isCrowded)
    this.#opening = {
      ...{ options, lease, book: this.#book, snapshots },
      write: (draft) => this.#mailbox.post({ t: 'write', draft }),
      log: (message) => options.log(sid, message),
    }
  }

  get epoch(): number {
    return this.#opening.lease.epoch
  }

  /** The lease is given back; only putting away is left to do. */
  get isReleased(): boolean {
    return this.#departure.ending !== undefined
  }

  /** A command arrived in the inbox. */
  command(command: Command): void {
    this.#tell(this.#inbox.hear(command))
  }

  /** Lets the session go: to another runner, or because this one ends. Asked again, it hurries. `run` resolves when it is done. */
  leave(leave: Leave): void {
    this.#leave = begun(this.#leave, leave)
    this.#mailbox.post({ t: 'leave' })
  }

  /** Since when it has nothing to do, on the monotonic clock; undefined: it works. */
  get rests_since(): number | undefined {
    return this.isReleased ? undefined : this.#rest.since
  }

  /** Since when it computes here, with nothing else going on; undefined: it does something else. Counts from the claim. */
  get computes_since(): number | undefined {
    return this.#busy && this.#effects.size === 0 && !this.#leave ? this.#claimed_at : undefined
  }

  /** Parks if it rests: others wait for its place. */
  makeRoom(): void {
    this.#rest.hurry()
  }

  /** The lease has ended: stop at once, write nothing. */
  lose(): void {
    this.#gone.abort(new BatonError('lease-lost'))
    this.#effects.end()
    this.#mailbox.post({ t: 'lost' })
  }

  /** Holds the session until it parks, moves, ends or is lost. Never rejects. */
  async run(): Promise<Ending> {
    try {
      return await this.#run()
    } catch (error) {
      return await this.#departure.broken(error, this.#live)
    } finally {
      this.#rest.pause()
      clearTimeout(this.#saveTimer)
      await this.#putAway()
    }
  }

  /** Ends what runs here; guest and files stay as they are at the relay and in the work tree. */
  async #putAway(): Promise<void> {
    this.#effects.cut()
    await this.#live?.harness.close().catch(() => undefined)
    await this.#live?.workspace
      .then(async (workspace) => {
        await workspace.stay?.end()
        await workspace.close()
      })
      .catch(() => undefined)
  }

  async #run(): Promise<Ending> {
    const { lease } = this.#opening
    const inbox = this.#readInbox()
    // It is awaited below; when the restore fails first, nobody may be left to hear of it.
    inbox.catch(() => undefined)
    if (lease.snapshot > 0) {
      this.#live = await restore(this.#opening, lease.snapshot)
      const { waited_ms, moving } = lease
      if (moving) happened('arrival', { blackout_ms: waited_ms + performance.now() - this.#claimed_at })
    }
    // What came with the claim is all that there was then: no need to wait for the same again.
    if (!lease.commands) await inbox
    const later = this.#mailbox.drain((item) => item.t === 'commands').flatMap(({ commands }) => commands)
    for (const command of [...(lease.commands ?? []), ...later]) this.#inbox.add(command)
    inbox.catch((error: unknown) => this.#mailbox.post({ t: 'broke', error }))
    while (this.#departure.ending === undefined) {
      try {
        await this.#advance()
      } catch (error) {
        if (!(error instanceof Diverged)) throw error
        await this.#fallBack(error)
        continue
      }
      if (this.#departure.ending === undefined) await this.#handle(await this.#mailbox.take())
    }
    return this.#departure.ending
  }

  /** Asked after the claim, so that nothing is missed which was told of before there was anybody here to hear it. */
  async #readInbox(): Promise<void> {
    const { link } = this.#options
    const { commands } = await steady(link, this.#gone.signal, () => link.ask('inbox', { sid: this.sid }))
    this.#tell(this.#inbox.whole(commands))
  }

  #tell(commands: Command[]): void {
    if (commands.length > 0) this.#mailbox.post({ t: 'commands', commands })
  }

  /** Snapshot and tail disagree: the one before, down to the baseline, and all that follows is replayed (F29). */
  async #fallBack(error: Diverged): Promise<void> {
    const live = this.#live
    if (!live || live.previous === 0) throw error
    this.#opening.log(`replay diverged, going back to the snapshot at ${live.previous}: ${error.message}`)
    await this.#putAway()
    await this.#append([notice('The saved state did not fit the journal; continued from an earlier one.')])
    // Stored since the claim, perhaps: the files are not older than they were.
    const checkpoint = live.state.checkpoint?.seq ?? this.#opening.lease.checkpoint
    const lease = { ...this.#opening.lease, checkpoint }
    this.#live = await restore({ ...this.#opening, lease }, live.previous)
  }

  async #handle(happening: Happening): Promise<void> {
    if (happening.t !== 'due') this.#rest.disturb()
    switch (happening.t) {
      case 'paused':
        this.#busy = false
        clearTimeout(this.#saveTimer)
        if (this.#live) this.#live.pause = happening.pause
        return
      case 'broke':
        throw happening.error
      case 'ended':
        await this.#ended(happening.ended)
        return
      case 'write':
        await this.#append([happening.draft])
        return
      case 'commands':
        happening.commands.forEach((command) => this.#inbox.add(command))
        return
      case 'stored':
        if (this.#leave) this.#leave.stored = happening.stored
        return
      case 'lost':
        this.#departure.lose()
        return
      case 'leave':
      case 'due':
    }
  }

  /** Does what can be done now; returns when only a happening can change something. */
  async #advance(): Promise<void> {
    this.#rest.pause()
    if (!this.#live) await this.#awaitStart()
    const live = this.#live
    if (!live || this.#departure.ending) return
    if (!this.#busy) await this.#takeAsks(live)
    await this.#takeCommands(live)
    if (this.#leave) {
      // What has its intent counts as begun.
      if (!this.#busy && this.#leave.until > performance.now() && (await this.#startEffects(live))) return
      return advanceLeave(live, this.#leave, this.#leaveHands)
    }
    if (this.#busy || (await this.#startEffects(live))) return
    await this.#runGuest(live)
  }

  async #awaitStart(): Promise<void> {
    const command = this.#inbox.waiting().find((waiting) => waiting.kind === 'start')
    if (command) {
      this.#inbox.take(command)
      this.#live = await start(this.#opening, { ...command, kind: 'start' })
      if (!this.#live) await this.#departure.release('ended', 'failed')
    } else if (this.#leave || this.#rest.isOver()) await this.#departure.release('parked', 'idle')
  }

  /** Writes intents and events of what the guest asked for, with a snapshot where one is due. */
  async #takeAsks(live: Live): Promise<void> {
    if (live.pause.asked.length === 0) return
    if (this.#leave) {
      // Nothing starts any more: an intent would make a `never` effect count as begun.
      carryAsks(live)
      return
    }
    const { drafts, fresh } = sortAsks(live, Date.now(), await objectionsTo(live))
    if (drafts.length === 0) return
    const waits = fresh.every((request) => request.kind === 'prompt' || request.kind === 'approve')
    const due = fresh.some((request) => request.kind === 'llm') || (waits && this.#effects.size === 0)
    const canSave = live.pause.state !== 'finished' && live.pause.state !== 'failed'
    await this.#append(due && canSave ? [...drafts, await this.#book.snapshotDraft(live)] : drafts)
    for (const request of fresh) live.toStart.set(request.id, 'first')
  }

  async #takeCommands(live: Live): Promise<void> {
    const context = {
      ...{ sid: this.sid, key: this.#book.journal.key, state: live.state },
      ...{ account: this.#options.account.id, isRevoked: this.#options.isRevoked, policy: policyOf(live) },
    }
    for (const command of this.#inbox.waiting()) {
      // Whoever comes next takes the rest; Stop also ends what this one waits for.
      if (this.#leave && command.kind !== 'stop') continue
      const consumption = consume(command, { ...context, now: Date.now() })
      if (consumption === 'later') continue
      this.#inbox.take(command)
      const { drafts } = consumption
      const isStop = consumption.next === 'stop'
      const all = isStop ? [...drafts, ...stopUnbegun(live, Date.now())] : drafts
      if (!(await this.#consumed(command, all))) continue
      if (isStop) this.#effects.stop()
      // Asked to come to where it is: it has arrived.
      if (consumption.next === 'leave' && this.#isHere(consumption.place)) await this.#append([arrived()])
      else if (consumption.next === 'leave') {
        const { place, label } = consumption
        this.leave({ why: 'move', place, label, within_ms: this.#options.finish_within_ms })
      }
    }
  }

  /** Writes what a command became. False: it became nothing, or somebody else had consumed it. */
  async #consumed(command: Command, drafts: Draft[]): Promise<boolean> {
    try {
      await this.#append(drafts)
      return true
    } catch (error) {
      if (!(error instanceof BatonError)) throw error
      // What it refers to is not there: no other runner could do more with it (H6).
      if (error.code === 'no-blob') await this.#append([unreadable(command, error, Date.now())])
      else if (error.code !== 'already-consumed') throw error
      return false
    }
  }

  #isHere({ prefer, pool }: Placement): boolean {
    if (prefer !== undefined) return prefer === this.#options.device
    return pool !== undefined && this.#options.tags.includes(pool)
  }

  /** Starts what may start. True when the guest has to be asked for something first. */
  async #startEffects(live: Live): Promise<boolean> {
    const { journal } = this.#book
    for (const [effect, attempt] of live.toStart) {
      const started = await startEffect(live, effect, attempt, {
        ...{ options: this.#options, effects: this.#effects, append: (drafts) => this.#append(drafts) },
        lease: journal,
      })
      if (started === 'started') live.toStart.delete(effect)
      else if (started === 'needs-resend' && listens(live.pause, effect) && !nextOf(live)) {
        // What the journal holds comes first; then the guest hands its conversation over again.
        this.#go(live, () => live.harness.deliver({ type: 'resend', effect }))
        return true
      }
    }
    return false
  }

  /** Hands the guest its next message, lets it go on, or lets it rest. */
  async #runGuest(live: Live): Promise<void> {
    const { pause } = live
    if (pause.state === 'finished' || pause.state === 'failed') return this.#departure.end(live, pause)
    if (pause.state === 'interrupted') {
      if (live.dirty) await this.#append([await this.#book.snapshotDraft(live)])
      this.#go(live, () => live.harness.run())
      return
    }
    const next = takeNext(live)
    if (next) {
      const message = await this.#book.messageOf(next)
      this.#go(live, () => live.harness.deliver(message))
      return
    }
    // An effect that has ended is open until its outcome stands in the journal.
    if (this.#effects.size > 0 || live.toStart.size > 0 || !waitsForPerson(live.state)) return
    const jobs = live.here?.stay?.jobs
    if (this.#rest.isOver((jobs?.running ?? 0) > 0)) return this.#departure.park(live, this.#inbox.newest)
    if (!this.#rest.isHeld || this.#toldOfJobs) return
    this.#toldOfJobs = true
    await this.#append([notice(HELD)])
  }

  #go(live: Live, work: () => Promise<Pause>): void {
    this.#busy = true
    live.dirty = true
    this.#saveTimer = setTimeout(() => live.harness.interrupt(), SAVE_EVERY_MS)
    work().then(
      (pause) => this.#mailbox.post({ t: 'paused', pause }),
      (error: unknown) => this.#mailbox.post({ t: 'broke', error }),
    )
  }

  async #ended(ended: Ended): Promise<void> {
    const live = this.#live
    const open = live?.state.open.get(ended.effect)
    if (!live || !open) return
    const isStopped = open.seq < live.state.stopped
    const retry = retryOf(ended.performed, open.intent, Date.now(), this.#options.retry_base_ms)
    if (retry && !isStopped) {
      const { attempt } = open.intent
      const { retry: _, ...intent } = open.intent
      const next = { ...intent, attempt: attempt + 1, now: Date.now(), retry }
      await this.#append([...ended.before, { kind: 'intent', body: next }])
      live.toStart.set(ended.effect, 'first')
      return
    }
    const { journal, blobs } = this.#book
    const outcome = await outcomeDraft(
      ended,
      { blobs, sid: this.sid, key: journal.key },
      Date.now(),
      open.intent.repeated ?? 0,
    )
    await this.#append([...ended.before, outcome])
  }

  #storing(files: Promise<StoredFiles>): void {
    files.then(
      (stored) => this.#mailbox.post({ t: 'stored', stored }),
      (error: unknown) => this.#mailbox.post({ t: 'broke', error }),
    )
  }

  async #append(drafts: Draft[]): Promise<void> {
    if (this.#live) await this.#book.append(this.#live, drafts)
    else if (drafts.length > 0) await this.#book.journal.append(drafts)
  }
}
