/**
 * Sessions whose home is this runner and which are away: let go because the machine slept, ended or was cut off, and gone on
 * elsewhere since. People are offered to bring them home; a session that somebody moved on purpose has another home.
 */
import type { SessionInfo } from '@baton/shared/protocol.ts'

/** What is announced of them has to fit. */
const SHOWN = 100

export class Away {
  readonly #device: string
  readonly #tags: readonly string[]
  /** The last epoch under which nobody else can have held a session that this runner let go. */
  readonly #left = new Map<string, number>()
  readonly #away = new Set<string>()

  /** `device`: this runner; `tags`: of the pools that it serves. */
  constructor(device: string, tags: readonly string[]) {
    this.#device = device
    this.#tags = tags
  }

  /** Newest last. */
  get sids(): string[] {
    return [...this.#away].slice(-SHOWN)
  }

  /** This runner held the session, and had to let it go. */
  left(sid: string, epoch: number, how: 'released' | 'lost'): void {
    // A lease that ran out is ended by an epoch of its own.
    this.#left.set(sid, how === 'lost' ? epoch + 1 : epoch)
  }

  /** Call with whatever the relay tells of a session. True: what is away has changed. */
  see(session: SessionInfo): boolean {
    const { sid } = session
    const was = this.#away.has(sid)
    const isAway = this.#isAway(session)
    if (isAway) this.#away.add(sid)
    else this.#away.delete(sid)
    if (session.holder === this.#device) this.#left.delete(sid)
    return was !== isAway
  }

  #isAway({ sid, status, holder, epoch, place }: SessionInfo): boolean {
    const { prefer, pool } = place
    const isHome =
      prefer === undefined ? pool !== undefined && this.#tags.includes(pool) : prefer === this.#device
    if (!isHome || status === 'done' || status === 'failed' || status === 'moving') return false
    const left = this.#left.get(sid)
    // A member of a pool is home only to what it held itself.
    if (prefer === undefined && left === undefined) return false
    return holder === undefined ? left !== undefined && epoch > left : holder !== this.#device
  }
}
