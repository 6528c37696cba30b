/** What a person may type as an answer to an effect, and what it becomes. Pure. */
import { expect, it } from 'vitest'
import { resultOf } from '../src/cli/guest-reply.ts'

const llm = { id: 1, kind: 'llm' } as const
const approve = { id: 2, kind: 'approve' } as const

it('a text is an answer, and so is JSON; what a guest looks at besides is added', () => {
  const said = resultOf(llm, 'hello')
  expect(said).toMatchObject({
    content: [{ type: 'text', text: 'hello' }],
    stop_reason: 'end_turn',
    model: 'by-hand',
  })
  expect(resultOf(llm, '{"content":[{"type":"text","text":"hello"}]}')).toEqual(said)
  expect(resultOf(llm, '"{a}"')).toMatchObject({ content: [{ text: '{a}' }] })
  expect(resultOf(llm, '[1]')).toMatchObject({ content: [{ text: '[1]' }] })
  expect(resultOf({ id: 3, kind: 'prompt' }, 'go')).toEqual({ text: 'go', command: 'reply-3' })
  expect(resultOf({ id: 3, kind: 'tool' }, '{"text":"x","is_error":true}')).toEqual({
    text: 'x',
    is_error: true,
  })
  expect(resultOf({ id: 3, kind: 'sleep' }, '')).toBeNull()
})

it('V2: JSON that is damaged, or no answer to that effect, is refused rather than given to the guest', () => {
  expect(() => resultOf(llm, '{"content":')).toThrow(/begins like JSON and is none: .*JSON string/)
  expect(() => resultOf(llm, '{"text":"x"}')).toThrow(/VALUE is no answer to effect 1, llm: .*content/)
  expect(() => resultOf({ id: 3, kind: 'tool' }, '{"output":1}')).toThrow(
    /no answer to effect 3, tool: .*text/,
  )
  expect(() => resultOf(approve, '{"approved":"yes"}')).toThrow(/no answer to effect 2/)
})

it('V2: yes and no are answers to a question, nothing else is', () => {
  expect(resultOf(approve, 'Yes')).toEqual({ approved: true, device: 'by-hand' })
  expect(resultOf(approve, '0')).toEqual({ approved: false, device: 'by-hand' })
  expect(() => resultOf(approve, 'sure')).toThrow(/yes or no for effect 2, not "sure"/)
})
