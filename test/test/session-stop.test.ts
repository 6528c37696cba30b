/** Stop, where it meets a crash, a failure or a guest that can not hear it. */
import { BatonError } from '@baton/shared/errors.ts'
import type { LlmResult } from '@baton/shared/guest.ts'
import type { Opened } from '@baton/shared/entries.ts'
import { ModelFailure } from '@baton/runner/model/model.ts'
import { expect, it } from 'vitest'
import { Loop } from '../src/loop.ts'
import { llm, prompt, said, tool } from '../src/script-asks.ts'
import type { Program } from '../src/script-harness.ts'
import { until } from '../src/until.ts'

const full = { agent: 'script', workspace: '/w', mode: 'full' } as const
const isStop = (entry: Opened): boolean => entry.kind === 'received' && entry.body.kind === 'stop'
const ended =
  (effect: number) =>
  (entries: Opened[]): boolean =>
    entries.some((entry) => entry.kind === 'outcome' && entry.body.effect === effect)
const outcome = (entries: Opened[], effect: number): unknown =>
  entries.flatMap((entry) =>
    entry.kind === 'outcome' && entry.body.effect === effect
      ? [entry.body.error?.code ?? entry.body.result]
      : [],
  )[0]
const isStored = (entries: Opened[]): boolean => entries.some(({ kind }) => kind === 'checkpoint')
const hangs = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)))

it('H10: what a person stopped is not begun again after a crash, whichever runner goes on', async () => {
  const program: Program = function* () {
    yield {}
    yield { ask: [tool(1, 'hang')] }
    yield { ask: [] }
    yield { ask: [prompt(3)] }
    return null
  }
  let calls = 0
  // Deaf to Stop, so that the runner dies before it can write an outcome.
  const run = (): Promise<string> => (++calls === 1 ? new Promise(() => undefined) : Promise.resolve('again'))
  await using loop = await Loop.open({ program, lease_ms: 1500, tools: { hang: { run, access: 'edit' } } })
  const { client } = loop
  const one = await loop.runner('one')
  const sid = await client.start({ prefer: one.id }, full)
  await until('it runs', async () => calls === 1)
  await client.untilEntries(sid, 'the files are stored', isStored)
  await client.command(sid, 'stop', {})
  await client.untilEntries(sid, 'Stop stands in the journal', (entries) => entries.some(isStop))
  one.runner.close()
  await loop.runner('two')
  const entries = await client.untilEntries(sid, 'the effect has ended', ended(1))
  expect(outcome(entries, 1)).toBe('stopped')
  expect(calls).toBe(1)
})

it('H10: a model call that fails just when Stop comes is not made again', async () => {
  const program: Program = function* () {
    yield {}
    yield { ask: [llm(1, said('hello'))] }
    for (let id = 2; ; id++) yield { ask: [prompt(id)] }
  }
  let calls = 0
  const busy = new ModelFailure('model-busy', 'Status 529')
  // What Stop cuts off fails as if the service had: the moment in which both come together, every time.
  const model = (_: unknown, { signal }: { signal: AbortSignal }): Promise<LlmResult> =>
    ++calls === 1
      ? new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(busy)))
      : Promise.reject(new Error('asked again after Stop'))
  await using loop = await Loop.open({ program, model })
  const { client } = loop
  const one = await loop.runner('one')
  const sid = await client.start({ prefer: one.id }, full)
  await until('the model is asked', async () => calls === 1)
  await client.command(sid, 'stop', {})
  const entries = await client.untilEntries(sid, 'the call has ended', ended(1))
  expect(calls).toBe(1)
  expect(entries.filter((entry) => entry.kind === 'intent' && entry.body.effect === 1)).toHaveLength(1)
})

it('H10: Stop ends what a blocked agent does, and its next turn is as any other', async () => {
  const program: Program = function* () {
    yield {}
    for (let id = 0; ;) {
      yield { ask: [prompt(++id)], blockOn: id }
      yield { ask: [tool(++id, 'work')], blockOn: id }
    }
  }
  let calls = 0
  const run = (_: unknown, signal: AbortSignal): Promise<string> =>
    ++calls === 1 ? hangs(signal) : Promise.resolve(`call ${calls}`)
  await using loop = await Loop.open({ program, tools: { work: { run } } })
  const { client } = loop
  const one = await loop.runner('one')
  const sid = await client.start({ prefer: one.id }, full)
  await client.command(sid, 'prompt', { text: 'first' })
  await until('it works', async () => calls === 1)
  await client.command(sid, 'stop', {})
  await client.untilEntries(sid, 'it is stopped', ended(2))
  await client.command(sid, 'prompt', { text: 'second' })
  const entries = await client.untilEntries(sid, 'it worked again', ended(4))
  expect([outcome(entries, 2), outcome(entries, 4)]).toEqual(['stopped', { text: 'call 2', is_error: false }])
})

it('H6: a prompt with a picture that nobody stored is told and dropped; the session goes on', async () => {
  const program: Program = function* () {
    yield {}
    for (let id = 1; ; id++) yield { ask: [prompt(id)] }
  }
  await using loop = await Loop.open({ program })
  const { client } = loop
  const one = await loop.runner('one')
  const sid = await client.start({ prefer: one.id }, full)
  const images = [{ blob: 'ab'.repeat(32), media_type: 'image/png' as const, width: 1, height: 1 }]
  await client.command(sid, 'prompt', { text: 'Look!', images })
  await client.command(sid, 'prompt', { text: 'Go on.' })
  const entries = await client.untilEntries(sid, 'the next one came through', ended(1))
  const received = entries.flatMap((entry) => (entry.kind === 'received' ? [entry.body] : []))
  expect(received.map(({ kind }) => kind)).toEqual(['start', 'unreadable', 'prompt'])
  expect(received[1]).toMatchObject({ why: expect.stringContaining(new BatonError('no-blob').message) })
})
