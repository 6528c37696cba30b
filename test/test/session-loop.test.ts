/** The session loop: what is written when, and what a successor makes of it. */
import { describe, expect, it } from 'vitest'
import { callDigest } from '@baton/shared/digest.ts'
import type { Opened } from '@baton/shared/entries.ts'
import type { Json } from '@baton/shared/guest.ts'
import { transcriptOf } from '@baton/shared/transcript.ts'
import { packOf } from '@baton/runner/workspace/pack-file.ts'
import type { Workspace } from '@baton/runner/workspace/workspace.ts'
import { Loop } from '../src/loop.ts'
import { approve, emit, prompt, resultOf, tool } from '../src/script-asks.ts'
import type { Program } from '../src/script-harness.ts'
import { until } from '../src/until.ts'

const outcomes = (entries: Opened[]): Opened[] => entries.filter((entry) => entry.kind === 'outcome')
/** The runner's own events aside. */
const kinds = (entries: Opened[]): string[] =>
  entries.map((entry) => (entry.kind === 'event' && entry.body.effect === undefined ? 'runner' : entry.kind))
const has =
  (kind: Opened['kind'], n = 1) =>
  (entries: Opened[]) =>
    kinds(entries).filter((k) => k === kind).length >= n

/** A gate that a test opens. */
function gate(): { opened: Promise<void>; open: () => void } {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { opened, open }
}

/** Asks one tool and tells what came. */
const oneTool = (name: string): Program =>
  function* () {
    yield {}
    const message = yield { ask: [tool(1, name)] }
    yield { ask: [emit(2, resultOf(message)), prompt(3)] }
    return null
  }

describe('the order of things', () => {
  it('I3: intent before the effect starts, outcome after it ended, and the guest sees only what is durable', async () => {
    const seen: string[][] = []
    const loop = await Loop.open({
      program: oneTool('look'),
      tools: {
        look: {
          run: async () => {
            seen.push(kinds(await loop.client.entries(sid)))
            return 'seen'
          },
        },
      },
    })
    await using _ = loop
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    const entries = await loop.client.untilEntries(sid, 'the prompt is asked for', has('intent', 2))
    expect(seen).toHaveLength(1)
    expect(seen[0]).toContain('intent')
    expect(seen[0]).not.toContain('outcome')
    expect(kinds(entries).indexOf('outcome')).toBeLessThan(kinds(entries).indexOf('event'))
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_entry, i) => i + 1))
  })

  it('H1: a prompt waits in the inbox until the guest asks for one, then is consumed with its outcome', async () => {
    const { opened, open } = gate()
    const program: Program = function* () {
      yield {}
      yield { ask: [tool(1, 'wait')] }
      const message = yield { ask: [prompt(2)] }
      yield { ask: [emit(3, resultOf(message)), prompt(4)] }
      return null
    }
    await using loop = await Loop.open({ program, tools: { wait: { run: () => opened.then(() => 'done') } } })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    await loop.client.untilEntries(sid, 'the tool runs', has('intent'))
    const command = await loop.client.command(sid, 'prompt', { text: 'hello' })
    expect((await loop.client.info(sid)).pending).toBe(1)
    open()
    const entries = await loop.client.untilEntries(sid, 'the prompt was told', has('event'))
    expect(entries).toContainEqual(
      expect.objectContaining({
        kind: 'event',
        body: { effect: 3, type: 'note', data: { text: 'hello', command } },
      }),
    )
    expect((await loop.client.info(sid)).pending).toBe(0)
  })
})

it('H1: more than fits into one append is written whole and in order', async () => {
  const ids = Array.from({ length: 150 }, (_, i) => i + 1)
  const program: Program = function* () {
    yield {}
    yield { ask: [...ids.map((id) => emit(id, id === 75 ? 'x'.repeat(100_000) : id)), prompt(151)] }
    return null
  }
  await using loop = await Loop.open({ program })
  const { id } = await loop.runner('one')
  const sid = await loop.start(id)
  const entries = await loop.client.untilEntries(sid, 'it waits for a prompt', has('intent'))
  const told = entries.flatMap((entry) => (entry.kind === 'event' ? [entry.body.effect ?? 0] : []))
  expect(told.filter((effect) => effect > 0)).toEqual(ids)
})

