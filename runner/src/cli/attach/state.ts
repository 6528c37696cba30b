/** What `attach` shows beside the session itself, and what its keys change. Plain data. */
import type { ConnectionState } from '@baton/shared/connection.ts'
import type { NamedRunner, NamedSession } from '../account.ts'
import type { Draft } from '../term/editor.ts'
import type { Line } from '../term/text.ts'
import type { LiveSession } from './live.ts'
import type { Top } from './scroll.ts'

/** Where keys go. */
export type Focus = 'composer' | 'approval' | 'transcript'

export interface Choice {
  label: string
  about?: string
  /** It is what holds now: the list opens on it. */
  isNow?: boolean
  pick: () => void
}

export type Overlay =
  | { as: 'choose'; title: string; choices: readonly Choice[]; selected: number }
  | { as: 'read'; title: string; lines: (width: number) => readonly Line[]; from: number }
  /** One line of text, e.g. why a call is denied. */
  | { as: 'ask'; question: string; draft: Draft; done: (text: string) => void }

export interface AttachState {
  live: LiveSession
  sessions: ReadonlyMap<string, NamedSession>
  runners: ReadonlyMap<string, NamedRunner>
  names: ReadonlyMap<string, string>
  connection: ConnectionState
  /** Since when there is no connection; for how long decides whether it is told. */
  lost_at: number | undefined
  focus: Focus
  draft: Draft
  /** A prompt that is sent while the agent works: for this turn, or for after it. */
  steers: boolean
  overlay: Overlay | undefined
  top: Top
  /** Ids of items that are open, and of the one that is selected. */
  opened: ReadonlySet<string>
  selected: string | undefined
  /** The approval that is shown, by its effect, how far it is scrolled, and whether its end was seen. */
  card: { effect: number; from: number; seen: boolean } | undefined
  /** A passing word on the last line. */
  said: string | undefined
}
