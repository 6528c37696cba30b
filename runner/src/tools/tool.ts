/** What a tool is to the runner: a spec for the model, and the hands that perform it. */
import type { EffectError, ImageRef, Json, ToolResult, ToolSpec } from '@baton/shared/guest.ts'
import type { Attempt } from './attempts.ts'
import type { Stay } from './stay.ts'

export interface ToolContext {
  /** The session's work tree, absolute. Every path in an input is relative to it. */
  root: string
  /** It is the person's own folder: a file may hold what they wrote a moment ago. */
  inPlace?: boolean
  /** Ends the call: a person pressed Stop, the lease is lost, the runner ends. */
  signal: AbortSignal
  /** Output as it arrives, for watchers. Not bounded as a whole; the result is. */
  onOutput?: (text: string) => void
  /**
   * What the session has read or written: real path → hex SHA-256 of the bytes then. `write` refuses to replace a file that
   * changed since. Lives in memory: a fresh map after a restart only forgets the warning.
   */
  readFiles: Map<string, string>
  /**
   * Why the rules stand against this call leading where another input would: a redirect to another address, a link to another file. In
   * words for the model; undefined when nothing does. Absent: no rules.
   */
  objectionTo?: (other: { [key: string]: Json }) => string | undefined
  /** What earlier attempts of this very call did to the files. Absent: nothing of them outlives an attempt. */
  attempt?: Attempt
  /** Jobs, sandbox and servers of this session here. Absent: none of them. */
  stay?: Stay
}

/** Where a call would be done. */
export type CallPlace = Pick<ToolContext, 'root' | 'stay'>

export interface Picture {
  media_type: ImageRef['media_type']
  bytes: Uint8Array
}

/** What a tool gives back; the session stores pictures as blobs. */
export interface ToolAnswer extends Omit<ToolResult, 'images'> {
  images?: Picture[]
}

export interface Tool {
  spec: ToolSpec
  /**
   * Of a tool that otherwise looks: does this call change something? Then mode `plan` forbids it. Elsewhere it goes unasked as the others
   * do: it may only end what was allowed before.
   */
  changes?: (input: Record<string, Json>) => boolean
  /**
   * Why a call can't be done, whatever is done before it: nobody need be asked for it. Looks, and changes nothing. `place` is absent while
   * the files are on their way. `execute` refuses the same.
   */
  objection?: (input: Record<string, Json>, place?: CallPlace) => Promise<EffectError | undefined>
  /**
   * Performs one call. Whatever the model can mend (a bad input, a missing file, a failing command) is a result with
   * `is_error`; only what it can't mend throws: BatonError `stopped` when the signal ended it, `disk-full`,
   * `workspace-missing`, `internal`.
   */
  execute(input: Record<string, Json>, context: ToolContext): Promise<ToolAnswer>
}
