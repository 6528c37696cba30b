/** What a transcript is made of. One item is one thing that a person sees. */
import type { EffectError, ImageRef, Json } from '../guest.ts'
import type { Allowance } from '../journal.ts'

/** A result too long for its entry; the whole is fetched on demand. */
export interface BlobRef {
  hash: string
  bytes: number
  head: string
  tail: string
}

interface Base {
  /** Stable: the entry that began it. */
  id: string
  /** Milliseconds on the relay's clock. */
  at: number
}

export interface PromptItem extends Base {
  kind: 'prompt'
  text: string
  command: string
  device: string
  images?: readonly ImageRef[]
  /** It steers, and the agent has not come to its next step yet: it does not know of it. */
  waits?: true
}

/** What the model said. `repeated`: requests that were cut off and asked again before this one. */
export interface TextItem extends Base {
  kind: 'text'
  text: string
  repeated: number
  blob?: BlobRef
}

/** What the model said while it thought, between its calls or before its answer: never the answer itself. */
export interface ThoughtItem extends Base {
  kind: 'thought'
  text: string
}

export interface ToolResultView {
  text: string
  is_error: boolean
  detail?: { [key: string]: Json }
  images?: readonly ImageRef[]
}

/**
 * One call, from the question for approval to its result.
 *
 *   approval ─▸ approved ─▸ running ─▸ ok | error | interrupted | stopped
 *        └────▸ denied | stopped
 */
export interface ToolItem extends Base {
  kind: 'tool'
  name: string
  input: { [key: string]: Json }
  state: 'approval' | 'approved' | 'denied' | 'running' | 'ok' | 'error' | 'interrupted' | 'stopped'
  attempt: number
  effect?: number
  approval?: {
    effect: number
    digest: string
    /** `device`: who decided; empty when a rule or the mode did, and nobody was asked. */
    decided?: { approved: boolean; device: string; note?: string; at: number }
  }
  started_at?: number
  ended_at?: number
  duration_ms?: number
  result?: ToolResultView
  blob?: BlobRef
  error?: EffectError
  /** The rules, or else the mode, that allowed it; absent: a person was asked, or it only looks. */
  allowed?: Allowance
}

/** `back`: the same runner, after its lease had expired. */
export interface Handoff extends Base {
  kind: 'handoff'
  how: 'moved' | 'took-over' | 'back'
  from: string
  to: string
  gap_ms: number
  bytes?: number
}

export interface EventItem extends Base {
  kind: 'event'
  tone: 'quiet' | 'error'
  text: string
  /** Of an error: its code, and what to do about it. */
  code?: string
  todo?: string
  /** The runner that tells something of itself. */
  device?: string
  /** A person asked the agent for this; what fails after it is tried again as it. */
  asked?: 'compact'
  /** It divides what is above from what is below, as a handoff does. */
  divides?: boolean
}

export interface StopItem extends Base {
  kind: 'stop'
  device: string
}

export interface UnreadableItem extends Base {
  kind: 'unreadable'
}

export type Item =
  PromptItem | TextItem | ThoughtItem | ToolItem | Handoff | EventItem | StopItem | UnreadableItem

/** A call that waits for a decision. */
export interface Approval {
  effect: number
  digest: string
  name: string
  input: { [key: string]: Json }
  at: number
}
