/** What a benchmark gives. A group is one module of this folder; see bench.ts. */

export interface BenchResult {
  /** What was measured, e.g. `stop-to-unwound p99`. */
  name: string
  value: number
  /** `ms`, `KB`, `x` (a ratio), `%`, `/s`, … */
  unit: string
  /** How many measurements the value rests on. */
  samples: number
  budget?: number
  /** Budget kept; true where there is none. */
  ok: boolean
  /** What a ratio is relative to, measured in the same run; or what the value was measured against. */
  versus?: string
}

/** A group: measures one thing after the other and gives each result as soon as it is there. */
export type Bench = () => AsyncGenerator<BenchResult>

/** What a group says about itself before its results; the sentences begin "Measures …" and "Leaves out …". */
export interface BenchAbout {
  measures: string
  leavesOut: string
}

/** Is a bigger value the better one? Throughput and shares are; times, sizes and ratios of slowness are not. */
type Better = 'lower' | 'higher'

interface ResultOptions {
  unit: string
  samples: number
  budget?: number
  better?: Better
  versus?: string
}

/** Puts a result together and judges it by its budget. */
export function result(name: string, value: number, options: ResultOptions): BenchResult {
  const { budget, better = 'lower', unit, samples, versus } = options
  if (!Number.isFinite(value)) throw new Error(`${name} was measured as ${value}`)
  return {
    name,
    value,
    unit,
    samples,
    ...(budget !== undefined && { budget }),
    ok: budget === undefined || (better === 'lower' ? value <= budget : value >= budget),
    ...(versus !== undefined && { versus }),
  }
}

/**
 * The p-quantile (0 … 1) by the nearest-rank method, so that it is always a value that occurred.
 *
 * @throws Error when there are no samples
 */
export function quantile(samples: readonly number[], p: number): number {
  const sorted = samples.toSorted((a, b) => a - b)
  const value = sorted[Math.max(0, Math.ceil(p * sorted.length) - 1)]
  if (value === undefined) throw new Error('no samples to take a quantile of')
  return value
}
