/** Asks the model twelve times, and computes a while between. */
import { conversation, emit, llm, prompt } from 'baton'

export default async function main(): Promise<void> {
  const talk = conversation()
  for (let step = 1; step <= 12; step++) {
    let sum = 0
    for (let i = 0; i < 150_000; i++) sum = (sum + i * step) % 65_521
    talk.append({ role: 'user', content: [{ type: 'text', text: `${step}: ${sum}` }] })
    const { content } = await llm(talk, { system: '' })
    talk.append({ role: 'assistant', content })
    emit('step', { step, sum })
  }
  await prompt()
}
