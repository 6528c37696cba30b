/** What went wrong with a request to the Messages API, and whether another attempt may help. */
import { APIConnectionError, APIError, APIUserAbortError } from '@anthropic-ai/sdk'
import { BatonError } from '@baton/shared/errors.ts'
import { ModelFailure, type ModelFailureCode } from './model.ts'

/** Whatever the SDK threw when `model` was asked, as a coded error. An aborted `signal` makes it `stopped`. */
export function failureOf(error: unknown, signal: AbortSignal, model: string): BatonError {
  if (error instanceof BatonError) return error
  if (signal.aborted || error instanceof APIUserAbortError) return new BatonError('stopped')
  if (error instanceof APIConnectionError) {
    const cause = error.cause instanceof Error ? ` (${error.cause.message})` : ''
    return new ModelFailure('model-unreachable', `The service can not be reached: ${error.message}${cause}`)
  }
  if (error instanceof APIError) {
    const words = error.apiMessage ?? (error.status ? 'no further words' : error.message)
    const kind = error.status ? `Status ${error.status}` : (error.type ?? 'Error')
    const retry_after_ms = retryAfter(error.headers)
    const code = codeOf(error, words, model)
    if (code === 'model-unknown') return new ModelFailure(code, `(${JSON.stringify(model)})`)
    const hint = error.status === 404 ? ' (is ANTHROPIC_BASE_URL right?)' : ''
    return new ModelFailure(code, `${kind}: ${words}${hint}`, { retry_after_ms })
  }
  const words = error instanceof Error ? error.message : String(error)
  return new ModelFailure('model-unreachable', `The answer did not arrive whole: ${words}`)
}

/** The service has no code of its own for this; its words are all there is to go by. */
const TOO_LONG =
  /prompt is too long|exceeds? (the )?(context|maximum)|context (limit|window)|too many tokens/i

function codeOf({ status, type }: APIError, words: string, model: string): ModelFailureCode {
  // In the middle of a stream there is only the type.
  if (status === 429 || type === 'rate_limit_error') return 'model-busy'
  if (status === 529 || type === 'overloaded_error') return 'model-busy'
  if (status === 401 || status === 403) return 'model-key'
  // Not the model but the address is wrong when the words are about neither.
  const isName = words.includes(model) || /\bmodel\b/i.test(words)
  if (status === 404 && type === 'not_found_error' && isName) return 'model-unknown'
  if (status === 413 || (status === 400 && TOO_LONG.test(words))) return 'context-full'
  if (status === 408 || (status ?? 0) >= 500) return 'model-unreachable'
  return status === undefined && type !== 'invalid_request_error' ? 'model-unreachable' : 'model-error'
}

/** Milliseconds; the header gives seconds or a date. */
function retryAfter(headers: Headers | undefined): number | undefined {
  const exact = Number(headers?.get('retry-after-ms') ?? undefined)
  if (exact >= 0) return exact
  const given = headers?.get('retry-after')
  if (!given) return undefined
  const ms = Number.isNaN(Number(given)) ? Date.parse(given) - Date.now() : Number(given) * 1000
  return ms >= 0 ? Math.round(ms) : undefined
}
