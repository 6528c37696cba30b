/**
 * A session's journal as spans of time: what ran, what it waited for, where it was, what it cost. Pure: entries in, spans out. The
 * transcript says what happened; this says when, and for how long.
 *
 * Times are milliseconds since 1970 on the relay's clock, which is one for all runners. What was copied from another session has
 * the times of its origin, on the clocks of the runners there.
 */
import type { EffectError, Json } from './guest.ts'
import type { Allowance, Intent, Outcome } from './journal.ts'
import type { Read } from './view/entry.ts'

export interface Usage {
  input_tokens: number
  output_tokens: number
  cache_read_tokens: number
  cache_write_tokens: number
  /** US dollars; absent when no price is known. */
  cost_usd?: number
}

export interface Span {
  /**
   * `prompt`, `decision`: a person was waited for. `handoff`: let go by one runner, taken by another. `takeover`: the lease of one
   * ran out, another took it. `parked`: rested without a runner, which took it up again.
   */
  kind: 'llm' | 'tool' | 'sleep' | 'prompt' | 'decision' | 'handoff' | 'takeover' | 'parked'
  /** Model or tool. */
  name: string
  /** The prompt that came, or what a call is about, in one line. */
  detail?: string
  start_ms: number
  /** Absent: it has not ended. */
  end_ms?: number
  /** `cut`: the runner had to let go in its middle, or vanished; a later span may repeat it. */
  end?: 'ok' | 'error' | 'cut' | 'denied'
  error?: EffectError
  effect?: number
  attempt?: number
  /** Of a tool that nobody was asked for: the rules, or else the mode, that allowed it. */
  allowed?: Allowance
  usage?: Usage
  /** Device ids, for `handoff`, `takeover`, `parked`. */
  from?: string
  to?: string
  /** What travelled with a handoff: the size of the last snapshot. */
  bytes?: number
}

export interface Trace {
  spans: Span[]
  totals: {
    requests: number
    /** Requests that were cut off or failed and were made again. */
    repeated: number
    /** Those among them that were cut off by a move or a lost runner: paid for without an answer. */
    cut_off: number
    tools: number
    handoffs: number
    /** Sums of durations; those of parallel spans count each. */
    model_ms: number
    tool_ms: number
    /** How long people were waited for. */
    people_ms: number
  } & Usage
}

const DETAIL_CHARS = 200

/** Folds entries, in order. Spans come in the order of their starts. */
export function traceOf(entries: readonly Read[]): Trace {
  const reader = new Reader(copiedUpTo(entries))
  for (const entry of entries) reader.read(entry)
  const spans = reader.spans.toSorted((a, b) => a.start_ms - b.start_ms)
  return { spans, totals: totalsOf(spans, entries.at(-1)?.at ?? 0) }
}

/** Seq before which entries are copies: their `at` is when they were copied. */
function copiedUpTo(entries: readonly Read[]): number {
  return (
    entries.findLast(({ kind, ...entry }) => {
      if (kind !== 'received' || !('body' in entry)) return false
      const { body } = entry
      return 'kind' in body && body.kind === 'start' && 'copied' in body && body.copied !== undefined
    })?.seq ?? 0
  )
}

class Reader {
  readonly spans: Span[] = []
  readonly #copied: number
  readonly #open = new Map<number, Span>()
  #prompt = ''
  /** Who held the session last, and when it was let go. */
  #left: { from: string; at: number; expired: boolean } | undefined
  #bytes = 0

  constructor(copied: number) {
    this.#copied = copied
  }

  read(entry: Read): void {
    switch (entry.kind) {
      case 'intent':
        this.#begin(entry.body, this.#time(entry, entry.body.now))
        return
      case 'outcome':
        this.#end(entry.body, this.#time(entry, entry.body.now))
        return
      case 'received':
        if (entry.body.kind === 'prompt') this.#prompt = entry.body.command.text
        return
      case 'snapshot':
        this.#bytes = entry.body.bytes
        return
      case 'lease':
        this.#lease(entry.lease, entry.at)
        return
      case 'checkpoint':
      case 'event':
      case 'unreadable':
    }
  }

