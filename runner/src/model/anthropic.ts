/** The Messages API through the official SDK: streaming, one attempt for each call. */
import Anthropic from '@anthropic-ai/sdk'
import { BatonError } from '@baton/shared/errors.ts'
import type { LlmResult } from '@baton/shared/guest.ts'
import { duration } from '@baton/shared/view/units.ts'
import { Answer } from './answer.ts'
import { failureOf } from './failures.ts'
import { ModelFailure, type Model, type ModelCallOptions } from './model.ts'
import { insteadOf } from './names.ts'
import { MODELS } from './prices.ts'
import { paramsOf } from './request.ts'

/** Names are asked for only to help a person. */
const NAMES_MS = 5_000

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
      const params = paramsOf(request, fallback)
      try {
        return await answer(client, params, options, silence_ms)
      } catch (cause) {
        const error = failureOf(cause, options.signal, params.model)
        throw error.code === 'model-unknown' ? await withNames(client, error, params.model, options) : error
      }
    },
  }
}

/** The same error, with the name that was most likely meant, or those that the service lists. */
async function withNames(
  client: Anthropic,
  error: BatonError,
  model: string,
  { signal }: ModelCallOptions,
): Promise<BatonError> {
  try {
    const { data } = await client.models.list({ limit: 100 }, { signal, timeout: NAMES_MS })
    const names = data.map(({ id }) => id)
    return new ModelFailure('model-unknown', `${error.detail} ${insteadOf(model, names)}`.trim())
  } catch {
    return signal.aborted ? new BatonError('stopped') : error
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
  if (isSilent)
    throw new ModelFailure('model-unreachable', `The stream was silent for ${duration(silence_ms)}.`)
  // The iteration also ends, without an error, when it is aborted.
  signal.throwIfAborted()
  return whole.result()
}
