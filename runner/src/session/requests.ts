/** Effect requests in the forms that the journal keeps. */
import { requestDigest } from '@baton/shared/digest.ts'
import type { EffectRequest, Json, LlmInput, Replay } from '@baton/shared/guest.ts'
import type { Intent } from '@baton/shared/journal.ts'

/** An effect that the guest waits for. */
export type AwaitedRequest = Exclude<EffectRequest, { kind: 'emit' }>

/**
 * Names a request whole. A model request is named by the digest of its conversation, so that it has one name whether its
 * prefix was handed over before or is sent again.
 */
export function digestOf(request: AwaitedRequest): string {
  if (request.kind !== 'llm') return requestDigest(request.kind, request.input as unknown as Json)
  const { add: _add, prior: _prior, follows: _follows, ...named } = request.input
  return requestDigest('llm', named)
}

export function intentOf(request: AwaitedRequest, replay: Replay, attempt: number, now: number): Intent {
  const intent: Intent = {
    effect: request.id,
    kind: request.kind,
    replay,
    digest: digestOf(request),
    attempt,
    now,
  }
  switch (request.kind) {
    case 'tool':
      return { ...intent, tool: request.input }
    case 'approve':
      return { ...intent, approve: request.input }
    case 'llm':
      return { ...intent, llm: counts(request.input) }
    case 'sleep':
      return { ...intent, sleep: { until: now + request.input.ms } }
    case 'prompt':
      return request.input.steer === true ? { ...intent, prompt: { steer: true } } : intent
  }
}

function counts({ prior, add, model }: LlmInput): NonNullable<Intent['llm']> {
  return { prior, added: add.length, ...(model === undefined ? {} : { model }) }
}

/** The request that an intent was written for; undefined for `llm`, whose conversation only the guest has. */
export function requestOf(intent: Intent): AwaitedRequest | undefined {
  const id = intent.effect
  if (intent.tool) {
    const { name, input, approval, call } = intent.tool
    return {
      id,
      kind: 'tool',
      input: {
        name,
        input,
        ...(approval === undefined ? {} : { approval }),
        ...(call === undefined ? {} : { call }),
      },
    }
  }
  if (intent.approve) return { id, kind: 'approve', input: intent.approve }
  if (intent.sleep) return { id, kind: 'sleep', input: { ms: Math.max(0, intent.sleep.until - intent.now) } }
  if (intent.kind === 'prompt')
    return { id, kind: 'prompt', input: intent.prompt?.steer ? { steer: true } : {} }
  return undefined
}
