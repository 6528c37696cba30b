import { describe, expect, test } from 'vitest'
import { Guest } from '../src/vm/guest.ts'
import { moved, outcome, program, start } from './vm-programs.ts'

const agent = (body: string): string => `import * as baton from 'baton'
const { approve, conversation, emit, llm, onStop, prompt, sleep, start, stopping, tool } = baton
export default async function main() { ${body} }`

describe('messages', () => {
  test('effects are numbered 1, 2, 3 and their outcomes come back, also out of order', async () => {
    const guest = new Guest(
      await program(
        agent(`
        const [a, b] = await Promise.all([tool('x', { n: 1 }), tool('y', {})])
        await sleep(5)
        return [a.text, b.text, start().mode]`),
      ),
    )
    const first = guest.deliver(start)
    expect(first).toMatchObject({
      state: 'quiescent',
      asked: [
        { id: 1, kind: 'tool' },
        { id: 2, kind: 'tool' },
      ],
    })
    guest.deliver(outcome(2, { text: 'two', is_error: false }))
    expect(guest.deliver(outcome(1, { text: 'one', is_error: false })).asked).toMatchObject([
      { id: 3, kind: 'sleep', input: { ms: 5 } },
    ])
    expect(guest.deliver(outcome(3, null))).toEqual({
      state: 'finished',
      asked: [],
      result: ['one', 'two', 'full'],
    })
  })

  test('F50: NUL and lone surrogates cross exactly, both ways', async () => {
    const guest = new Guest(
      await program(
        agent(`
        const { text } = await prompt()
        emit('units', [...Array(text.length)].map((_, i) => text.charCodeAt(i)))
        return text + '\\u0000\\udc00\\ud83d' `),
      ),
    )
    guest.deliver(start)
    const text = 'a\u0000b\ud800c\udfff😀é\u2028'
    const pause = guest.deliver(outcome(1, { text, command: 'c' }))
    expect(pause).toMatchObject({ state: 'finished', result: text + '\u0000\udc00\ud83d' })
    expect(pause.asked).toMatchObject([
      { input: { data: Array.from({ length: text.length }, (_, i) => text.charCodeAt(i)) } },
    ])
  })

  test('a failed effect rejects with its code, in both forms', async () => {
    const guest = new Guest(
      await program(
        agent(`
        const codes = []
        try { await tool('x', {}) } catch (error) { codes.push(error.code, error.message) }
        try { tool.sync('x', {}) } catch (error) { codes.push(error.code) }
        return codes`),
      ),
    )
    guest.deliver(start)
    const error = { code: 'interrupted', message: 'may have run' }
    expect(guest.deliver({ type: 'outcome', effect: 1, now: 0, error })).toMatchObject({
      state: 'blocked',
      on: 2,
    })
    expect(guest.deliver({ type: 'outcome', effect: 2, now: 0, error })).toMatchObject({
      result: ['interrupted', 'may have run', 'interrupted'],
    })
  })

  test('a conversation hands over only what is new; a resend hands it over whole and disturbs nothing', async () => {
    const options = await program(
      agent(`
      const talk = conversation('c')
      const say = (text) => talk.append({ role: 'user', content: [{ type: 'text', text }] })
      say('one'); await llm(talk, { system: 's' })
      say('two'); llm.sync(talk, { system: 's' })
      return talk.messages.length`),
    )
    const guest = new Guest(options)
    const [first] = guest.deliver(start).asked
    const blocked = guest.deliver(outcome(1, null))
    const [second] = blocked.asked
    expect(first).toMatchObject({ id: 1, input: { prior: 0, add: [{ content: [{ text: 'one' }] }] } })
    expect(second).toMatchObject({ id: 2, input: { prior: 1, add: [{ content: [{ text: 'two' }] }] } })
    if (first?.kind !== 'llm' || second?.kind !== 'llm') throw new Error('not llm')
    expect(second.input.follows).toBe(first.input.digest)
    const again = moved(options, guest).deliver({ type: 'resend', effect: 2 })
    expect(again).toMatchObject({ state: 'blocked', on: 2 })
    expect(again.asked).toMatchObject([
      { id: 2, kind: 'llm', input: { prior: 0, digest: second.input.digest, add: [{}, {}] } },
    ])
    expect(guest.deliver(outcome(2, null))).toMatchObject({ state: 'finished', result: 2 })
  })

  test('time moves only when a message brings it', async () => {
    const guest = new Guest(
      await program(
        agent(`
        const before = Date.now()
        for (let i = 0; i < 1e5; i++);
        const same = Date.now() === before && new Date().getTimezoneOffset() === 0
        await sleep(1)
        return [before, same, Date.now()]`),
      ),
    )
    guest.deliver(start)
    expect(guest.deliver(outcome(1, null))).toMatchObject({ result: [start.now, true, start.now + 1000] })
  })

  test('stop is seen by the agent', async () => {
    const guest = new Guest(
      await program(
        agent(`
        let heard = 0
        onStop(() => heard++)
        await prompt()
        const { requested } = stopping
        stopping.clear()
        return [heard, requested, stopping.requested]`),
      ),
    )
    guest.deliver(start)
    guest.deliver({ type: 'stop', now: 0 })
    expect(guest.deliver(outcome(1, { text: '', command: '' }))).toMatchObject({ result: [1, true, false] })
  })
})

