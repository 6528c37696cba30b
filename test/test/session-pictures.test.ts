/** Pictures, from a prompt and from a tool. */
import { describe, expect, it } from 'vitest'
import type { Message } from '@baton/shared/guest.ts'
import { sessionKey } from '@baton/shared/keys.ts'
import { Loop } from '../src/loop.ts'
import { noted } from '../src/looks.ts'
import { answer, emit, llm, prompt, resultOf, tool } from '../src/script-asks.ts'
import type { Program } from '../src/script-harness.ts'

describe('pictures', () => {
  it('I9: travel as sealed blobs: from a prompt and from a tool, into the request, never into the journal', async () => {
    const bytes = new Uint8Array([137, 80, 78, 71, 1, 2, 3])
    const base64 = Buffer.from(bytes).toString('base64')
    const seen: Message[][] = []
    const program: Program = function* () {
      yield {}
      const prompted = yield { ask: [prompt(1)] }
      const shown = yield { ask: [tool(2, 'look')] }
      const blocks = [prompted, shown].flatMap((message) => {
        const result = resultOf(message) as { images: { blob: string; media_type: string }[] }
        return result.images.map((image) => ({ type: 'image', source: { type: 'blob', ...image } }))
      })
      const [first = { type: 'text' }, second = { type: 'text' }] = blocks
      const nested = { type: 'tool_result', tool_use_id: 't', content: [second] }
      yield { ask: [llm(3, { role: 'user', content: [first, nested] })] }
      yield { ask: [emit(4, 'done'), prompt(5)] }
      return null
    }
    await using loop = await Loop.open({
      program,
      tools: {
        look: {
          run: async () => ({
            text: 'a picture',
            is_error: false,
            images: [{ media_type: 'image/png', bytes }],
          }),
        },
      },
      model: async ({ messages }) => {
        seen.push(messages)
        return answer('nice')
      },
    })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    const key = sessionKey(loop.account, sid)
    const blob = await loop.client.link.blobs.put(sid, key, bytes)
    await loop.client.command(sid, 'prompt', { text: '', images: [{ blob, media_type: 'image/png' }] })
    const entries = await loop.client.untilEntries(sid, 'all is told', noted())
    const source = { type: 'base64', media_type: 'image/png', data: base64 }
    expect(seen).toEqual([
      [
        {
          role: 'user',
          content: [
            { type: 'image', source },
            { type: 'tool_result', tool_use_id: 't', content: [{ type: 'image', source }] },
          ],
        },
      ],
    ])
    expect(JSON.stringify(entries)).not.toContain(base64)
  })
})