describe('approvals', () => {
  const program: Program = function* () {
    yield {}
    yield { ask: [approve(1, 'bash', { command: 'ls' })] }
    const first = yield { ask: [tool(2, 'bash', { command: 'ls' }, 1)] }
    const again = yield { ask: [tool(3, 'bash', { command: 'ls' }, 1)] }
    const other = yield { ask: [tool(4, 'bash', { command: 'rm' }, 1)] }
    yield { ask: [emit(5, [resultOf(first), resultOf(again), resultOf(other)]), prompt(6)] }
    return null
  }

  it('H7: an approval serves one call, once; the runner enforces it (I10)', async () => {
    const ran: Json[] = []
    const run = async (input: Record<string, Json>): Promise<string> => {
      ran.push(input)
      return 'ok'
    }
    await using loop = await Loop.open({ program, tools: { bash: { access: 'run', replay: 'never', run } } })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    await loop.client.untilEntries(sid, 'an approval is asked for', has('intent'))
    await loop.client.decide(sid, 1, callDigest('bash', { command: 'ls' }))
    const entries = await loop.client.untilEntries(sid, 'all three calls are told', has('event'))
    expect(ran).toEqual([{ command: 'ls' }])
    expect(entries).toContainEqual(
      expect.objectContaining({
        body: {
          effect: 5,
          type: 'note',
          data: [{ text: 'ok', is_error: false }, { error: 'not-approved' }, { error: 'not-approved' }],
        },
      }),
    )
  })

  it('H8: a decision counts once (F32); a second one, a foreign one and one for another call are told to be late', async () => {
    await using loop = await Loop.open({ program, tools: { bash: { access: 'run', run: async () => 'ok' } } })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    const digest = callDigest('bash', { command: 'ls' })
    await loop.client.untilEntries(sid, 'an approval is asked for', has('intent'))
    await loop.client.decide(sid, 1, callDigest('bash', { command: 'rm -rf /' }))
    await loop.client.command(sid, 'decision', {
      effect: 1,
      digest,
      approved: true,
      device: loop.client.device.id,
      certificate: loop.client.device.certificate,
      signature: 'forged',
    })
    await loop.client.decide(sid, 1, digest, false)
    await loop.client.decide(sid, 1, digest, true)
    const entries = await loop.client.untilEntries(sid, 'four decisions are consumed', has('received', 5))
    const late = entries.flatMap((entry) =>
      entry.kind === 'received' && entry.body.kind === 'decision' ? [entry.body.late] : [],
    )
    expect(late).toEqual([
      'The call has changed since.',
      'The signature does not fit.',
      undefined,
      'It was decided already.',
    ])
    const decided = outcomes(entries).filter((entry) => entry.kind === 'outcome' && entry.body.effect === 1)
    expect(decided).toHaveLength(1)
    expect(decided[0]).toMatchObject({ body: { result: { approved: false } } })
  })
})

