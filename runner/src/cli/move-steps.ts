/** Reads from a session's journal how a move gets on, and where it ends. */
import { BatonError } from '@baton/shared/errors.ts'
import type { Read } from '@baton/shared/view/entry.ts'

export type Step =
  | { step: 'asked'; to: string; online: boolean }
  | { step: 'waits'; for: string[] }
  | { step: 'saved'; bytes: number }
  | { step: 'expired' }
  | { step: 'moved'; to: string }
  /** It was where it was to go: its runner is of the pool that was named. */
  | { step: 'stays'; to: string }

/** By which the move ends. */
export const ENDS: ReadonlySet<Step['step']> = new Set(['moved', 'stays'])

/** `to`: devices, by id. */
export class MoveReading {
  readonly #command: string
  #holder: string | undefined
  #isTaken = false
  #bytes: number | undefined

  /** `command`: id of the move. `holder`: who has the session as it is sent. */
  constructor(command: string, holder: string | undefined) {
    this.#command = command
    this.#holder = holder
  }

  /** What the next entry says. Throws BatonError `session-ended` when the session can no longer move. */
  read(entry: Read): Step | undefined {
    switch (entry.kind) {
      case 'snapshot':
        this.#bytes = entry.body.bytes
        return undefined
      case 'received':
        if (entry.body.id === this.#command) this.#isTaken = true
        return undefined
      case 'lease': {
        const { change, holder } = entry.lease
        const isFree = this.#holder === undefined
        this.#holder = change === 'claimed' ? holder : undefined
        if (change === 'expired') return { step: 'expired' }
        // Let go only after everything is stored.
        if (change === 'released') return { step: 'saved', bytes: this.#bytes ?? 0 }
        return isFree ? { step: 'moved', to: holder } : undefined
      }
      case 'event': {
        const { type, data, effect } = entry.body
        return effect === undefined ? this.#told(type, data) : undefined
      }
      default:
        return undefined
    }
  }

  /** What a runner told. */
  #told(type: string, data: unknown): Step | undefined {
    switch (type) {
      case 'moving': {
        const waits = waitsIn(data)
        return waits.length > 0 ? { step: 'waits', for: waits } : undefined
      }
      // Under the same lease, and not of a move before this one.
      case 'arrived':
        return this.#isTaken && this.#holder !== undefined ? { step: 'stays', to: this.#holder } : undefined
      case 'done':
        throw new BatonError('session-ended', '(its agent was done before it could be moved)')
      case 'failed':
        throw new BatonError('session-ended', '(it failed before it could be moved)')
      default:
        return undefined
    }
  }
}

function waitsIn(data: unknown): string[] {
  if (typeof data !== 'object' || data === null || !('waits' in data) || !Array.isArray(data.waits)) return []
  return data.waits.map((what) => (what === 'llm' ? 'the model’s answer' : String(what)))
}
