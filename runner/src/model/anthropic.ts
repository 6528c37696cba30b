/** The Messages API through the official SDK: streaming, one attempt for each call. */
import Anthropic from '@anthropic-ai/sdk'
import { BatonError } from '@baton/shared/errors.ts'
import type { LlmResult } from '@baton/shared/guest.ts'
import { Answer } from './answer.ts'
import { failureOf } from './failures.ts'
import { ModelFailure, type Model, type ModelCallOptions } from './model.ts'
import { MODELS } from './prices.ts'
import { paramsOf } from './request.ts'

/** A live stream is never silent for long: the service sends pings. */
const SILENCE_MS = 120_000

export interface AnthropicSettings {
  apiKey: string
  baseUrl?: string
  /** Used when a request names none. */
  model?: string
  /** Milliseconds without an event after which a stream is given up. */
  silence_ms?: number
}

export function anthropicModel(settings: AnthropicSettings): Model {
  const silence_ms = settings.silence_ms ?? SILENCE_MS
  const [usual] = MODELS
  const fallback = settings.model ?? usual
  const client = new Anthropic({
    apiKey: settings.apiKey,
    baseURL: settings.baseUrl ?? 'https://api.anthropic.com',
    // Attempts are counted in the journal (F27).
    maxRetries: 0,
    timeout: silence_ms,
    // Neither keys nor conversations belong into a log or a trace.
    logLevel: 'off',
    openTelemetry: false,
  })
  return {
    name: 'anthropic',
    models: [fallback, ...MODELS.filter((model) => model !== fallback)],
    async call(request, options) {
      if (options.signal.aborted) throw new BatonError('stopped')
      try {
        return await answer(client, paramsOf(request, fallback), options, silence_ms)
      } catch (error) {
        throw failureOf(error, options.signal)
      }
    },
  }
}

async function answer(
  client: Anthropic,
  params: Anthropic.MessageCreateParamsStreaming,
  { signal, onText }: ModelCallOptions,
  silence_ms: number,
): Promise<LlmResult> {
  const stream = await client.messages.create(params, { signal })
  const whole = new Answer()
  let isSilent = false
  let thought = ''
  // Before the stream begins, the client's own time-out holds (F6).
  const silence = setTimeout(() => {
    isSilent = true
    stream.controller.abort()
  }, silence_ms)
  try {
    for await (const event of stream) {
      silence.refresh()
      whole.add(event)
      const isText = event.type === 'content_block_delta' && event.delta.type === 'text_delta'
      if (!isText && whole.thought === thought) continue
      thought = whole.thought
      onText(whole.text, thought)
    }
  } finally {
    clearTimeout(silence)
  }
  if (isSilent) throw new ModelFailure('model-unreachable', `The stream was silent for ${silence_ms} ms.`)
  // The iteration also ends, without an error, when it is aborted.
  signal.throwIfAborted()
  return whole.result()
}
