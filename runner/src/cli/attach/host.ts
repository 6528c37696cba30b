/** What keys act on: the state of one `attach`, and what its app can be told. */
import type { BatonError } from '@baton/shared/errors.ts'
import type { AccountView } from '../account.ts'
import type { Draft } from '../term/editor.ts'
import type { AttachState } from './state.ts'

export type Ending = { code: number; error?: BatonError }

export interface Host {
  readonly state: AttachState
  readonly view: AccountView
  readonly columns: number
  readonly rows: number
  /** A passing word on the last line. */
  say: (words: string) => void
  drafted: (draft: Draft) => void
  switchTo: (sid: string) => void
  end: (ending: Ending) => void
  /** The screen is painted anew. */
  forget: () => void
  redraw: () => void
}
