/** What the session loop needs of a model service. */
import type { LlmResult, Message, ToolSpec } from '@baton/shared/guest.ts'

export interface ModelRequest {
  system: string
  /** The whole conversation, oldest first. */
  messages: Message[]
  tools: ToolSpec[]
  /** Absent: the default of the environment. */
  model?: string
  max_tokens?: number
}

export interface ModelCallOptions {
  signal: AbortSignal
  /** The whole text of the answer so far, each time it grows. */
  onText: (whole: string) => void
}

export interface Model {
  name: 'anthropic' | 'rehearsal'
  /**
   * One answer, complete. Throws BatonError `model-error` with the service's words and status, or when the stream ended
   * before the answer did; `stopped` when the signal ended it.
   */
  call(request: ModelRequest, options: ModelCallOptions): Promise<LlmResult>
}
