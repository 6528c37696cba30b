/**
 * The tool calls of one answer. What only looks runs together; what changes something runs alone, in the model's order. Decisions of
 * a person are asked for at once, so that all of them show (F35) and can be given in any order.
 */
import {
  approve,
  EffectFailed,
  emit,
  start,
  stopping,
  tool,
  type Access,
  type Decision,
  type Json,
  type LlmResult,
} from 'baton'
import { resultOf, stringOf, type Block } from './coder-blocks.ts'
import { explain } from './coder-errors.ts'
import { PLAN_TOOL, type OwnTools } from './coder-tools.ts'

const NAME_CHARS = 60

/**
 * Performs the `tool_use` blocks of an answer; gives a `tool_result` for each, in their order. Never rejects for a failed, refused or
 * stopped call.
 */
export async function performCalls(
  calls: readonly Block[],
  { invalid_input = {}, stop_reason }: Pick<LlmResult, 'invalid_input' | 'stop_reason'>,
  own: OwnTools,
): Promise<Block[]> {
  const jobs = calls.map((call) => {
    const invalid = invalid_input[stringOf(call['id'])]
    return invalid === undefined
      ? jobOf(call, own)
      : refused(call, 'bad-input', invalidWords(invalid, stop_reason))
  })
  const results: Block[] = []
  let looking: Promise<unknown>[] = []
  for (const [index, job] of jobs.entries()) {
    const run = async (): Promise<void> => void (results[index] = await perform(job))
    if (job.looks) {
      looking.push(run())
      continue
    }
    await Promise.all(looking)
    looking = []
    await run()
  }
  await Promise.all(looking)
  return results
}

interface Job {
  call: Block
  /** It may run beside others that only look. */
  looks: boolean
  run: () => Promise<Block>
}

async function perform({ call, run }: Job): Promise<Block> {
  if (stopping.requested) return resultOf(call, 'Not run: stopped by the user.', true)
  try {
    return await run()
  } catch (error) {
    if (!(error instanceof EffectFailed)) throw error
    return resultOf(call, explain(error), true)
  }
}

/** A call that the runner never hears of. A person sees it, too: it costs an answer. */
const refused = (call: Block, code: string, words: string): Job => ({
  call,
  looks: true,
  run: async () => {
    emit('note', { message: `${stringOf(call['name']).slice(0, NAME_CHARS)}: ${words}` })
    return resultOf(call, `${code}: ${words}`, true)
  },
})

function invalidWords(came: string, stop_reason: string): string {
  return stop_reason === 'max_tokens'
    ? 'The call was cut off by the limit of tokens and was not run. Do it in smaller pieces.'
    : `The input is no JSON object; the call was not run. It begins with: ${came}`
}

function jobOf(call: Block, own: OwnTools): Job {
  const name = stringOf(call['name'])
  const input = (call['input'] ?? {}) as { [key: string]: Json }
  const { tools, mode } = start()
  if (name === PLAN_TOOL && mode !== 'plan') {
    return refused(
      call,
      'not-now',
      'The session is not in plan mode. Do the work: nobody has to approve a plan.',
    )
  }
  if (own.has(name)) {
    const run = async (): Promise<Block> => {
      const { text, is_error } = await own.perform(name, input)
      return resultOf(call, text, is_error)
    }
    return { call, looks: false, run }
  }
  const spec = tools.find((known) => known.name === name)
  if (!spec) {
    const names = tools.map((known) => known.name).join(', ')
    return refused(call, 'unknown-tool', `There is no tool ${JSON.stringify(name)}. There are: ${names}`)
  }
  const decision = isAsked(spec.access) ? approve(name, input) : undefined
  // Its turn may come later than its failure.
  decision?.catch(() => undefined)
  return {
    call,
    looks: spec.access === 'read',
    run: async () => use(call, name, input, await decision),
  }
}

/** Does the mode ask a person for it? Rules may say otherwise: the runner knows, and answers at once or refuses the call. */
function isAsked(access: Access): boolean {
  const { mode } = start()
  return access !== 'read' && (mode === 'ask' || (mode === 'edit' && access === 'run'))
}

async function use(
  call: Block,
  name: string,
  input: { [key: string]: Json },
  decision: Decision | undefined,
): Promise<Block> {
  if (decision?.approved === false) return resultOf(call, denied(decision), true)
  try {
    const { text, is_error, images } = await tool(name, input, {
      call: stringOf(call['id']),
      ...(decision !== undefined && { approval: decision.effect }),
    })
    return resultOf(call, text, is_error, images)
  } catch (error) {
    // A rule asks where the mode does not, or the mode has changed.
    const mayAsk = error instanceof EffectFailed && error.code === 'not-approved' && decision === undefined
    if (!mayAsk || stopping.requested) throw error
    return use(call, name, input, await approve(name, input))
  }
}

function denied({ note, device }: Decision): string {
  if (device === undefined) return `not-allowed: ${note ?? 'A rule forbids this call.'}`
  return `The user did not allow this call.${note === undefined ? '' : ` The user says: ${note}`}`
}
