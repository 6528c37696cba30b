/** Starts effects whose intent is durable (I3). */
import { BatonError } from '@baton/shared/errors.ts'
import type { ToolInput } from '@baton/shared/guest.ts'
import { policyOf } from './asks.ts'
import type { Draft } from './journal.ts'
import type { Effects } from './effects.ts'
import type { Live } from './live.ts'
import { HeadAndTail } from '../tools/text.ts'
import type { SessionOptions } from './options.ts'
import { NewestOutput, Partial } from './partial.ts'
import { performLlm, performTool, type Performed } from './perform.ts'
import { objectionToWay } from './permissions.ts'
import { backoffOf } from './retry.ts'
import { unlessAborted } from './steady.ts'
import { intentOf, requestOf, type AwaitedRequest } from './requests.ts'

/** Of what a command that is cut off had printed; with its worst bytes as JSON well within an entry. */
const PRINTED_CHARS = 8_000

export interface Starting {
  options: SessionOptions
  effects: Effects
  lease: { sid: string; key: Uint8Array; epoch: number }
  append: (drafts: Draft[]) => Promise<void>
}

/**
 * Starts one open effect. `again` first writes the intent of the new attempt. `needs-resend`: only the guest has the
 * conversation that the model is to be asked with. `not-now`: another one changes the files, and a checkpoint must hold the changes of
 * one call only (H9).
 */
export async function startEffect(
  live: Live,
  effect: number,
  attempt: 'first' | 'again',
  starting: Starting,
): Promise<'started' | 'needs-resend' | 'not-now'> {
  const open = live.state.open.get(effect)
  // Ended meanwhile, e.g. refused or stopped.
  if (!open) return 'started'
  const request = live.requests.get(effect) ?? requestOf(open.intent)
  if (!request) return 'needs-resend'
  const messages = request.kind === 'llm' ? live.conversations.extend(request.input) : undefined
  if (request.kind === 'llm' && !messages) return 'needs-resend'
  if (mayChange(live, request) && starting.effects.areChanging) return 'not-now'
  if (attempt === 'again') {
    const { replay, attempt: last, repeated = 0, allowed } = open.intent
    const body = {
      ...intentOf(request, replay, last + 1, Date.now()),
      ...{ repeated: repeated + 1, ...(allowed ? { allowed } : {}) },
    }
    await starting.append([{ kind: 'intent', body }])
  }
  perform(live, request, messages ?? [], starting)
  return 'started'
}

/** What only looks can't change the files. */
function mayChange({ tools }: Live, request: AwaitedRequest): boolean {
  if (request.kind !== 'tool') return false
  const spec = tools.get(request.input.name)?.spec
  return spec?.replay !== 'safe' || spec.access !== 'read'
}

type Messages = NonNullable<ReturnType<Live['conversations']['extend']>>

function perform(live: Live, request: AwaitedRequest, messages: Messages, starting: Starting): void {
  const { options, effects, lease } = starting
  const { id } = request
  const intent = live.state.open.get(id)?.intent
  switch (request.kind) {
    case 'llm': {
      const partial = new Partial(options.link, lease, id)
      const run = async (signal: AbortSignal): Promise<Performed> => {
        const filled = await live.images.filled(messages)
        const onText = (text: string, thought?: string): void => partial.update(text, thought)
        const specs = live.start.tools
        return performLlm(options.model, request.input, filled, specs, { signal, onText }).finally(() =>
          partial.end(),
        )
      }
      effects.start(id, 'llm', run, { not_before: intent?.retry ? Date.now() + backoffOf(intent) : 0 })
      return
    }
    case 'tool': {
      const tool = live.tools.get(request.input.name)
      const partial = new Partial(options.link, lease, id)
      const output = new NewestOutput((text) => partial.update(text))
      const printed = new HeadAndTail(PRINTED_CHARS)
      const isOpen = (effect: number): boolean => live.state.open.has(effect)
      const run = async (signal: AbortSignal): Promise<Performed> => {
        if (!tool) throw new BatonError('unknown-tool', `(${request.input.name} is not on this runner)`)
        const { root, inPlace = false, attempts, stay, ready } = await live.workspace
        await unlessAborted(signal, ready ?? Promise.resolve([]))
        const onOutput = (text: string): void => {
          output.add(text)
          printed.add(text)
        }
        const context = {
          ...{ root, inPlace, signal, readFiles: live.readFiles, onOutput },
          objectionTo: (other: ToolInput['input']) => objectionToWay(policyOf(live), request.input, other),
          ...(attempts && intent ? { attempt: attempts.of(id, intent.digest, isOpen) } : {}),
          ...(stay ? { stay } : {}),
        }
        return performTool(tool, request.input, live.images, context, live.news).finally(() => partial.end())
      }
      const after = async (): Promise<Draft[]> => {
        // Files that did not arrive were not touched here, and the newest are elsewhere.
        const workspace = await live.workspace.catch(() => undefined)
        const draft = workspace && (await live.checkpoints.store(workspace))
        return draft ? [draft] : []
      }
      effects.start(id, 'tool', run, {
        ...(mayChange(live, request) ? { after } : {}),
        printed: () => printed.toString().toWellFormed(),
      })
      return
    }
    case 'sleep': {
      const not_before = intent?.sleep?.until ?? 0
      effects.start(id, 'sleep', async () => ({ result: null }), { not_before })
      return
    }
    case 'prompt':
    case 'approve':
    // People answer, through the inbox.
  }
}
