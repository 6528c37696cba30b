/**
 * A plain loop: one file after the other, one question each. Every `.sync` call blocks right there, and the session may be
 * moved or parked while it does: the list, the counter and the lines so far are in the guest's memory.
 *
 *     baton new --agent examples/loop-sync.ts "src/*.txt"
 */
import { conversation, emit, llm, prompt, textOf, tool } from 'baton'

export default function main(): string[] {
  const { text: pattern } = prompt.sync()
  const files = tool.sync('glob', { pattern }).text.split('\n')
  const lines: string[] = []
  for (const path of files) {
    const talk = conversation()
    const question = `${path}:\n${tool.sync('read', { path }).text}`
    talk.append({ role: 'user', content: [{ type: 'text', text: question }] })
    const answer = llm.sync(talk, { system: 'Say in one line what this file is for.' })
    lines.push(`${path}: ${textOf(answer)}`)
    emit('note', { message: `${lines.length} of ${files.length}` })
  }
  emit('summary', lines)
  return lines
}