describe('another runner takes over', () => {
  it('I5: a never effect that was begun is not begun again; the guest is told that it may have run', async () => {
    let runs = 0
    const run = (): Promise<string> => {
      runs++
      return new Promise(() => undefined)
    }
    await using loop = await Loop.open({
      program: oneTool('fire'),
      tools: { fire: { replay: 'never', run } },
      lease_ms: 600,
    })
    const one = await loop.runner('one')
    const sid = await loop.start(one.id)
    await loop.client.untilEntries(
      sid,
      'the tool runs and the workspace is stored',
      (entries) => has('intent')(entries) && has('checkpoint')(entries),
    )
    await loop.runner('two')
    one.runner.close()
    const entries = await loop.client.untilEntries(sid, 'the guest was told', has('event'))
    expect(runs).toBe(1)
    expect(entries).toContainEqual(
      expect.objectContaining({ body: { effect: 2, type: 'note', data: { error: 'interrupted' } } }),
    )
    expect(outcomes(entries)).toHaveLength(1)
  })

  it('H5: a safe effect is begun again (F18), its attempts are counted in the journal, and one outcome lands (I4)', async () => {
    let runs = 0
    const run = (): Promise<string> =>
      ++runs === 1 ? new Promise(() => undefined) : Promise.resolve('second')
    await using loop = await Loop.open({ program: oneTool('look'), tools: { look: { run } }, lease_ms: 600 })
    const one = await loop.runner('one')
    const sid = await loop.start(one.id)
    await loop.client.untilEntries(
      sid,
      'the tool runs',
      (entries) => has('intent')(entries) && has('checkpoint')(entries),
    )
    await loop.runner('two')
    one.runner.close()
    const entries = await loop.client.untilEntries(sid, 'the guest was told', has('event'))
    expect(runs).toBe(2)
    const attempts = entries.flatMap((entry) =>
      entry.kind === 'intent' && entry.body.effect === 1 ? [entry.body.attempt] : [],
    )
    expect(attempts).toEqual([1, 2])
    expect(outcomes(entries)).toHaveLength(1)
  })

  it('I8: a move while a decision is pending passes the lease without any effect, and goes on there', async () => {
    let calls = 0
    const program: Program = function* () {
      yield {}
      yield { ask: [approve(1, 'bash')] }
      const message = yield { ask: [tool(2, 'bash', {}, 1)] }
      yield { ask: [emit(3, resultOf(message)), prompt(4)] }
      return null
    }
    const run = async (): Promise<string> => `call ${++calls}`
    await using loop = await Loop.open({ program, tools: { bash: { access: 'run', replay: 'never', run } } })
    const [one, two] = [await loop.runner('one'), await loop.runner('two')]
    const sid = await loop.start(one.id)
    await loop.client.untilEntries(
      sid,
      'the workspace is stored',
      (entries) => has('intent')(entries) && has('checkpoint')(entries),
    )
    await loop.client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
    await loop.client.untilEntries(sid, 'two has claimed', has('lease', 3))
    expect((await loop.client.info(sid)).holder).toBe(two.id)
    await loop.client.decide(sid, 1, callDigest('bash', {}))
    const entries = await loop.client.untilEntries(sid, 'the call is told', has('event'))
    expect(calls).toBe(1)
    expect(transcriptOf(entries)).toEqual([
      { t: 'approve', effect: 1, name: 'bash', input: {}, result: { approved: true } },
      { t: 'tool', effect: 2, name: 'bash', input: {}, result: { text: 'call 1', is_error: false } },
      { t: 'event', type: 'note', data: { text: 'call 1', is_error: false } },
    ])
  })

  it('F48: a session that parked, with no runner left, goes on from durable state alone', async () => {
    const program: Program = function* () {
      yield {}
      const message = yield { ask: [prompt(1)] }
      yield { ask: [emit(2, resultOf(message)), prompt(3)] }
      return null
    }
    await using loop = await Loop.open({ program, park_after_ms: 1 })
    const one = await loop.runner('one')
    const sid = await loop.start(one.id)
    await loop.client.untilEntries(
      sid,
      'it parked',
      (entries) => has('lease', 2)(entries) && has('checkpoint')(entries),
    )
    one.runner.close()
    await loop.client.command(sid, 'prompt', { text: 'wake up' })
    await loop.runner('two')
    const entries = await loop.client.untilEntries(sid, 'the prompt was told', has('event'))
    expect(entries).toContainEqual(
      expect.objectContaining({
        kind: 'event',
        body: { effect: 2, type: 'note', data: expect.objectContaining({ text: 'wake up' }) },
      }),
    )
  })

  it('H4: SIGTERM lets a session go with a running tool cut off, and the next runner decides by its policy', async () => {
    let runs = 0
    const run = (_: unknown, signal: AbortSignal): Promise<string> =>
      ++runs > 1
        ? Promise.resolve('again')
        : new Promise((_resolve, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    await using loop = await Loop.open({ program: oneTool('look'), tools: { look: { run } } })
    const [one] = [await loop.runner('one'), await loop.runner('two')]
    const sid = await loop.start(one.id)
    await loop.client.untilEntries(
      sid,
      'the tool runs',
      (entries) => has('intent')(entries) && has('checkpoint')(entries),
    )
    await one.runner.drain(0)
    const entries = await loop.client.untilEntries(sid, 'the guest was told', has('event'))
    expect(runs).toBe(2)
    expect(entries).toContainEqual(
      expect.objectContaining({
        body: { effect: 2, type: 'note', data: { text: 'again', is_error: false } },
      }),
    )
  })
})

describe('files', () => {
  it('H9: of calls that the agent asks for at once, those that may change files run one after the other', async () => {
    const program: Program = function* () {
      yield {}
      yield { ask: [tool(1, 'write'), tool(2, 'look'), tool(3, 'write')] }
      for (;;) yield {}
    }
    const open: (() => void)[] = []
    const begun: string[] = []
    const held = (name: string) => (): Promise<string> => {
      begun.push(name)
      return new Promise((resolve) => open.push(() => resolve(name)))
    }
    const tools = {
      write: { access: 'edit' as const, run: held('write') },
      look: { run: held('look') },
    }
    await using loop = await Loop.open({ program, tools })
    const { client } = loop
    const { id } = await loop.runner('one')
    const sid = await client.start({ prefer: id }, { agent: 'script', workspace: '/w', mode: 'full' })
    await until('what may run side by side does', async () => begun.length === 2)
    expect(begun).toEqual(['write', 'look'])
    open[1]?.()
    await client.untilEntries(sid, 'the look has ended', (entries) => outcomes(entries).length === 1)
    expect(begun).toHaveLength(2)
    open[0]?.()
    await until('the next one runs', async () => begun.length === 3)
    const ended = (await client.entries(sid)).flatMap((entry) =>
      entry.kind === 'outcome' ? [entry.body.effect] : [],
    )
    expect(ended).toEqual([2, 1])
    open[2]?.()
    await client.untilEntries(sid, 'all have ended', (entries) => outcomes(entries).length === 3)
  })

  it('H9: a tool that may have changed files has its outcome right behind the checkpoint, in one write', async () => {
    const program: Program = function* () {
      yield {}
      yield { ask: [tool(1, 'write')] }
      yield { ask: [tool(2, 'look')] }
      yield { ask: [prompt(3)] }
      return null
    }
    let version = 0
    const oid = (n: number): string => String(n).repeat(40)
    const workspace: Workspace = {
      root: '/w',
      checkpoint: async () => ({
        kind: 'git',
        commit: oid(version),
        tree: oid(version),
        head: oid(0),
        branch: 'main',
      }),
      pack: async () => packOf(new Uint8Array([version])),
      about: async () => ({ path: '/w', branch: 'main', platform: 'test' }),
      close: async () => undefined,
    }
    const write = async (): Promise<string> => {
      version++
      return 'written'
    }
    const tools = { write: { access: 'run' as const, run: write }, look: { run: async () => 'seen' } }
    await using loop = await Loop.open({ program, tools })
    const { client } = loop
    const { id } = await loop.runner('one', { openWorkspace: async () => workspace })
    const sid = await client.start({ prefer: id }, { agent: 'script', workspace: '/w', mode: 'full' })
    const entries = await client.untilEntries(
      sid,
      'both tools have ended',
      (all) => outcomes(all).length === 2,
    )
    const at = entries.findIndex((entry) => entry.kind === 'outcome' && entry.body.effect === 1)
    const before = entries[at - 1]
    expect(before).toMatchObject({ kind: 'checkpoint', body: { commit: oid(1) } })
    expect(before?.at).toBe(entries[at]?.at)
    // What only looks stores nothing.
    const looked = entries.findIndex((entry) => entry.kind === 'outcome' && entry.body.effect === 2)
    expect(entries[looked - 1]?.kind).not.toBe('checkpoint')
  })
})
