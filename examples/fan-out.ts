/**
 * Several at once: three reviewers look at the same change, each in a conversation of their own, and a fourth one sums up. Plain
 * promises: whatever of them has its answer when the session moves is not asked again.
 *
 *     baton new --agent examples/fan-out.ts "Cache the list of users for an hour."
 */
import { conversation, emit, llm, prompt, textOf } from 'baton'

const REVIEWERS = ['correctness', 'security', 'simplicity']

async function ask(system: string, text: string): Promise<string> {
  const talk = conversation()
  talk.append({ role: 'user', content: [{ type: 'text', text }] })
  return textOf(await llm(talk, { system }))
}

export default async function main(): Promise<string> {
  const { text: change } = await prompt()
  const reviews = await Promise.all(
    REVIEWERS.map(async (subject) => {
      const review = await ask(`Review a change. Look at its ${subject} only, in one sentence.`, change)
      emit('review', { subject, review })
      return `${subject}: ${review}`
    }),
  )
  const summary = await ask('Sum up these reviews in one sentence.', reviews.join('\n'))
  emit('summary', summary)
  return summary
}