  #time({ seq, at }: Read, now: number): number {
    return seq < this.#copied ? now : at
  }

  #begin(intent: Intent, at: number): void {
    const { effect, kind, attempt, retry, allowed } = intent
    const before = this.#open.get(effect)
    if (before && before.kind !== 'decision' && before.kind !== 'prompt') {
      before.end_ms = at
      before.end = retry ? 'error' : 'cut'
      if (retry) before.error = { code: retry.code, message: retry.message }
    }
    // A turn under way listens for a steering prompt all the time.
    if (kind === 'prompt' && intent.prompt?.steer === true) return
    const span: Span = {
      ...{ ...named(intent), start_ms: at, effect },
      ...(attempt > 1 ? { attempt } : {}),
      ...(allowed ? { allowed } : {}),
    }
    this.#open.set(effect, span)
    this.spans.push(span)
  }

  #end(outcome: Outcome, at: number): void {
    const { effect, result, error, duration_ms } = outcome
    const span = this.#open.get(effect)
    if (!span) return
    this.#open.delete(effect)
    span.end_ms = at
    // It ran for shorter than from intent to outcome when the runner waited in between, e.g. for the relay.
    if (duration_ms !== undefined) span.start_ms = Math.max(span.start_ms, at - duration_ms)
    span.end = error ? (error.code === 'interrupted' ? 'cut' : 'error') : 'ok'
    if (error) span.error = error
    if (span.kind === 'prompt') span.detail = line(this.#prompt)
    if (span.kind === 'decision' && at_(result, 'approved') === false) span.end = 'denied'
    if (span.kind === 'tool' && at_(result, 'is_error') === true) span.end = 'error'
    if (span.kind === 'llm') finishLlm(span, result)
  }

  #lease({ change, holder }: { change: string; holder: string }, at: number): void {
    if (change !== 'claimed') {
      this.#left = { from: holder, at, expired: change === 'expired' }
      return
    }
    const left = this.#left
    if (!left) return
    const isSame = left.from === holder
    const kind = left.expired ? 'takeover' : isSame ? 'parked' : 'handoff'
    this.spans.push({
      ...{ kind, name: '', start_ms: left.at, end_ms: at, end: 'ok', from: left.from, to: holder },
      ...(kind === 'handoff' ? { bytes: this.#bytes } : {}),
    })
  }
}

function named({ kind, tool, approve, llm }: Intent): Pick<Span, 'kind' | 'name' | 'detail'> {
  if (kind === 'llm') return { kind, name: llm?.model ?? 'model' }
  if (tool) return { kind: 'tool', name: tool.name, ...about(tool.input) }
  if (approve) return { kind: 'decision', name: approve.name, ...about(approve.input) }
  return kind === 'prompt' ? { kind, name: '' } : { kind: 'sleep', name: '' }
}

function finishLlm(span: Span, result: Json | undefined): void {
  const model = at_(result, 'model')
  if (typeof model === 'string') span.name = model
  const usage = at_(result, 'usage')
  const cost = at_(result, 'cost_usd') ?? at_(usage, 'cost_usd')
  if (usage === undefined) return
  span.usage = {
    input_tokens: number(at_(usage, 'input_tokens')),
    output_tokens: number(at_(usage, 'output_tokens')),
    cache_read_tokens: number(at_(usage, 'cache_read_tokens')),
    cache_write_tokens: number(at_(usage, 'cache_write_tokens')),
    ...(typeof cost === 'number' ? { cost_usd: cost } : {}),
  }
}

/** What the call is about: its first text. */
function about(input: { [key: string]: Json }): { detail?: string } {
  const text = Object.values(input).find((value) => typeof value === 'string' && value !== '')
  return typeof text === 'string' ? { detail: line(text) } : {}
}

function line(text: string): string {
  const one = text.trim().split('\n')[0] ?? ''
  return one.length > DETAIL_CHARS ? `${one.slice(0, DETAIL_CHARS)}…` : one
}

function totalsOf(spans: readonly Span[], now: number): Trace['totals'] {
  const of = (...kinds: Span['kind'][]): Span[] => spans.filter(({ kind }) => kinds.includes(kind))
  const ms = (some: readonly Span[]): number =>
    some.reduce((sum, { start_ms, end_ms }) => sum + Math.max(0, (end_ms ?? now) - start_ms), 0)
  const usages = spans.flatMap(({ usage }) => usage ?? [])
  const sum = (key: keyof Usage): number => usages.reduce((total, usage) => total + (usage[key] ?? 0), 0)
  const llm = of('llm')
  const priced = usages.some(({ cost_usd }) => cost_usd !== undefined)
  return {
    requests: llm.length,
    repeated: llm.filter(({ attempt }) => (attempt ?? 1) > 1).length,
    cut_off: llm.filter(({ end }) => end === 'cut').length,
    tools: of('tool').length,
    handoffs: of('handoff', 'takeover').length,
    model_ms: ms(llm),
    tool_ms: ms(of('tool')),
    people_ms: ms(of('prompt', 'decision')),
    input_tokens: sum('input_tokens'),
    output_tokens: sum('output_tokens'),
    cache_read_tokens: sum('cache_read_tokens'),
    cache_write_tokens: sum('cache_write_tokens'),
    ...(priced ? { cost_usd: sum('cost_usd') } : {}),
  }
}

function number(value: Json | undefined): number {
  return typeof value === 'number' ? value : 0
}

function at_(value: Json | undefined, key: string): Json | undefined {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value[key] : undefined
}
