/** Effects: asked for by number, settled by their outcomes. */
import type {
  EffectError,
  EffectKind,
  EffectRequest,
  Json,
  OutcomeMessage,
  ResendMessage,
} from '@baton/shared/guest.ts'
import { host } from './host.ts'

/**
 * Thrown when an effect fails; `code` says how, e.g. `stopped`, `interrupted`, `model-error`. `printed`: of a tool that was ended in its
 * middle, head and tail of what it had printed, as far as that is known.
 */
export class EffectFailed extends Error {
  override name = 'EffectFailed'
  readonly code: string
  readonly printed: string | undefined

  constructor({ code, message, printed }: EffectError) {
    super(message)
    this.code = code
    this.printed = printed
  }
}

type InputOf<K extends EffectKind> = Extract<EffectRequest, { kind: K }>['input']

interface Open {
  resolve(result: Json): void
  reject(error: EffectFailed): void
}

let count = 0
const open = new Map<number, Open>()
/** How to hand an open request over again, whole; see LlmInput. */
const whole = new Map<number, () => EffectRequest>()

/** Forgets everything: a test starts a second agent. */
export function resetEffects(): void {
  count = 0
  open.clear()
  whole.clear()
}

/** Asks for an effect and returns its number. */
export function ask<K extends EffectKind>(kind: K, input: InputOf<K>): number {
  const id = ++count
  host().ask(JSON.stringify({ id, kind, input }))
  return id
}

/** Remembers how to ask for effect `id` again if the runner lacks what the request builds on. */
export function askAgainBy(id: number, request: () => EffectRequest): void {
  whole.set(id, request)
}

/** Resolves with the result of an effect that was asked for; rejects with EffectFailed. */
export function outcomeOf<R>(id: number): Promise<R> {
  return new Promise((resolve, reject) => {
    open.set(id, { resolve: (result) => resolve(result as R), reject })
  })
}

/** Blocks right here until the outcome is there. Throws EffectFailed. */
export function blockFor<R>(id: number): R {
  for (;;) {
    const message = JSON.parse(host().block(id)) as OutcomeMessage | ResendMessage
    if (message.type === 'resend') {
      resend(message)
      continue
    }
    whole.delete(id)
    if (message.error !== undefined) throw new EffectFailed(message.error)
    return message.result as R
  }
}

/** An outcome that nobody waits for (any more) is dropped. */
export function settle({ effect, result, error }: OutcomeMessage): void {
  const waiting = open.get(effect)
  open.delete(effect)
  whole.delete(effect)
  if (error !== undefined) waiting?.reject(new EffectFailed(error))
  else waiting?.resolve(result ?? null)
}

export function resend({ effect }: ResendMessage): void {
  const request = whole.get(effect)
  if (request !== undefined) host().ask(JSON.stringify(request()))
}