describe('endings', () => {
  test('an uncaught error of main fails the guest and says what and where', async () => {
    const guest = new Guest(await program(agent(`await prompt(); throw new RangeError('no more')`)))
    guest.deliver(start)
    expect(guest.deliver(outcome(1, null))).toMatchObject({
      state: 'failed',
      error: { code: 'guest-failed', message: expect.stringMatching(/^RangeError: no more .*agent\.js/) },
    })
    expect(() => guest.deliver(outcome(1, null))).toThrow(/it is failed and can't take/)
  })

  test('F57: memory over the limit is an error of the guest, with a code of its own, and the host lives on', async () => {
    const options = {
      ...(await program(agent(`const kept = []; for (;;) kept.push('x'.repeat(1000) + kept.length)`))),
      memoryMax: 16 * 2 ** 20,
    }
    expect(new Guest(options).deliver(start)).toMatchObject({
      state: 'failed',
      error: { code: 'guest-memory' },
    })
  })

  test('an agent that throws while it is loaded is refused with its message', async () => {
    await expect(program(`throw new Error('not today'); export default () => 0`)).rejects.toMatchObject({
      code: 'agent-invalid',
      message: expect.stringContaining('not today'),
    })
  })

  test('a trap poisons the instance and leaves the last snapshot standing', async () => {
    const options = await program(agent(`const { text } = await prompt(); return text`))
    const guest = new Guest(options)
    guest.deliver(start)
    const { bytes } = guest.snapshot()
    // A wild pointer, as a bug of the engine might leave.
    const wild = { ...options.baseline, handles: { ...options.baseline.handles, deliver: 0x7fff_fff0 } }
    const broken = new Guest({ ...options, baseline: wild })
    broken.restore([bytes])
    const message = outcome(1, { text: 'hello', command: '' })
    expect(broken.deliver(message)).toMatchObject({ state: 'failed', error: { code: 'guest-trapped' } })
    expect(() => broken.snapshot()).toThrow(/it is failed and can't be saved/)
    expect(() => broken.deliver(message)).toThrow(/it is failed/)
    const again = new Guest(options)
    again.restore([bytes])
    expect(again.deliver(outcome(1, { text: 'hello', command: '' }))).toMatchObject({
      state: 'finished',
      result: 'hello',
    })
  })

  test('an unwound stack that does not fit its memory traps instead of overwriting anything', async () => {
    const options = await program(
      agent(`return [1].map(() => { let s = 0; for (let i = 0; i < 1e5; i++) s += i; return s })[0]`),
    )
    const roomy = new Guest(options)
    expect(roomy.deliver(start, { fuel: 2000 }).state).toBe('interrupted')
    const tight = new Guest({ ...options, stackMax: 64 })
    expect(tight.deliver(start, { fuel: 2000 })).toMatchObject({
      state: 'failed',
      error: { code: 'guest-trapped' },
    })
    expect(() => tight.run()).toThrow(/it is failed/)
    expect(() => tight.snapshot()).toThrow(/it is failed/)
  })
})

describe('states', async () => {
  const options = await program(
    agent(`
    for (let i = 0; i < 1e5; i++);
    tool.sync('x', {})
    await prompt()
    return Math.random()`),
  )

  test('illegal transitions throw and change nothing', () => {
    const guest = new Guest(options)
    expect(() => guest.run()).toThrow(/it is quiescent and can't be run/)
    expect(guest.deliver(start, { fuel: 1000 }).state).toBe('interrupted')
    expect(() => guest.deliver(outcome(1, null))).toThrow(
      /it is interrupted and can't take the message "outcome"/,
    )
    expect(() => guest.deliver({ type: 'stop', now: 0 })).toThrow(/it is interrupted/)
    expect(guest.run()).toMatchObject({ state: 'blocked', on: 1 })
    expect(() => guest.run()).toThrow(/it is blocked and can't be run; it waits for the outcome of effect 1/)
    expect(() => guest.deliver(outcome(2, null))).toThrow(/it waits for the outcome of effect 1/)
    expect(() => guest.deliver({ type: 'stop', now: 0 })).toThrow(/it is blocked/)
    expect(guest.deliver(outcome(1, { text: '' })).state).toBe('quiescent')
    expect(guest.deliver(outcome(2, null))).toMatchObject({ state: 'finished' })
    expect(() => guest.snapshot()).toThrow(/it is finished and can't be saved/)
  })

  test('F58: forks that are reseeded draw other numbers, wherever they were forked', () => {
    const results = new Set<unknown>()
    const finish = (guest: Guest): void => {
      if (guest.state.name === 'interrupted') guest.run()
      if (guest.state.name === 'blocked') guest.deliver(outcome(1, null))
      const end = guest.deliver(outcome(2, null))
      if (end.state !== 'finished') throw new Error(end.state)
      results.add(end.result)
    }
    const origin = new Guest(options)
    origin.deliver(start, { fuel: 1000 })
    const interrupted = moved(options, origin)
    expect(interrupted.deliver({ type: 'reseed', seed: '1'.repeat(64) })).toEqual({
      state: 'interrupted',
      asked: [],
    })
    finish(interrupted)
    origin.run()
    const blocked = moved(options, origin)
    expect(blocked.deliver({ type: 'reseed', seed: '23'.repeat(32) })).toEqual({
      state: 'blocked',
      on: 1,
      asked: [],
    })
    finish(blocked)
    const twin = moved(options, origin)
    finish(twin)
    finish(origin)
    expect(results.size).toBe(3)
  })

  test('F54: guests in one process share nothing', async () => {
    const other = await program(
      agent(`globalThis.mark = (globalThis.mark ?? 0) + 1; await prompt(); return globalThis.mark`),
    )
    const guests = [new Guest(other), new Guest(options), new Guest(other)]
    for (const guest of guests) guest.deliver(start)
    expect(guests.map((guest) => guest.state.name)).toEqual(['quiescent', 'blocked', 'quiescent'])
    expect(guests[2]!.deliver(outcome(1, null))).toMatchObject({ result: 1 })
    expect(guests[0]!.deliver(outcome(1, null))).toMatchObject({ result: 1 })
  })
})
