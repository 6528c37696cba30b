/** A guest that never yields: two million iterations, then one call of the model that blocks right where it stands. */
import { conversation, emit, llm } from 'baton'

export default function main(): string {
  let sum = 0
  for (let i = 1; i <= 2_000_000; i++) sum = (sum + i * i) % 1_000_003
  const talk = conversation()
  talk.append({ role: 'user', content: [{ type: 'text', text: `Say something about the number ${sum}.` }] })
  const { content } = llm.sync(talk, { system: 'Answer in one short sentence.' })
  const text = content.map((block) => (typeof block['text'] === 'string' ? block['text'] : '')).join('')
  emit('done', { sum, text })
  return text
}
