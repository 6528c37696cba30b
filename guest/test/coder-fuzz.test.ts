/** Whatever people, model and tools do, in any order: each request is one that the API takes, and the agent goes on. */
import type { EffectRequest, Json, LlmResult, Message } from '@baton/shared/guest.ts'
import { expect, test } from 'vitest'
import main from '../src/agents/coder.ts'
import { say, Session, use } from './session.ts'

/** mulberry32 */
function seeded(seed: number): (below: number) => number {
  let state = seed >>> 0
  return (below) => {
    state = (state + 0x6d2b79f5) >>> 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) % below
  }
}

const MODES = ['plan', 'ask', 'edit', 'full'] as const
const REASONS = ['end_turn', 'max_tokens', 'refusal', 'tool_use', 'model_context_window_exceeded']
const FAILURES = ['model-busy', 'model-error', 'context-full', 'model-key']
const TOOLS = ['read', 'grep', 'edit', 'bash', 'todo', 'propose_plan', 'fly']

interface Counts {
  turns: number
  stops: number
  steers: number
  compactions: number
  failures: number
  results: number
}

async function play(seed: number, steps: number): Promise<Counts> {
  const below = seeded(seed)
  const pick = <T>(list: readonly T[]): T => list[below(list.length)]!
  const chance = (percent: number): boolean => below(100) < percent
  const settings = { compact_at: 2000 + below(8000) }
  const session = new Session(main, pick(MODES), { settings })
  const counts: Counts = { turns: 0, stops: 0, steers: 0, compactions: 0, failures: 0, results: 0 }
  let calls = 0

  const content = async (): Promise<Message['content']> => {
    const blocks: Message['content'] = []
    if (chance(50)) blocks.push(await session.thinking(`thought ${++calls}`))
    if (chance(60)) blocks.push(say(`words ${'w'.repeat(below(900))}`))
    while (chance(55)) {
      const items = [{ text: 'x', state: pick(['open', 'done', 'nonsense']) }]
      blocks.push(use(`t${++calls}`, pick(TOOLS), { n: calls, items, plan: pick(['', 'A plan.']) }))
    }
    return blocks.length === 0 ? [say('(no answer)')] : blocks
  }
  const answerModel = async (id: number): Promise<void> => {
    if (chance(8)) {
      counts.failures++
      session.error(id, pick(FAILURES))
      return
    }
    const blocks = await content()
    const used = blocks.filter(({ type }) => type === 'tool_use')
    const invalid = used.filter(() => chance(10)).map((call) => [call['id'], '{"x'] as [string, string])
    const result: LlmResult = {
      ...{
        content: blocks,
        stop_reason: chance(20) ? pick(REASONS) : used.length > 0 ? 'tool_use' : 'end_turn',
      },
      ...{
        model: 'm',
        usage: { input_tokens: below(3000), output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0 },
      },
      ...(invalid.length > 0 && { invalid_input: Object.fromEntries(invalid) }),
    }
    session.result(id, result as unknown as Json)
  }
  const answer = async ({ id, kind }: EffectRequest): Promise<void> => {
    if (kind === 'llm') await answerModel(id)
    else if (kind === 'approve')
      session.result(id, { approved: chance(60), ...(chance(70) && { device: 'd' }) })
    else if (kind === 'prompt') {
      counts.turns++
      session.result(id, { text: chance(95) ? `prompt ${counts.turns}` : ' ', command: 'c' })
    } else if (chance(15)) session.error(id, pick(['not-approved', 'not-allowed', 'interrupted', 'internal']))
    else {
      counts.results++
      session.result(id, { text: 'r'.repeat(below(3000)), is_error: chance(20) })
    }
  }

  for (let step = 0; step < steps; step++) {
    const kind = below(100)
    if (kind < 5) {
      counts.stops++
      await session.stop()
    } else if (kind < 12) counts.steers += (await session.maySteer(`hint ${step}`)) ? 1 : 0
    else if (kind < 16) session.mode(pick(MODES))
    else if (kind < 18) session.send({ type: 'compact', now: 1 })
    else if (kind < 20) {
      const value = [{ text: 'mine', state: 'open' }]
      session.send({ type: 'document', now: 1, command: 'd', name: 'todo', version: 1 + below(2), value })
    } else {
      const request = await session.any(below(1000))
      if (request === undefined) throw new Error(`the agent waits for nothing after ${step} steps`)
      await answer(request)
    }
  }
  await session.settle()
  expect(session.ended).toBeUndefined()
  counts.compactions = session.emitted('compacted').length
  return counts
}

test('F51: every request is valid, whatever happens in whatever order', async () => {
  const sum: Counts = { turns: 0, stops: 0, steers: 0, compactions: 0, failures: 0, results: 0 }
  for (let seed = 1; seed <= 30; seed++) {
    const counts = await play(seed, 120).catch((error: unknown) => {
      throw new Error(`seed ${seed}`, { cause: error })
    })
    for (const name of Object.keys(sum) as (keyof Counts)[]) sum[name] += counts[name]
  }
  // All of it really happened.
  for (const [name, count] of Object.entries(sum)) expect(count, name).toBeGreaterThan(20)
})
