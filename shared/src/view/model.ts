/** What a transcript is while entries are read, and after. */
import type { Access, DocumentState, Json, Mode } from '../guest.ts'
import type { Intent, Rule } from '../journal.ts'
import type { Item } from './items.ts'
import type { Used } from './usage.ts'

/** An effect with an intent and no outcome. */
export interface OpenEffect {
  kind: Intent['kind']
  attempt: number
  at: number
  /** Index of its item. */
  item?: number
  retry?: Retrying
}

/** An attempt that follows a failed one, and starts at `from`: milliseconds on the relay's clock. */
export interface Retrying {
  attempt: number
  code: string
  message: string
  from: number
}

export interface Moving {
  /** Where to, in words; empty when a runner leaves without a destination. */
  label: string
  at: number
  /** A model call runs and is finished first. */
  waits: boolean
}

export interface Transcript {
  /** Seq of the last entry reduced; 0: none. */
  seq: number
  items: readonly Item[]
  open: ReadonlyMap<number, OpenEffect>
  /** Live text of running model calls, by effect. */
  live: ReadonlyMap<number, string>
  /** The newest that running model calls think, by effect; while they think and say nothing. */
  thoughts: ReadonlyMap<number, string>
  /** Highest effect number seen. */
  effects: number
  /** Item of each granted approval whose call has not begun, by the approval's effect. */
  granted: ReadonlyMap<number, number>
  /** A move that was asked for and has not happened. */
  moving?: Moving
  /** The newest lease change, and who held the session last. */
  lease?: { change: 'claimed' | 'released' | 'expired'; holder: string; at: number }
  /** Bytes of the newest snapshot on the wire. */
  snapshot_bytes?: number
  workspace?: string
  mode?: Mode
  /** How many changes of the mode counted so far; the next one is signed with this number. */
  revision: number
  /** What the agent was told to be like, e.g. `model`, `effort`. */
  settings: { readonly [key: string]: Json }
  /** What each tool touches, as the runner told the agent at the start. */
  access: ReadonlyMap<string, Access>
  /** The newest version of each document. */
  documents: ReadonlyMap<string, DocumentState>
  /** Why the agent refused a person's change of a document, by the command's id; empty when it took the change. */
  answers: ReadonlyMap<string, string>
  /** Permission rules of the config at the start, then those that people gave with decisions. */
  rules: readonly Rule[]
  usage?: Used
  /** Commands of background jobs that were started and, as far as was told, go on, by the job's id. */
  jobs?: ReadonlyMap<string, string>
  /** Steering prompts that the agent has not been told yet. */
  steering?: number
}

/** A transcript under change: `reduce` copies once a batch, not once an entry. */
export type Draft = Omit<Transcript, 'items' | 'open' | 'live' | 'thoughts' | 'granted'> & {
  items: Item[]
  open: Map<number, OpenEffect>
  live: Map<number, string>
  thoughts: Map<number, string>
  granted: Map<number, number>
}
