/** How a session leaves this runner: saved and released, ended, or broken. */
import { BatonError, explain } from '@baton/shared/errors.ts'
import type { Pause } from '@baton/shared/guest.ts'
import type { Placement, Status } from '@baton/shared/protocol.ts'
import { unstartedOf, type Book } from './book.ts'
import { failure, fallen, notice, type Draft } from './journal.ts'
import type { Live } from './live.ts'
import type { Ending, Lease, SessionOptions } from './options.ts'
import { statusOf } from './state.ts'
import { steady } from './steady.ts'
import { storeFiles, type StoredFiles } from './stored-files.ts'

export interface Departing {
  options: SessionOptions
  lease: Lease
  book: Book
  /** Aborts when the lease is lost. */
  gone: AbortSignal
  /** Takes what was to be written and is not yet. */
  unwritten: () => Draft[]
  log: (message: string) => void
}

/** No wait helps against these: this runner is another one than the session needs. */
const FOR_GOOD: readonly string[] = ['snapshot-engine', 'snapshot-baseline']

/** A thread may die of a neighbour. One that dies every time dies of this guest. */
const FALLS_MAX = 3

export class Departure {
  readonly #departing: Departing
  #ending: Ending | undefined
  #seen = 0

  constructor(departing: Departing) {
    this.#departing = departing
  }

  /** Set once nothing more is to be done. */
  get ending(): Ending | undefined {
    return this.#ending
  }

  /** The lease is gone: there is nothing to give back. */
  lose(): void {
    this.#ending = 'lost'
  }

  /** `seen`: number of the newest command in the inbox; what it has no use for now shall not wake it. */
  async park(live: Live, seen: number): Promise<void> {
    const files = await storeFiles(live, this.#departing.options.device, false)
    this.#seen = seen
    // It rests: an agent that waits for nothing at all waits for a person too, and must not be woken again and again.
    const status = statusOf(live.state, false) === 'waiting' ? 'waiting' : 'idle'
    await this.letGo(live, files, 'parked', status)
  }

  /** Saves the guest, then gives the lease back: only after the relay has confirmed the snapshot (I8). */
  async letGo(live: Live, files: StoredFiles, ending: Ending, status: Status, to?: Placement): Promise<void> {
    const { pause } = live
    if (pause.state === 'finished' || pause.state === 'failed') return this.end(live, pause, files.drafts)
    const { book, unwritten } = this.#departing
    const drafts = [...unwritten(), ...files.drafts]
    const rests = ending === 'parked'
    const isNews = live.dirty || live.carried.length > 0 || unstartedOf(live).length > 0
    if (isNews || (rests && !live.isLean)) {
      drafts.push(await book.snapshotDraft(live, rests ? 'rests' : 'leaves'))
    }
    await book.append(live, drafts)
    await this.release(ending, status, files.stay ?? to)
  }

  /** The agent's program has come to its end. `files`: what to write about the workspace. */
  async end(
    live: Live,
    pause: Pause & { state: 'finished' | 'failed' },
    files: readonly Draft[] = [],
  ): Promise<void> {
    const hint = { status: 'done', notify: true } as const
    const done: Draft = { kind: 'event', body: { type: 'done', data: null }, hint }
    const draft = pause.state === 'failed' ? failure(pause.error.code, pause.error.message) : done
    const { book, unwritten } = this.#departing
    await book.append(live, [...unwritten(), ...files, draft])
    await this.release('ended', pause.state === 'failed' ? 'failed' : 'done')
  }

  async release(ending: Ending, status: Status, to?: Placement): Promise<void> {
    const { options, lease, gone } = this.#departing
    const { sid, epoch } = lease
    await steady(options.link, gone, async () => {
      try {
        const seen = this.#seen
        await options.link.ask('release', { sid, epoch, status, seen, ...(to ? { place: to } : {}) })
      } catch (error) {
        // An earlier try whose answer was lost has released it.
        if (!(error instanceof BatonError) || error.code !== 'lease-lost') throw error
      }
    })
    this.#ending = ending
  }

  /**
   * Something could not be done. A lost lease is no failure. What goes wrong before the guest runs here is this runner's
   * fault, say another engine or a full disk: the session goes back as it was, for others, and for this one after a while unless
   * it never can. A guest whose thread died goes on from its last
   * snapshot, unless that happens again and again. Everything else ends the session, and is told.
   */
  async broken(reason: unknown, live: Live | undefined): Promise<Ending> {
    const { options, lease, gone, log } = this.#departing
    if (gone.aborted || (reason instanceof BatonError && reason.code === 'lease-lost')) {
      log('lease lost; stopped')
      return 'lost'
    }
    // A stack is for faults of ours, never for what has a code.
    const fault = reason instanceof Error && !(reason instanceof BatonError) ? reason.stack : undefined
    log(`failed: ${fault ?? explain(reason)}`)
    const code = reason instanceof BatonError ? reason.code : 'internal'
    if (live && code === 'guest-trapped' && live.state.falls < FALLS_MAX) {
      const told = fallen('The thread of the agent died; it goes on from where it was saved last.')
      return this.#giveBack('fallen', told)
    }
    if (live || lease.snapshot === 0) return this.#giveBack('ended', failure(code, explain(reason)))
    const isForGood = FOR_GOOD.includes(code)
    const again = isForGood ? '' : ' It is tried again after a while.'
    const words = `This runner can not continue the session${isForGood ? '' : ' now'}. ${explain(reason)}${again}`
    return this.#giveBack(
      isForGood ? 'unfit' : 'later',
      options.isNews?.(lease.sid, words) === false ? undefined : notice(words),
    )
  }

  /** Tells why, and gives the lease back without saving anything. */
  async #giveBack(ending: Ending, why: Draft | undefined): Promise<Ending> {
    const { book, log } = this.#departing
    if (why) await book.journal.append([why]).catch((cause: unknown) => log(`not told: ${explain(cause)}`))
    await this.release(ending, ending === 'ended' ? 'failed' : 'running').catch(() => this.lose())
    return this.#ending ?? 'lost'
  }
}
