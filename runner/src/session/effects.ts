/** The effects that run at this moment: each can be stopped by a person, or cut off because the runner must let go. */
import type { BlobStore } from '@baton/shared/blobs.ts'
import { utf8 } from '@baton/shared/bytes.ts'
import { BatonError, explain } from '@baton/shared/errors.ts'
import type { Json } from '@baton/shared/guest.ts'
import type { Outcome } from '@baton/shared/journal.ts'
import { readModelSaid, textsOf } from '@baton/shared/view/results.ts'
import { happened } from '../happenings.ts'
import { bounded } from '../tools/text.ts'
import { unstored, type Draft } from './journal.ts'
import { failureOf, waitUntil, withPrinted, type Performed } from './perform.ts'

/** A result longer than this goes into a blob. */
const INLINE_BYTES = 32 << 10
const ENDS_CHARS = 2000
const MESSAGE_CHARS = 8000

interface Running {
  kind: string
  controller: AbortController
  /** Only time has to pass: another runner can go on waiting. */
  waits: boolean
  /** It may change the files. */
  changes: boolean
  printed: () => string
}

/** An effect that the runner cut off, and head and tail of what it had printed by then. */
export interface Cut {
  effect: number
  printed: string
}

interface StartOptions {
  after?: () => Promise<Draft[]>
  not_before?: number
  printed?: () => string
}

/** How an effect ended: its outcome, and what is to be written before it. */
export interface Ended {
  effect: number
  performed: Performed
  before: Draft[]
  duration_ms: number
}

export class Effects {
  readonly #running = new Map<number, Running>()
  readonly #ended: (ended: Ended) => void
  #isOver = false

  constructor(ended: (ended: Ended) => void) {
    this.#ended = ended
  }

  get size(): number {
    return this.#running.size
  }

