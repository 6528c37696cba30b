/**
 * What the session loop needs of the thing that it drives. The guest VM is one implementation (vm/guest-harness.ts);
 * another could drive somebody else's agent and mirror its session files.
 */
import type { GuestMessage, Pause } from '@baton/shared/guest.ts'

/** What a snapshot is of. A mismatch on restore is refused, naming what is needed (F60). */
export interface SnapshotHeader {
  abi: number
  /** Hex SHA-256 of engine.wasm, of the agent bundle, and of guest memory right after loading the bundle. */
  engine: string
  bundle: string
  baseline: string
  state: 'quiescent' | 'blocked' | 'interrupted'
  /** The effect that a `blocked` guest waits for. */
  on?: number
  /** Hex SHA-256 of the snapshot file that this one's pages are relative to; absent: relative to the baseline. */
  parent?: string
}

export interface Snapshot {
  header: SnapshotHeader
  /** The whole file, header included, compressed. Named by its hex SHA-256. */
  bytes: Uint8Array
  hash: string
}

export interface SnapshotOptions {
  /** Relative to the baseline even when a parent is at hand. */
  full?: boolean
  /** Full, and as small as it can be made, however long that takes: for a session that rests. */
  lean?: boolean
}

export interface Harness {
  /** Fresh guest at its baseline, not started. */
  open(): Promise<SnapshotHeader>
  /**
   * Restores. `chain` runs from the oldest (relative to the baseline) to the newest. Throws VmError `snapshot-…` when
   * one is foreign, torn, or does not fit; the harness is then closed.
   */
  restore(chain: Uint8Array[]): Promise<Pause>
  /** Hands over one message and runs to the next pause. Throws when the state does not allow it. */
  deliver(message: GuestMessage): Promise<Pause>
  /** Goes on after `interrupted`. */
  run(): Promise<Pause>
  /** Asks a running guest to pause at its next loop check. Returns at once; the pending call resolves with the pause. */
  interrupt(): void
  /** Saves a paused guest. */
  snapshot(options?: SnapshotOptions): Promise<Snapshot>
  close(): Promise<void>
}
