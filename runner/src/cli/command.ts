/** What a command is, as the table has it; and the words and flags that several of them share. */
import type { Effort } from '@baton/shared/guest.ts'

export type Run = (args: string[]) => Promise<number>

/** What may stand at a place of the command line. A list: these words. */
export type Values =
  | 'session'
  | 'runner'
  | 'place'
  | 'pool'
  | 'model'
  | 'document'
  | 'command'
  | 'file'
  | 'folder'
  | readonly string[]

export interface Flag {
  type: 'string' | 'boolean'
  what: string
  short?: string
  multiple?: boolean
  /** The name of its value in help. */
  value?: string
  values?: Values
  /** Not shown in help or completion. */
  hidden?: boolean
}

export interface Argument {
  name: string
  values?: Values
  optional?: boolean
  /** All remaining words. */
  rest?: boolean
}

export interface Command {
  group: 'Start' | 'Sessions' | 'Steer' | 'Move' | 'Machine' | 'Guest'
  what: string
  args?: readonly Argument[]
  flags: Readonly<Record<string, Flag>>
  /** More lines for `baton help COMMAND`: what `--json` gives, examples. */
  more?: string
  /** It works on when nobody reads its output any more, or sees to that itself. */
  keepsOn?: true
  load: () => Promise<Run>
}

export const MODES = ['plan', 'ask', 'edit', 'full'] as const
export const EFFORTS = ['low', 'medium', 'high', 'xhigh', 'max'] as const satisfies readonly Effort[]
/** The modes that a session may go on in once its plan is approved, the default first. */
export const AFTER_PLAN = ['ask', 'edit'] as const
export const PLACES = ['laptop', 'cloud', 'pinned'] as const
export const SHELLS = ['bash', 'zsh', 'fish'] as const

export const DATA = {
  data: {
    type: 'string',
    value: 'DIR',
    values: 'folder',
    what: 'data folder; default $BATON_DATA, else ~/.baton',
  },
} as const
export const OUT = {
  ...DATA,
  json: { type: 'boolean', what: 'print JSON for programs' },
} as const

export const METRICS = {
  type: 'string',
  value: '[HOST:]PORT',
  what: 'numbers for Prometheus at /metrics; without HOST for this machine only',
} as const

export const EFFECT = {
  type: 'string',
  multiple: true,
  value: 'N',
  what: 'the call with this number, as baton approve lists them',
} as const

export const SESSION = [{ name: 'SESSION', values: 'session', optional: true }] as const
