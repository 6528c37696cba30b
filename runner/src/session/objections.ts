/** Calls that a person would be asked for in vain: what stands against them is told at once. */
import { BatonError } from '@baton/shared/errors.ts'
import type { ApproveInput, EffectError, ToolInput } from '@baton/shared/guest.ts'
import { objectionToLinks } from '../tools/links.ts'
import type { CallPlace } from '../tools/tool.ts'
import { policyOf } from './asks.ts'
import type { Live } from './live.ts'
import { failureOf } from './perform.ts'
import { objectionToWay, ruledDecision } from './permissions.ts'

/**
 * Files may be long on their way, and looking at them may take time: what is not known by then is left to the calls. Stop and a notice
 * of sleep wait no longer than this.
 */
const CHECK_MS = 1_000

/**
 * Of what the guest asks approval for just now: why the call could not be done though it were approved, by effect. Nothing is said of what
 * other calls may change before it, nor of what mode and rules decide by themselves.
 */
export async function objectionsTo(live: Live): Promise<Map<number, EffectError>> {
  const found = new Map<number, EffectError>()
  const asks = live.pause.asked.flatMap((ask) =>
    ask.kind === 'approve' &&
    !live.state.digests.has(ask.id) &&
    ruledDecision(policyOf(live), ask.input) === undefined
      ? [ask]
      : [],
  )
  if (asks.length === 0) return found
  const { promise: late, resolve } = Promise.withResolvers<undefined>()
  const timer = setTimeout(() => resolve(undefined), CHECK_MS)
  const here = live.here ?? (await unless(late, live.workspace))
  const place = here && { root: here.root, ...(here.stay ? { stay: here.stay } : {}) }
  const look = async ({ id, input }: (typeof asks)[number]): Promise<void> => {
    const objection = await unless(late, objectionTo(live, input, place))
    if (objection) found.set(id, objection)
  }
  await Promise.all(asks.map(look))
  clearTimeout(timer)
  return found
}

async function objectionTo(
  live: Live,
  call: ApproveInput,
  place: CallPlace | undefined,
): Promise<EffectError | undefined> {
  const { name, input } = call
  const tool = live.tools.get(name)
  if (!tool) {
    // A name that is no tool's at all is of the agent's own, a plan say.
    const isKnown = live.start.tools.some((spec) => spec.name === name)
    return isKnown ? failureOf(new BatonError('unknown-tool', `(${name} is not on this runner)`)) : undefined
  }
  const objection = await tool.objection?.(input, place)
  if (objection || !place) return objection
  const way = (other: ToolInput['input']): string | undefined => objectionToWay(policyOf(live), call, other)
  const leads = await objectionToLinks(input, { ...place, objectionTo: way })
  return leads === undefined ? undefined : { code: 'not-allowed', message: leads }
}

/** Undefined also when it took too long or failed: the call itself will tell. */
function unless<T>(late: Promise<undefined>, work: Promise<T | undefined>): Promise<T | undefined> {
  return Promise.race([work.catch(() => undefined), late])
}
