/**
 * The default agent: a person prompts, the model answers and calls tools until it has nothing more to do. The conversation lives in
 * guest memory and always satisfies the API's pairing rules, also after a stop or an error in the middle of a turn.
 */
import { conversation, EffectFailed, emit, llm, prompt, start, stopping, type Conversation } from 'baton'
import { performCall, unanswered, type Block } from './coder-calls.ts'
import { systemPrompt } from './coder-prompt.ts'

const titleChars = 60

export default async function main(): Promise<void> {
  const talk = conversation('main')
  for (let turn = 1; ; turn++) {
    const { text } = await prompt()
    if (turn === 1) emit('title', titleOf(text))
    emit('turn', { turn, state: 'start' })
    stopping.clear()
    addUser(talk, [{ type: 'text', text }])
    emit('turn', { turn, state: 'end', reason: await runTurn(talk) })
  }
}

/** Runs until the model is done, a person stops it, or it fails. Returns why it ended. */
async function runTurn(talk: Conversation): Promise<string> {
  try {
    for (;;) {
      const { content, stop_reason } = await ask(talk)
      if (content.length > 0) talk.append({ role: 'assistant', content })
      const calls = content.filter((block) => block.type === 'tool_use')
      if (calls.length === 0) return stop_reason
      const results: Block[] = []
      for (const call of calls) results.push(await performCall(call))
      talk.append({ role: 'user', content: results })
      if (stopping.requested) return 'stopped'
    }
  } catch (error) {
    if (!(error instanceof EffectFailed)) throw error
    if (error.code === 'stopped') return 'stopped'
    emit('error', { code: error.code, message: error.message })
    return 'error'
  }
}

function ask(talk: Conversation): ReturnType<typeof llm> {
  const { about, mode, tools, settings } = start()
  const { model, max_tokens } = settings
  return llm(talk, {
    system: systemPrompt(about, mode),
    tools: tools.map((tool) => tool.name),
    ...(typeof model === 'string' && { model }),
    ...(typeof max_tokens === 'number' && { max_tokens }),
  })
}

/** Appends what a person said. Two user messages in a row are allowed; calls without an answer are not. */
function addUser(talk: Conversation, content: Block[]): void {
  talk.append({ role: 'user', content: [...unanswered(talk.messages), ...content] })
}

function titleOf(text: string): string {
  const line = text.trim().split('\n')[0] ?? ''
  return line.length <= titleChars ? line : `${line.slice(0, titleChars - 1).trimEnd()}…`
}
