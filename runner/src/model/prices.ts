/**
 * What is known of models by name: prices, context window, how they take thinking and effort.
 * Source: platform.claude.com/docs/en/about-claude/pricing and the overview page of each model, read in November 2026. A model that is
 * not listed works all the same; then cost and window are not told.
 */
import type { LlmResult } from '@baton/shared/guest.ts'

type Usage = LlmResult['usage']

/** US dollars for a million tokens. `cache_write`: for five minutes. */
export interface Price {
  input: number
  output: number
  cache_write: number
  cache_read: number
}

export interface ModelFacts {
  price: Price
  /** Prompts longer than `above` tokens (input and cache together) pay this for all tokens of the request. */
  long?: { above: number; price: Price }
  /** Tokens that the context holds. */
  window: number
  /** Takes `thinking: adaptive`. */
  adaptive: boolean
  /** Takes `effort`. */
  effort: boolean
}

const MILLION = 1e6

const price = (input: number, output: number, cache_read = input / 10): Price => ({
  input,
  output,
  cache_write: input * 1.25,
  cache_read,
})
const modern = { window: MILLION, adaptive: true, effort: true }

const FACTS: Record<string, ModelFacts> = {
  'claude-sonnet-5-5': { price: price(2, 10, 0.1), ...modern },
  'claude-opus-5-5': { price: price(4, 20, 0.2), ...modern },
  'claude-fable-5-2': { price: price(8, 40, 0.2), ...modern },
  'claude-haiku-5-5': {
    price: price(0.1, 0.5),
    long: { above: 100_000, price: price(0.5, 2.5) },
    ...modern,
  },
  'claude-fable-5-1': { price: price(10, 50, 0.25), ...modern },
  'claude-fable-5': { price: price(10, 50), ...modern },
  'claude-opus-5': { price: price(5, 25), ...modern },
  'claude-sonnet-5': { price: price(2, 10), ...modern },
  'claude-opus-4-8': { price: price(5, 25), ...modern },
  'claude-opus-4-7': { price: price(5, 25), ...modern },
  'claude-opus-4-6': { price: price(5, 25), ...modern },
  'claude-sonnet-4-6': { price: price(3, 15), ...modern },
  'claude-opus-4-5': { price: price(5, 25), window: 200_000, adaptive: false, effort: true },
  'claude-sonnet-4-5': { price: price(3, 15), window: 200_000, adaptive: false, effort: false },
  'claude-haiku-4-5': { price: price(1, 5), window: 200_000, adaptive: false, effort: false },
}

/** Models that a person may choose from: the current one of each family, the default first. */
export const MODELS = [
  'claude-sonnet-5-5',
  'claude-opus-5-5',
  'claude-fable-5-2',
  'claude-haiku-5-5',
] as const

/** All names that are known, those of MODELS first. */
export const NAMES: readonly string[] = [...new Set([...MODELS, ...Object.keys(FACTS)])]

/** What is known of a model; its name may end in a date. */
export function factsOf(model: string): ModelFacts | undefined {
  const name = model.replace(/-\d{8}$/, '')
  return Object.hasOwn(FACTS, name) ? FACTS[name] : undefined
}

/** What a request cost, in US dollars; undefined when the model's price is not known. */
export function costOf(model: string, usage: Usage): number | undefined {
  const facts = factsOf(model)
  if (!facts) return undefined
  const prompt = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens
  const rate = facts.long && prompt > facts.long.above ? facts.long.price : facts.price
  const dollars =
    usage.input_tokens * rate.input +
    usage.output_tokens * rate.output +
    usage.cache_read_tokens * rate.cache_read +
    usage.cache_write_tokens * rate.cache_write
  return dollars / MILLION
}
