/** Performs effects: model calls, tools, sleeps. Prompts and approvals are answered by people, through the inbox. */
import { BatonError, explain } from '@baton/shared/errors.ts'
import type { EffectError, Json, LlmInput, Message, ToolInput, ToolSpec } from '@baton/shared/guest.ts'
import type { Model } from '../model/model.ts'
import type { Tool } from '../tools/tool.ts'
import type { Workspace } from '../workspace/workspace.ts'

/** `partial`: what a stopped model had said. */
export type Performed = { result: Json } | { error: EffectError; partial?: string }

/** Turns whatever was thrown into what the guest sees. */
export function failureOf(error: unknown): EffectError {
  if (error instanceof BatonError) return { code: error.code, message: error.message }
  return { code: 'internal', message: explain(error) }
}

export async function performLlm(
  model: Model,
  input: LlmInput,
  messages: Message[],
  offered: ToolSpec[],
  options: { signal: AbortSignal; onText: (whole: string) => void },
): Promise<Performed> {
  const names = new Set(input.tools)
  let said = ''
  const onText = (whole: string): void => {
    said = whole
    options.onText(whole)
  }
  const request = {
    system: input.system,
    messages,
    tools: offered.filter((spec) => names.has(spec.name)),
    ...(input.model === undefined ? {} : { model: input.model }),
    ...(input.max_tokens === undefined ? {} : { max_tokens: input.max_tokens }),
  }
  try {
    const result = await model.call(request, { signal: options.signal, onText })
    return { result: result as unknown as Json }
  } catch (error) {
    const failure = failureOf(error)
    return { error: failure, ...(failure.code === 'stopped' && said !== '' ? { partial: said } : {}) }
  }
}

export async function performTool(
  tool: Tool,
  input: ToolInput,
  workspace: Workspace,
  readFiles: Map<string, string>,
  signal: AbortSignal,
): Promise<Performed> {
  const result = await tool.execute(input.input, { root: workspace.root, signal, readFiles })
  return { result: result as unknown as Json }
}

/** Waits until a time on this machine's clock, in milliseconds since 1970. */
export function performSleep(until: number, signal: AbortSignal): Promise<Performed> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => resolve({ result: null }), Math.max(0, until - Date.now()))
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(new BatonError('stopped'))
    })
  })
}
