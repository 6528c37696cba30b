/** What a harness and the thread of its guest say to each other. Each question gets one answer with its number. */
import type { ErrorCode } from '@baton/shared/errors.ts'
import type { GuestMessage, Pause } from '@baton/shared/guest.ts'
import type { Snapshot, SnapshotHeader, SnapshotOptions } from '../harness.ts'
import type { Baseline } from './baseline.ts'

/** Everything that a guest is made of. Module and baseline memory are shared between threads, not copied. */
export interface GuestParts {
  module: WebAssembly.Module
  baseline: Baseline
  engine: string
  bundle: string
  memoryMax?: number
  /** One Int32; not zero: stop at the next loop check. */
  stop: SharedArrayBuffer
}

/** Ends a run without anybody asking: after so many milliseconds of its own running time, or loop iterations. */
export interface Limits {
  ms?: number
  fuel?: number
}

/** `guest` numbers the guests of one thread. Each has at most one `deliver` or `run` under way. */
export type Question =
  | { op: 'baseline'; module: WebAssembly.Module; bundle: Uint8Array }
  | { op: 'open'; guest: number; parts: GuestParts }
  | { op: 'restore'; guest: number; parts: GuestParts; chain: Uint8Array[] }
  | { op: 'deliver'; guest: number; message: GuestMessage; limits: Limits }
  | { op: 'run'; guest: number; limits: Limits }
  | { op: 'snapshot'; guest: number; options: SnapshotOptions }
  /** Ends the guest; what it runs is answered with `guest-state`. */
  | { op: 'drop'; guest: number }

export interface Answers {
  baseline: Baseline
  open: SnapshotHeader
  restore: Pause
  deliver: Pause
  run: Pause
  snapshot: Snapshot
  drop: null
}

export interface Asked {
  re: number
  question: Question
}

export type Answer =
  | { re: number; ok: true; value: Answers[keyof Answers] }
  | { re: number; ok: false; code: ErrorCode | undefined; detail: string }

/**
 * What a thread shares with the other side: Int32s that are counted up. `posted`: questions sent so far. `urgent`: how often
 * something came that must not wait for the end of a slice. `slices`: given by the thread so far.
 */
export const BELL = { posted: 0, urgent: 1, slices: 2, bytes: 12 } as const

export interface ThreadData {
  bell: SharedArrayBuffer
}
