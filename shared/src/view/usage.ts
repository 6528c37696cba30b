/** What turns have used, as the agent tells at the end of each. Pure. */
import * as v from 'valibot'
import type { Json } from '../guest.ts'

export interface Usage {
  input_tokens: number
  output_tokens: number
  cache_read_tokens: number
  cache_write_tokens: number
  /** US dollars, of the requests whose model has a known price. */
  cost_usd: number
  /** Turns whose cost is not known. */
  unpriced: number
}

const tokens = v.fallback(v.pipe(v.number(), v.minValue(0)), 0)

const Report = v.object({
  usage: v.object({
    input_tokens: tokens,
    output_tokens: tokens,
    cache_read_tokens: tokens,
    cache_write_tokens: tokens,
  }),
  cost_usd: v.fallback(v.optional(v.pipe(v.number(), v.minValue(0))), undefined),
})

const TurnEnd = v.object({
  state: v.literal('end'),
  ...Report.entries,
  /** Of all turns, and what was used between them. */
  session: v.fallback(v.optional(Report), undefined),
  context: v.fallback(v.optional(v.object({ tokens, window: tokens })), undefined),
})

/** What the last turn and the whole session have used, and how full the model's context is. */
export interface Used {
  turn: Usage
  session: Usage
  context?: { tokens: number; window: number }
}

/** `before` with what an event `turn` says of the turn that it ends; the same when it ends none or does not say. */
export function withTurn(before: Used | undefined, data: Json): Used | undefined {
  const parsed = v.safeParse(TurnEnd, data)
  if (!parsed.success) return before
  const { session, context } = parsed.output
  const turn = usageOf(parsed.output)
  const sum = before ? addedUsage(before.session, turn) : turn
  return { turn, session: session ? usageOf(session) : sum, ...(context && { context }) }
}

function usageOf({ usage, cost_usd }: v.InferOutput<typeof Report>): Usage {
  return { ...usage, cost_usd: cost_usd ?? 0, unpriced: cost_usd === undefined ? 1 : 0 }
}

function addedUsage(a: Usage, b: Usage): Usage {
  return {
    input_tokens: a.input_tokens + b.input_tokens,
    output_tokens: a.output_tokens + b.output_tokens,
    cache_read_tokens: a.cache_read_tokens + b.cache_read_tokens,
    cache_write_tokens: a.cache_write_tokens + b.cache_write_tokens,
    cost_usd: a.cost_usd + b.cost_usd,
    unpriced: a.unpriced + b.unpriced,
  }
}

/** `12k in (9.8k from the cache) · 1.2k out · $0.08`; without a known price the cost is left out. */
export function usageWords(usage: Usage): string {
  const { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd, unpriced } = usage
  const all = input_tokens + cache_read_tokens + cache_write_tokens
  const cached = cache_read_tokens === 0 ? '' : ` (${countWords(cache_read_tokens)} from the cache)`
  const cost = unpriced === 0 ? dollars(cost_usd) : cost_usd === 0 ? '' : `at least ${dollars(cost_usd)}`
  return [`${countWords(all)} in${cached}`, `${countWords(output_tokens)} out`, cost]
    .filter(Boolean)
    .join(' · ')
}

/** `812`, `1.2k`, `34k`, `1.3M`. */
export function countWords(count: number): string {
  if (count < 1000) return String(count)
  if (count < 999_500) {
    const thousands = count / 1000
    return `${thousands < 9.95 ? thousands.toFixed(1) : Math.round(thousands)}k`
  }
  return `${(count / 1e6).toFixed(1)}M`
}

/** `31k of 200k tokens`; what the model's window holds is not always known. */
export function contextWords({ tokens, window }: NonNullable<Used['context']>): string {
  return window === 0
    ? `${countWords(tokens)} tokens`
    : `${countWords(tokens)} of ${countWords(window)} tokens`
}

/** What a single thing cost: `$0.0042`, `$1.24`. */
export function exactDollars(usd: number): string {
  return `$${usd.toFixed(usd < 0.1 ? 4 : 2)}`
}

function dollars(usd: number): string {
  return usd > 0 && usd < 0.01 ? 'under $0.01' : `$${usd.toFixed(2)}`
}
