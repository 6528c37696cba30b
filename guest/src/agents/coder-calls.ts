/** One tool call of the model: approval where the mode asks for it, then the tool, then the block that answers it. */
import { approve, EffectFailed, start, stopping, tool, type Decision, type Json, type Message } from 'baton'

export type Block = Message['content'][number]

/** Performs a `tool_use` block and returns its `tool_result`. Never throws for a failed, refused or stopped call. */
export async function performCall(call: Block): Promise<Block> {
  const name = textOf(call['name'])
  const input = (call['input'] ?? {}) as { [key: string]: Json }
  if (stopping.requested) return answer(call, 'Not run: stopped by the user.', true)
  try {
    const approval = await approvalFor(name, input)
    if (approval !== undefined && !approval.approved) {
      const note = approval.note === undefined ? '' : ` The user says: ${approval.note}`
      return answer(call, `The user did not allow this call.${note}`, true)
    }
    const { text, is_error } = await tool(name, input, {
      call: textOf(call['id']),
      ...(approval !== undefined && { approval: approval.effect }),
    })
    return answer(call, text, is_error)
  } catch (error) {
    if (!(error instanceof EffectFailed)) throw error
    return answer(call, explain(error), true)
  }
}

/** The decision of a person, or undefined when the call needs none. */
async function approvalFor(name: string, input: { [key: string]: Json }): Promise<Decision | undefined> {
  const { mode, tools } = start()
  const access = tools.find((spec) => spec.name === name)?.access ?? 'read'
  const asks = access !== 'read' && (mode === 'ask' || (mode === 'edit' && access === 'run'))
  return asks ? approve(name, input) : undefined
}

function explain({ code, message }: EffectFailed): string {
  if (code === 'stopped') return 'Stopped by the user; it may have run in part.'
  if (code === 'interrupted') return 'interrupted, may have run'
  return `${code}: ${message}`
}

const textOf = (value: Json | undefined): string => (typeof value === 'string' ? value : '')

function answer(call: Block, text: string, isError: boolean): Block {
  return {
    type: 'tool_result',
    tool_use_id: textOf(call['id']),
    content: text === '' ? '(no output)' : text,
    ...(isError && { is_error: true }),
  }
}

/** Answers for calls at the end of a conversation that never got one. */
export function unanswered(messages: readonly Message[]): Block[] {
  const last = messages.at(-1)
  if (last?.role !== 'assistant') return []
  const calls = last.content.filter((block) => block.type === 'tool_use')
  return calls.map((call) => answer(call, 'Not run: the turn ended before.', true))
}
