/**
 * Two answers to one question, from the same mind: the agent thinks about the question once, then waits to be told how to answer.
 * There it is forked. Each of the two is told something else, and one of them compares.
 *
 *     baton new --agent examples/fork-compare.ts "How should we store sessions?"
 *     baton fork SESSION "Answer for a beginner."      # prints the id of the fork
 *     baton prompt SESSION "Answer for an expert."
 *     baton docs FORK answer                           # what the fork said
 *     baton prompt SESSION "Compare with: …"
 *
 * An agent can't fork itself: whoever forks pays for two, so that is a person's decision.
 */
import { conversation, document, llm, prompt, textOf } from 'baton'

const system = 'Think before you answer, and answer in one sentence.'

export default async function main(): Promise<void> {
  const talk = conversation()
  const answer = document('answer', { schema: { type: 'string' }, initial: '' })
  for (;;) {
    const { text } = await prompt()
    talk.append({ role: 'user', content: [{ type: 'text', text }] })
    const { content } = await llm(talk, { system })
    talk.append({ role: 'assistant', content })
    answer.set(textOf({ content }))
  }
}
