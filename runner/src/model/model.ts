/** What the session loop needs of a model service. */
import { BatonError, type ErrorCode } from '@baton/shared/errors.ts'
import type { Effort, LlmResult, Message, OwnTool } from '@baton/shared/guest.ts'

export interface ModelRequest {
  system: string
  /** The whole conversation, oldest first. Pictures carry their bytes: `source` is `{type: 'base64', media_type, data}`. */
  messages: Message[]
  tools: OwnTool[]
  /** Absent: the default of the environment. */
  model?: string
  /** Absent: as the model does by itself. */
  effort?: Effort
  max_tokens?: number
}

export interface ModelCallOptions {
  signal: AbortSignal
  /** The whole text of the answer so far, each time it grows; and the newest of what it thinks, while it thinks. */
  onText: (whole: string, thought?: string) => void
}

export interface Model {
  name: 'anthropic' | 'rehearsal'
  /** Models that a request may name, the default first. */
  models?: readonly string[]
  /**
   * One answer, complete. Asks the service once: whoever calls decides about another attempt, and counts it. Throws ModelFailure
   * with the service's words and status; BatonError `stopped` when the signal ended it.
   */
  call(request: ModelRequest, options: ModelCallOptions): Promise<LlmResult>
}

export type ModelFailureCode = Extract<
  ErrorCode,
  'model-busy' | 'model-unreachable' | 'model-key' | 'model-unknown' | 'context-full' | 'model-error'
>

/** A call of the model that gave no whole answer. */
export class ModelFailure extends BatonError {
  override name = 'ModelFailure'
  /** How long the service asked to wait before the next attempt, in milliseconds. */
  readonly retry_after_ms: number | undefined

  constructor(
    code: ModelFailureCode,
    detail = '',
    { retry_after_ms, ...options }: ErrorOptions & { retry_after_ms?: number | undefined } = {},
  ) {
    super(code, detail, options)
    this.retry_after_ms = retry_after_ms
  }
}

/** May the same request succeed a little later? */
export function isTransient(error: unknown): error is ModelFailure {
  return error instanceof ModelFailure && (error.code === 'model-busy' || error.code === 'model-unreachable')
}
