/** Starts effects whose intent is durable (I3). */
import { BatonError } from '@baton/shared/errors.ts'
import type { Draft } from './journal.ts'
import type { Effects } from './effects.ts'
import type { Live } from './live.ts'
import type { SessionOptions } from './options.ts'
import { Partial } from './partial.ts'
import { performLlm, performSleep, performTool } from './perform.ts'
import { intentOf, requestOf, type AwaitedRequest } from './requests.ts'

export interface Starting {
  options: SessionOptions
  effects: Effects
  lease: { sid: string; key: Uint8Array; epoch: number }
  append: (drafts: Draft[]) => Promise<void>
}

/**
 * Starts one open effect. `again` first writes the intent of the new attempt. `needs-resend`: only the guest has the
 * conversation that the model is to be asked with.
 */
export async function startEffect(
  live: Live,
  effect: number,
  attempt: 'first' | 'again',
  starting: Starting,
): Promise<'started' | 'needs-resend'> {
  const open = live.state.open.get(effect)
  // Ended meanwhile, e.g. refused or stopped.
  if (!open) return 'started'
  const request = live.requests.get(effect) ?? requestOf(open.intent)
  if (!request) return 'needs-resend'
  const messages = request.kind === 'llm' ? live.conversations.extend(request.input) : undefined
  if (request.kind === 'llm' && !messages) return 'needs-resend'
  if (attempt === 'again') {
    const { replay, attempt: last } = open.intent
    await starting.append([{ kind: 'intent', body: intentOf(request, replay, last + 1, Date.now()) }])
  }
  perform(live, request, messages ?? [], starting)
  return 'started'
}

type Messages = NonNullable<ReturnType<Live['conversations']['extend']>>

function perform(live: Live, request: AwaitedRequest, messages: Messages, starting: Starting): void {
  const { options, effects, lease } = starting
  switch (request.kind) {
    case 'llm': {
      const partial = new Partial(options.link, lease, request.id)
      effects.start(request.id, 'llm', (signal) =>
        performLlm(options.model, request.input, messages, live.start.tools, {
          signal,
          onText: (text) => partial.update(text),
        }).finally(() => partial.end()),
      )
      return
    }
    case 'tool': {
      const tool = live.tools.get(request.input.name)
      const run = async (signal: AbortSignal) => {
        if (!tool) throw new BatonError('unknown-tool', `(${request.input.name} is not on this runner)`)
        return performTool(tool, request.input, await live.workspace, live.readFiles, signal)
      }
      // What only looks can't have changed the files.
      const looks = tool?.spec.replay === 'safe' && tool.spec.access === 'read'
      const store = async (): Promise<Draft[]> => {
        const draft = await live.checkpoints.store(await live.workspace)
        return draft ? [draft] : []
      }
      effects.start(request.id, 'tool', run, looks ? undefined : store)
      return
    }
    case 'sleep': {
      const until = live.state.open.get(request.id)?.intent.sleep?.until ?? 0
      effects.start(request.id, 'sleep', (signal) => performSleep(until, signal))
      return
    }
    case 'prompt':
    case 'approve':
    // People answer, through the inbox.
  }
}
