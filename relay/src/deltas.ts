/**
 * Partial answers of the model: each is passed on to watchers; one that comes too late or without a lease is dropped. The newest is kept in Redis, but not each,
 * because each would go through its log to the disk.
 */
import type { PeerFrame } from '@baton/shared/protocol.ts'
import type { Context } from './context.ts'
import { sessionChannel, sessionKeys } from './keys.ts'
import { run } from './scripts.ts'
import type { Identity } from './sign-in.ts'

type DeltaFrame = Extract<PeerFrame, { t: 'delta' }>

/** Deltas come many a second; for late watchers the newest is kept so often. */
const KEEP_EVERY_MS = 1_000
const KEEP_MS = 600_000

export class Deltas {
  readonly #context: Context
  readonly #identity: Identity
  readonly #kept = new Map<string, { timer: ReturnType<typeof setTimeout>; newest?: DeltaFrame }>()

  constructor(context: Context, identity: Identity) {
    this.#context = context
    this.#identity = identity
  }

  take(frame: DeltaFrame): void {
    const kept = this.#kept.get(frame.sid)
    if (kept) kept.newest = frame
    else this.#keep(frame.sid)
    this.#context.background(this.#pass(frame, !kept))
  }

  /** An outcome has landed: what it was a part of is not to be kept any more. */
  drop(sid: string): void {
    clearTimeout(this.#kept.get(sid)?.timer)
    this.#kept.delete(sid)
  }

  close(): void {
    for (const { timer } of this.#kept.values()) clearTimeout(timer)
    this.#kept.clear()
  }

  #keep(sid: string): void {
    const timer = setTimeout(() => {
      const newest = this.#kept.get(sid)?.newest
      this.#kept.delete(sid)
      if (newest) this.take(newest)
    }, KEEP_EVERY_MS)
    this.#kept.set(sid, { timer })
  }

  async #pass({ sid, epoch, effect, body }: DeltaFrame, keep: boolean): Promise<void> {
    const { account, device } = this.#identity
    const { state, partial } = sessionKeys(sid)
    await run(
      this.#context.redis,
      'delta',
      { state, partial },
      {
        account,
        device,
        epoch,
        effect,
        body,
        keep_ms: keep ? KEEP_MS : 0,
        session_channel: sessionChannel(sid),
      },
    )
  }
}
