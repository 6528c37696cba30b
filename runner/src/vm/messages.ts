/** What a harness and its worker say to each other. One question at a time; each gets one answer. */
import type { ErrorCode } from '@baton/shared/errors.ts'
import type { GuestMessage, Pause } from '@baton/shared/guest.ts'
import type { Snapshot, SnapshotHeader } from '../harness.ts'
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

/** Ends a slice without anybody asking: after so many milliseconds or loop iterations. */
export interface Limits {
  ms?: number
  fuel?: number
}

export type Question =
  | { op: 'baseline'; module: WebAssembly.Module; bundle: Uint8Array }
  | { op: 'open'; parts: GuestParts }
  | { op: 'restore'; parts: GuestParts; chain: Uint8Array[] }
  | { op: 'deliver'; message: GuestMessage; limits: Limits }
  | { op: 'run'; limits: Limits }
  | { op: 'snapshot'; full: boolean }
  | { op: 'drop' }

export interface Answers {
  baseline: Baseline
  open: SnapshotHeader
  restore: Pause
  deliver: Pause
  run: Pause
  snapshot: Snapshot
  drop: null
}

export type Answer =
  { ok: true; value: Answers[keyof Answers] } | { ok: false; code: ErrorCode | undefined; detail: string }