  /** Does one run that may change the files? */
  get areChanging(): boolean {
    return Array.from(this.#running.values()).some(({ changes }) => changes)
  }

  get kinds(): string[] {
    return Array.from(this.#running.values(), (running) => running.kind)
  }

  /**
   * Starts an effect whose intent is durable (I3). `after`, of one that may change the files, gives what must be written together
   * with the outcome; `not_before`, in milliseconds since 1970, lets it wait first; `printed` gives what it has put out so far.
   */
  start(
    effect: number,
    kind: string,
    perform: (signal: AbortSignal) => Promise<Performed>,
    { after, not_before = 0, printed = () => '' }: StartOptions = {},
  ): void {
    if (this.#isOver) return
    const controller = new AbortController()
    const running: Running = {
      ...{ kind, controller, waits: kind === 'sleep', changes: after !== undefined, printed },
    }
    this.#running.set(effect, running)
    const began = performance.now()
    const run = async (): Promise<void> => {
      const { signal } = running.controller
      const waitThenPerform = async (): Promise<Performed> => {
        if (not_before > Date.now()) {
          running.waits = true
          await waitUntil(not_before, signal)
          running.waits = false
        }
        return perform(signal)
      }
      const performed = await waitThenPerform().catch((error: unknown) => ({
        error: withPrinted(failureOf(error), printed()),
      }))
      // Cut off: another runner decides by the replay policy what becomes of it.
      if (this.#running.get(effect) !== running) return
      // Whatever becomes of the files, the effect has happened: its result must not be lost.
      const before = await (after?.() ?? Promise.resolve([])).catch((error: unknown) => [
        unstored(
          `The workspace could not be stored after this: until it is, the session goes on only here. ${explain(error)}`,
        ),
      ])
      if (this.#running.get(effect) !== running) return
      this.#running.delete(effect)
      const duration_ms = Math.round(performance.now() - began)
      const used = kind === 'llm' && 'result' in performed ? tokensOf(performed.result) : {}
      happened('effect', { kind, ok: !('error' in performed), ms: duration_ms, ...used })
      this.#ended({ effect, performed, before, duration_ms })
    }
    void run()
  }

  /** A person pressed Stop: every effect ends with an outcome. */
  stop(): void {
    for (const { controller } of this.#running.values()) controller.abort(new BatonError('stopped'))
  }

  /** The lease is gone: nothing goes on, and nothing starts any more. */
  end(): void {
    this.#isOver = true
    this.cut()
  }

  /** What only waits need not be waited for: whoever comes next goes on waiting. Gives the effects, as not started. */
  cutWaiting(): number[] {
    const waiting = Array.from(this.#running).filter(([, { waits }]) => waits)
    for (const [effect, { controller }] of waiting) {
      this.#running.delete(effect)
      controller.abort(new BatonError('interrupted'))
    }
    return waiting.map(([effect]) => effect)
  }

  /** The runner lets go: processes die, and nothing ends here any more. Returns what was cut off. */
  cut(): Cut[] {
    const running = [...this.#running]
    this.#running.clear()
    for (const [, { controller }] of running) controller.abort(new BatonError('interrupted'))
    return running.map(([effect, { printed }]) => ({ effect, printed: printed() }))
  }
}

/** `usage` of a model's answer, the counts only. */
function tokensOf(result: Json): { tokens?: Record<string, number> } {
  const usage =
    typeof result === 'object' && result !== null && 'usage' in result ? result['usage'] : undefined
  if (typeof usage !== 'object' || usage === null) return {}
  const counts = Object.entries(usage).filter(
    (entry): entry is [string, number] => typeof entry[1] === 'number',
  )
  return { tokens: Object.fromEntries(counts) }
}

/**
 * The outcome entry of an ended effect; a long result is stored first. One that can't be stored becomes the error `result-lost`.
 * Throws BatonError `lease-lost`.
 */
export async function outcomeDraft(
  ended: Ended,
  store: { blobs: BlobStore; sid: string; key: Uint8Array },
  now: number,
  repeated: number,
): Promise<Draft> {
  const { effect, performed, duration_ms } = ended
  const base: Outcome = { effect, now, duration_ms, ...(repeated > 0 ? { repeated } : {}) }
  if ('error' in performed) {
    const { partial } = performed
    const error = { ...performed.error, message: bounded(performed.error.message, MESSAGE_CHARS) }
    const said = partial === undefined ? {} : { partial: partial.slice(0, INLINE_BYTES) }
    return { kind: 'outcome', body: { ...base, error, ...said } }
  }
  const { result, blobs: named = [] } = performed
  try {
    const bytes = utf8(JSON.stringify(result))
    if (bytes.length <= INLINE_BYTES) return { kind: 'outcome', body: { ...base, result }, blobs: named }
    const hash = await store.blobs.put(store.sid, store.key, bytes)
    const blob = { hash, bytes: bytes.length, ...endsOf(result) }
    return { kind: 'outcome', body: { ...base, blob }, blobs: [hash, ...named] }
  } catch (error) {
    if (error instanceof BatonError && error.code === 'lease-lost') throw error
    // It has happened; only its words are lost, and the agent is told so.
    const lost = new BatonError('result-lost', `(${error instanceof Error ? error.message : String(error)})`)
    return { kind: 'outcome', body: { ...base, error: failureOf(lost) } }
  }
}

/** What a person reads of a result before they fetch all of it: of a model's answer what it said, never the signatures. */
function endsOf(result: Json): { head: string; tail: string; thoughts?: string } {
  if (typeof result === 'object' && result !== null && !Array.isArray(result)) {
    if (typeof result['text'] === 'string') return ends(result['text'])
  }
  const said = readModelSaid(result)
  const thoughts = textsOf(said, 'thought')
  return {
    ...ends(textsOf(said, 'text')),
    ...(thoughts === '' ? {} : { thoughts: thoughts.slice(0, ENDS_CHARS) }),
  }
}

function ends(text: string): { head: string; tail: string } {
  const isWhole = text.length <= 2 * ENDS_CHARS
  return isWhole
    ? { head: text, tail: '' }
    : { head: text.slice(0, ENDS_CHARS), tail: text.slice(-ENDS_CHARS) }
}
