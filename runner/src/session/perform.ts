/** Performs effects: model calls, tools, sleeps. Prompts and approvals are answered by people, through the inbox. */
import { BatonError, explain } from '@baton/shared/errors.ts'
import type {
  EffectError,
  Json,
  LlmInput,
  Message,
  OwnTool,
  ToolInput,
  ToolSpec,
} from '@baton/shared/guest.ts'
import { isTransient, type Model } from '../model/model.ts'
import { refused } from '../tools/define.ts'
import { objectionToLinks } from '../tools/links.ts'
import type { Tool, ToolAnswer, ToolContext } from '../tools/tool.ts'
import { bounded } from '../tools/text.ts'
import type { Images } from './images.ts'

/** `blobs`: what the result names. `partial`: what a stopped model had said. `transient`: the same call may succeed a little later. */
export type Performed =
  | { result: Json; blobs?: string[] }
  | { error: EffectError; partial?: string; transient?: { retry_after_ms: number | undefined } }

/** Turns whatever was thrown into what the guest sees. */
export function failureOf(error: unknown): EffectError {
  if (error instanceof BatonError) return { code: error.code, message: error.message }
  return { code: 'internal', message: explain(error) }
}

/** An error of an effect that was ended in its middle keeps what that had printed. */
export function withPrinted(error: EffectError, printed: string): EffectError {
  const isCut = error.code === 'stopped' || error.code === 'interrupted'
  return isCut && printed !== '' ? { ...error, printed } : error
}

export async function performLlm(
  model: Model,
  input: LlmInput,
  messages: Message[],
  offered: ToolSpec[],
  options: { signal: AbortSignal; onText: (whole: string, thought?: string) => void },
): Promise<Performed> {
  const names = new Set(input.tools)
  let said = ''
  const onText = (whole: string, thought?: string): void => {
    said = whole
    options.onText(whole, thought)
  }
  const request = {
    system: input.system,
    messages,
    tools: [...offered.filter((spec) => names.has(spec.name)), ...(input.own_tools ?? []).map(asSpec)],
    ...(input.model === undefined ? {} : { model: input.model }),
    ...(input.effort === undefined ? {} : { effort: input.effort }),
    ...(input.max_tokens === undefined ? {} : { max_tokens: input.max_tokens }),
  }
  try {
    const result = await model.call(request, { signal: options.signal, onText })
    return { result: result as unknown as Json }
  } catch (error) {
    const failure = failureOf(error)
    return {
      error: failure,
      ...(failure.code === 'stopped' && said !== '' ? { partial: said } : {}),
      ...(isTransient(error) ? { transient: { retry_after_ms: error.retry_after_ms } } : {}),
    }
  }
}

/** To the model all tools are alike. */
const asSpec = (tool: OwnTool): ToolSpec => ({ ...tool, replay: 'safe', access: 'read' })

/** Characters of JSON. It is for people who look closely; the guest and every reader carry it along. */
const DETAIL_CHARS = 64 << 10
const NEWS_CHARS = 2000

/** What is too long is left out whole, and said. */
function withinBounds({ detail, ...answer }: ToolAnswer): ToolAnswer {
  const chars = detail === undefined ? 0 : JSON.stringify(detail).length
  if (detail === undefined || chars <= DETAIL_CHARS) return { ...answer, ...(detail ? { detail } : {}) }
  return { ...answer, detail: { left_out: `The detail of ${chars} characters is too long to be kept.` } }
}

export async function performTool(
  tool: Tool,
  input: ToolInput,
  images: Images,
  context: ToolContext,
  news: string[],
): Promise<Performed> {
  const objection = await objectionToLinks(input.input, context)
  const given =
    objection === undefined ? await tool.execute(input.input, context) : refused(objection, 'not-allowed')
  const answer = withNews(withinBounds(given), news)
  const { result, blobs } = await images.kept(answer)
  return { result: result as unknown as Json, blobs }
}

/** Told once, with whichever answer comes first. */
function withNews(answer: ToolAnswer, news: string[]): ToolAnswer {
  const sentences = news.splice(0)
  if (sentences.length === 0) return answer
  return { ...answer, text: `${answer.text}\n\n[Baton: ${bounded(sentences.join(' '), NEWS_CHARS)}]` }
}

/** Waits until a time on this machine's clock, in milliseconds since 1970. Rejects with `stopped` when the signal ends it. */
export function waitUntil(until: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const aborted = (): void => {
      clearTimeout(timer)
      reject(new BatonError('stopped'))
    }
    const check = (): void => {
      const left_ms = until - Date.now()
      if (left_ms > 0) {
        timer = setTimeout(check, Math.min(left_ms, TIMER_MS_MAX))
        return
      }
      signal.removeEventListener('abort', aborted)
      resolve()
    }
    let timer: ReturnType<typeof setTimeout> | undefined
    if (signal.aborted) return aborted()
    signal.addEventListener('abort', aborted)
    check()
  })
}

/** Longer ones end at once. */
const TIMER_MS_MAX = 2 ** 31 - 1
