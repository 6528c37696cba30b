/** What doctor looks at on the way to the model. */
import Anthropic from '@anthropic-ai/sdk'
import { modelDoubt } from '../../model/names.ts'
import { MODELS } from '../../model/prices.ts'
import { cleanLine } from '../term/text.ts'
import { ok, problem, warning, type Finding } from './check.ts'

const REACH_MS = 5000
const LIVE_MS = 20_000
const BASE_URL = 'https://api.anthropic.com'
const KEY_TODO = 'Set ANTHROPIC_API_KEY where the runner starts.'

/** `live`: with a real request of a few tokens. */
export async function model(live: boolean, env = process.env): Promise<Finding> {
  const key = env['ANTHROPIC_API_KEY']?.trim()
  const base = env['ANTHROPIC_BASE_URL'] ?? BASE_URL
  if (!key)
    return warning('No key here: a runner started from this shell plays the rehearsal model.', KEY_TODO)
  if (live) return asked(key, base, env['BATON_MODEL'])
  try {
    // Any answer will do: the question is whether the way is open.
    await fetch(base, { method: 'HEAD', signal: AbortSignal.timeout(REACH_MS) })
    const doubt = env['BATON_MODEL'] === undefined ? undefined : modelDoubt(env['BATON_MODEL'])
    if (doubt)
      return warning(
        `BATON_MODEL: ${cleanLine(doubt)}`,
        'Ask the service whether it has it: baton doctor --live',
      )
    return ok(`a key is set, ${base} can be reached; --live asks the model`)
  } catch (error) {
    const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
    const why = cause instanceof Error ? cause.message : String(cause)
    return problem(
      `${base} can not be reached (${cleanLine(why)}).`,
      'Check the network, a proxy, and ANTHROPIC_BASE_URL.',
    )
  }
}

async function asked(apiKey: string, baseURL: string, wanted: string | undefined): Promise<Finding> {
  const quiet = { logLevel: 'off', openTelemetry: false } as const
  const client = new Anthropic({ apiKey, baseURL, maxRetries: 0, timeout: LIVE_MS, ...quiet })
  try {
    const name = wanted ?? MODELS[0]
    const { usage } = await client.messages.create({
      ...{ model: name, max_tokens: 1 },
      messages: [{ role: 'user', content: 'ok' }],
    })
    return ok(`${name} answers (${usage.input_tokens + usage.output_tokens} tokens)`)
  } catch (error) {
    if (error instanceof Anthropic.AuthenticationError) return problem('The key is not accepted.', KEY_TODO)
    if (error instanceof Anthropic.NotFoundError)
      return problem(
        `The service has no model ${wanted ?? MODELS[0]}.`,
        'Correct BATON_MODEL, or ANTHROPIC_BASE_URL.',
      )
    if (error instanceof Anthropic.APIError)
      return problem(
        `The service answers ${error.status ?? 'not at all'}: ${cleanLine(error.message)}`,
        'See its status page; try again.',
      )
    throw error
  }
}
