/** The calls of one answer: together, alone, asked for, refused. */
import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import main from '../src/agents/coder.ts'
import { say, Session, use } from './session.ts'

const fine = (text: string) => ({ text, is_error: false })

describe('several calls', () => {
  test('A2: what only looks runs together; what changes something runs alone, in order', async () => {
    const session = new Session(main)
    await session.prompt('go')
    await session.model([
      ...[use('a', 'read'), use('b', 'grep'), use('c', 'edit'), use('d', 'bash'), use('e', 'read')],
    ])
    const read = await session.next('tool')
    const grep = await session.next('tool')
    expect(await session.waiting()).toEqual([])
    session.result(grep.id, fine('of b'))
    expect(await session.waiting()).toEqual([])
    session.result(read.id, fine('of a'))
    expect((await session.answer('tool', fine('of c'))).input.call).toBe('c')
    expect((await session.answer('tool', fine('of d'))).input.call).toBe('d')
    expect((await session.answer('tool', fine('of e'))).input.call).toBe('e')
    await session.model([say('ok')])
    expect(session.last.map((block) => block['content'])).toEqual(['of a', 'of b', 'of c', 'of d', 'of e'])
  })

  test('F35: all decisions are asked for at once, and may come in any order', async () => {
    const session = new Session(main, 'ask')
    await session.prompt('go')
    await session.model([use('t1', 'bash'), use('t2', 'edit'), use('t3', 'bash')])
    expect(await session.waiting()).toEqual(['approve bash', 'approve edit', 'approve bash'])
    const [one, two, three] = [
      await session.next('approve'),
      await session.next('approve'),
      await session.next('approve'),
    ]
    session.result(three.id, { approved: true, device: 'd' })
    session.result(two.id, { approved: false, note: 'not there', device: 'd' })
    expect(await session.waiting()).toEqual([])
    session.result(one.id, { approved: true, device: 'd' })
    expect((await session.answer('tool', fine('one'))).input).toMatchObject({ call: 't1', approval: one.id })
    expect((await session.answer('tool', fine('three'))).input).toMatchObject({
      ...{ call: 't3', approval: three.id },
    })
    await session.model([say('ok')])
    expect(session.last).toMatchObject([
      { content: 'one' },
      { content: 'The user did not allow this call. The user says: not there', is_error: true },
      { content: 'three' },
    ])
  })
})

describe('a call', () => {
  test('I10: is approved by its digest first where the mode asks, and carries the approval', async () => {
    const session = new Session(main, 'ask')
    await session.prompt('go')
    await session.model([use('t1', 'read'), use('t2', 'bash')])
    const asked = await session.next('approve')
    const digest = createHash('sha256').update('["bash",{"id":"t2"}]').digest('hex')
    expect(asked).toMatchObject({ input: { name: 'bash', input: { id: 't2' }, digest } })
    await session.answer('tool', fine('one'))
    session.result(asked.id, { approved: true, device: 'd' })
    expect(await session.answer('tool', fine('two'))).toMatchObject({ input: { approval: asked.id } })
  })

  test('that a rule asks for is asked for after the runner has refused it, once', async () => {
    const session = new Session(main, 'full')
    await session.prompt('go')
    await session.model([use('t1', 'bash')])
    await session.fail('tool', 'not-approved')
    const { id } = await session.answer('approve', { approved: true, device: 'd' })
    expect((await session.next('tool')).input.approval).toBe(id)
    session.error(id + 1, 'not-approved')
    await session.model([say('ok')])
    expect(session.last).toMatchObject([{ content: 'not-approved: words of not-approved', is_error: true }])
  })

  test('that a rule forbids is told to the model; nobody was asked', async () => {
    const session = new Session(main, 'ask')
    await session.prompt('go')
    await session.model([use('t1', 'bash'), use('t2', 'read')])
    await session.answer('approve', { approved: false, note: 'A rule forbids this.' })
    await session.fail('tool', 'not-allowed')
    await session.model([say('ok')])
    expect(session.last).toMatchObject([
      { content: 'not-allowed: A rule forbids this.', is_error: true },
      { content: 'not-allowed: words of not-allowed', is_error: true },
    ])
  })

  test('A3: a change of the mode counts from the next call', async () => {
    const session = new Session(main, 'ask')
    await session.prompt('go')
    await session.model([use('t1', 'bash')])
    session.mode('edit')
    await session.answer('approve', { approved: true, device: 'd' })
    await session.answer('tool', fine('one'))
    await session.model([use('t2', 'edit'), use('t3', 'bash')])
    expect(await session.waiting()).toEqual(['approve bash', 'tool edit'])
  })

  test('of an unknown tool, or with an input that is none, is answered with an error and the turn goes on', async () => {
    const session = new Session(main)
    await session.prompt('go')
    await session.model([use('t1', 'fly'), use('t2', 'bash', {}), use('t3', 'read')], {
      invalid_input: { t2: '{"command": rm' },
    })
    expect((await session.answer('tool', fine('three'))).input.call).toBe('t3')
    await session.model([use('t4', 'bash', {})], { stop_reason: 'max_tokens', invalid_input: { t4: '{"c' } })
    expect(session.last).toMatchObject([
      { content: expect.stringMatching(/no tool "fly". There are: read, grep, edit, bash/), is_error: true },
      { content: expect.stringContaining('{"command": rm'), is_error: true },
      { content: 'three' },
    ])
    await session.model([say('ok')])
    expect(session.last).toMatchObject([
      { content: expect.stringContaining('smaller pieces'), is_error: true },
    ])
    // A person sees what the answers went to.
    expect(session.emitted('note').map(({ message }) => message)).toEqual([
      expect.stringMatching(/: There is no tool/),
      expect.stringMatching(/^bash: The input is no JSON object/),
      expect.stringMatching(/^bash: The call was cut off/),
    ])
  })

  test('I5: that may have run is told to the model as such', async () => {
    const session = new Session(main)
    await session.prompt('go')
    await session.model([use('t1', 'bash')])
    await session.fail('tool', 'interrupted')
    await session.model([say('ok')])
    expect(session.last).toMatchObject([{ content: 'interrupted, may have run', is_error: true }])
  })
})
