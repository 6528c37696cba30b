/** Copies of sessions, on the real session loop: what comes along, what does not, and what goes on where. */
import { describe, expect, it } from 'vitest'
import { signDecision } from '@baton/shared/keys.ts'
import { transcriptOf } from '@baton/shared/transcript.ts'
import { echo, effectsOf, fork, hasIntent, hasOutcome, isStored } from '../src/copies.ts'
import { Loop } from '../src/loop.ts'
import { approve, emit, prompt, resultOf, tool } from '../src/script-asks.ts'
import { type Program } from '../src/script-harness.ts'
import { until } from '../src/until.ts'

describe('a copy', () => {
  it('X1: begins with all that was said and done in its origin, and both go on for themselves', async () => {
    await using loop = await Loop.open({ program: echo, tools: { look: { run: async () => 'seen' } } })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    await loop.client.command(sid, 'prompt', { text: 'first' })
    const origin = await loop.client.untilEntries(
      sid,
      'it waits again',
      (all) => hasIntent(4)(all) && isStored(all),
    )
    const copy = await fork(loop, sid, id)
    await loop.client.command(copy, 'prompt', { text: 'only in the copy' })
    const copied = await loop.client.untilEntries(copy, 'the copy went on', hasIntent(7))
    expect(await loop.client.entries(sid), 'the origin').toEqual(origin)
    expect(transcriptOf(copied).slice(0, transcriptOf(origin).length)).toEqual(transcriptOf(origin))
    expect(JSON.stringify(transcriptOf(copied))).toContain('only in the copy')

    await loop.client.command(sid, 'prompt', { text: 'only in the origin' })
    const gone = await loop.client.untilEntries(sid, 'the origin went on', hasIntent(7))
    expect(JSON.stringify(gone)).not.toContain('only in the copy')
    expect((await loop.client.info(copy)).status).toBe((await loop.client.info(sid)).status)
  })

  it('X2: an approval that was open is asked anew; a decision for the origin does not count', async () => {
    let runs = 0
    const program: Program = function* () {
      yield {}
      const decided = yield { ask: [approve(1, 'deploy')] }
      yield { ask: [emit(2, resultOf(decided)), tool(3, 'deploy', {}, 1)] }
      yield { ask: [prompt(4)] }
      return null
    }
    const tools = { deploy: { access: 'run', run: async () => `run ${++runs}` } } as const
    await using loop = await Loop.open({ program, tools })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    await loop.client.untilEntries(sid, 'it asks', (all) => hasIntent(1)(all) && isStored(all))
    const copy = await fork(loop, sid, id)
    const [open] = await until('the copy asks', async () => {
      const pending = await loop.client.pending(copy).catch(() => [])
      return (await loop.client.info(copy)).status === 'waiting' && pending.length > 0 && pending
    })
    // Signed for the origin, sent to the copy.
    const { device } = loop.client
    const signature = signDecision(device, { sid, effect: 1, digest: open?.digest ?? '', approved: true })
    await loop.client.command(copy, 'decision', {
      ...{ effect: 1, digest: open?.digest ?? '', approved: true, signature },
      ...{ device: device.id, certificate: device.certificate },
    })
    const refused = await loop.client.untilEntries(copy, 'it was consumed', (all) =>
      all.some((entry) => entry.kind === 'received' && entry.body.kind === 'decision'),
    )
    expect(JSON.stringify(refused)).toContain('The signature does not fit.')
    expect(hasOutcome(1)(refused)).toBe(false)

    await loop.client.approveNext(copy)
    await loop.client.untilEntries(copy, 'the copy went on', hasIntent(4))
    expect(runs).toBe(1)
    expect(hasOutcome(1)(await loop.client.entries(sid)), 'the origin still waits').toBe(false)
  })

  // One at a time: calls that may change files run one after the other.
  it.each([
    ['may never run twice', { replay: 'never' }],
    ['changes files', { replay: 'safe', access: 'edit' }],
  ] as const)(
    'X3, I5: what ran in the origin and %s is not run again in the copy; what only looks is',
    async (_, policy) => {
      const runs: Record<string, number> = {}
      const held = (name: string) => async () => {
        runs[name] = (runs[name] ?? 0) + 1
        // The origin's never end; those of the copy do.
        if ((runs[name] ?? 0) === 1) await new Promise(() => undefined)
        return 'seen'
      }
      const program: Program = function* () {
        yield {}
        yield { ask: [tool(1, 'change'), tool(2, 'look'), prompt(3)] }
        yield {}
        yield {}
        yield { ask: [prompt(4)] }
        return null
      }
      await using loop = await Loop.open({
        program,
        tools: {
          change: { ...policy, run: held('change') },
          look: { replay: 'safe', access: 'read', run: held('look') },
        },
      })
      const { id } = await loop.runner('one')
      const sid = await loop.client.start({ prefer: id }, { agent: 'script', workspace: '/w', mode: 'full' })
      await until('both run', () => Object.keys(runs).length === 2)
      await loop.client.untilEntries(sid, 'its files are stored', isStored)
      const copy = await fork(loop, sid, id)
      const entries = await loop.client.untilEntries(copy, 'the copy looked', hasOutcome(2))
      const outcome = (effect: number): string => JSON.stringify(effectsOf(entries, 'outcome', effect))
      expect(outcome(1)).toContain('interrupted')
      expect(outcome(2)).toContain('seen')
      expect(runs).toEqual({ change: 1, look: 2 })
      expect((await loop.client.entries(sid)).some(({ kind }) => kind === 'outcome')).toBe(false)
    },
  )

  it('X4: what was approved in the origin and not begun is not allowed in the copy', async () => {
    const ran: string[] = []
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    const program: Program = function* () {
      yield {}
      yield { ask: [approve(1, 'deploy')] }
      // Approved; before the call there is something else to wait for.
      yield { ask: [tool(2, 'wait')] }
      const answer = yield { ask: [tool(3, 'deploy', {}, 1)] }
      yield { ask: [emit(4, JSON.stringify(answer)), prompt(5)] }
      return null
    }
    await using loop = await Loop.open({
      program,
      tools: {
        deploy: { access: 'run', run: async () => `${ran.push('deploy')}` },
        wait: { access: 'read', run: () => held.then(() => 'waited') },
      },
    })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    await loop.client.approveNext(sid)
    await loop.client.untilEntries(sid, 'it waits', (all) => hasIntent(2)(all) && isStored(all))
    const copy = await fork(loop, sid, id)
    await loop.client.untilEntries(copy, 'the copy waits', hasIntent(2))
    release()
    const entries = await loop.client.untilEntries(copy, 'the copy went on', hasIntent(5))
    expect(JSON.stringify(effectsOf(entries, 'outcome', 3))).toContain('not-approved')
    await loop.client.untilEntries(sid, 'the origin went on', hasIntent(5))
    expect(ran).toEqual(['deploy'])
  })

  it('X5: a runner that ends in the middle leaves a history that the next one completes, each entry once', async () => {
    const many = 600
    const program: Program = function* () {
      yield {}
      yield { ask: [...Array.from({ length: many }, (_, i) => emit(i + 1, `line ${i}`)), prompt(many + 1)] }
      return null
    }
    await using loop = await Loop.open({ program, lease_ms: 600 })
    const { id } = await loop.runner('one')
    const sid = await loop.start(id)
    const origin = await loop.client.untilEntries(
      sid,
      'it waits',
      (all) => hasIntent(many + 1)(all) && isStored(all),
    )
    // The engine is asked for when the history is written and nothing has been started: there it stays.
    const stuck = await loop.runner('two', { agent: () => new Promise(() => undefined) })
    const copy = await fork(loop, sid, stuck.id)
    await until('the history is written', async () => (await loop.client.info(copy)).seq > many)
    expect((await loop.client.info(copy)).status).toBe('idle')
    stuck.runner.close()
    await loop.runner('three', {}, stuck.device)
    const entries = await loop.client.untilEntries(copy, 'it has started', isStored)
    expect(transcriptOf(entries)).toEqual(transcriptOf(origin))
    expect(entries.filter((entry) => entry.kind === 'event' && entry.body.effect !== undefined)).toHaveLength(
      many,
    )
  })

  it('X6: a session that has not begun, or whose files are not stored, can not be copied yet', async () => {
    await using loop = await Loop.open({ program: echo })
    const { id } = await loop.runner('one')
    const sid = await loop.client.start({ prefer: 'A'.repeat(43) }, { agent: 'script', workspace: '/w' })
    await expect(fork(loop, sid, id)).rejects.toThrow(/can not be copied yet/)
  })
})
