/** The agent inside the engine: cut anywhere, saved, restored elsewhere, it asks for the same things. */
import { fileURLToPath } from 'node:url'
import { bundleAgent } from '@baton/guest/bundle.ts'
import type { EffectRequest, GuestMessage, Json, LlmResult, Message, ToolSpec } from '@baton/shared/guest.ts'
import { beforeAll, expect, test } from 'vitest'
import { computeBaseline } from '../src/vm/baseline.ts'
import { sha256 } from '../src/vm/codec.ts'
import { Guest, type GuestOptions } from '../src/vm/guest.ts'
import { engine, moved, seeded, start } from './vm-programs.ts'

const agent = fileURLToPath(new URL('../../guest/src/agents/coder.ts', import.meta.url))
let options: GuestOptions
beforeAll(async () => {
  const module = new WebAssembly.Module(engine)
  const code = await bundleAgent(agent)
  options = { module, baseline: computeBaseline(module, code), engine: sha256(engine), bundle: sha256(code) }
})

const tool = (name: string, access: ToolSpec['access']): ToolSpec => ({
  ...{ name, description: name, schema: { type: 'object' }, access, replay: 'safe' },
})
const use = (
  id: string,
  name: string,
  input: { [key: string]: Json } = { id },
): Message['content'][number] => ({
  ...{ type: 'tool_use', id, name, input },
})
const say = (text: string): Message['content'][number] => ({ type: 'text', text })

/** What the model answers, in order, where it is not asked for a summary. */
const ANSWERS: Message['content'][] = [
  [use('t1', 'todo', { items: [{ text: 'look', state: 'doing' }] }), use('t2', 'read'), use('t3', 'read')],
  [use('t4', 'edit'), use('t5', 'edit'), use('t6', 'fly')],
  [say('Half done.'), use('t7', 'read')],
  [say('Ok.')],
  [use('t8', 'propose_plan', { plan: 'Mend it.' })],
  [use('t9', 'edit')],
  [say('Done.')],
]

/** A person, a model and tools that always do the same, at the same places. */
class World {
  readonly transcript: EffectRequest[] = []
  readonly messages: GuestMessage[] = [
    {
      ...start,
      mode: 'ask',
      tools: [tool('read', 'read'), tool('edit', 'edit')],
      settings: { compact_at: 3000 },
    },
  ]
  #answers = 0
  #summaries = 0
  #prompts = 0
  #steer: number | undefined
  #now = start.now

  ask(requests: EffectRequest[]): void {
    for (const request of requests) {
      this.transcript.push(request)
      this.#answer(request)
    }
  }

  #say(message: GuestMessage): void {
    this.messages.push(message)
  }

  #outcome(effect: number, result: Json): void {
    this.#say({ type: 'outcome', effect, now: (this.#now += 5), result })
  }

  #answer({ id, kind, input }: EffectRequest): void {
    if (kind === 'prompt' && input.steer) this.#steer = id
    else if (kind === 'prompt' && this.#prompts < 3) {
      if (++this.#prompts === 3) this.#say({ type: 'mode', now: this.#now, mode: 'plan' })
      this.#outcome(id, { text: `Prompt ${this.#prompts}`, command: 'c' })
    } else if (kind === 'llm') this.#answerModel(id, JSON.stringify(input.add.at(-1)))
    else if (kind === 'approve') {
      if (input.name === 'propose_plan') this.#say({ type: 'mode', now: this.#now, mode: 'full' })
      this.#outcome(id, { approved: true, device: 'd' })
    } else if (kind === 'tool') {
      if (input.call === 't4' && this.#steer !== undefined)
        this.#outcome(this.#steer, { text: 'Use tabs.', command: 's' })
      this.#outcome(id, { text: `result of ${input.call} `.padEnd(6000, 'x'), is_error: false })
    }
  }

  #answerModel(id: number, last: string): void {
    const wantsSummary = last.includes('Summarise')
    // The second summary is stopped.
    if (wantsSummary && ++this.#summaries === 2) {
      this.#say({ type: 'stop', now: this.#now })
      this.#say({ type: 'outcome', effect: id, now: this.#now, error: { code: 'stopped', message: 'x' } })
      return
    }
    const content = wantsSummary ? [say(`SUMMARY ${this.#summaries}`)] : (ANSWERS[this.#answers++] ?? [])
    const usage = { input_tokens: 10, output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0 }
    const stop_reason = content.some(({ type }) => type === 'tool_use') ? 'tool_use' : 'end_turn'
    const result: LlmResult = { content, stop_reason, model: 'm', usage, cost_usd: 0.01 }
    this.#outcome(id, result as unknown as Json)
  }
}

function play(cut: (guest: Guest) => { guest: Guest; fuel?: number }): {
  world: World
  hash: string
  cuts: number
} {
  const world = new World()
  let cuts = 0
  let guest = new Guest(options)
  for (let message = world.messages.shift(); message !== undefined; message = world.messages.shift()) {
    let next = cut(guest)
    guest = next.guest
    let pause = guest.deliver(message, next.fuel === undefined ? {} : { fuel: next.fuel })
    while (pause.state === 'interrupted') {
      cuts++
      world.ask(pause.asked)
      next = cut(guest)
      guest = next.guest
      pause = guest.run(next.fuel === undefined ? {} : { fuel: next.fuel })
    }
    expect(pause.state).toBe('quiescent')
    world.ask(pause.asked)
  }
  return { world, hash: guest.memoryHash(), cuts }
}

test('I7: coder, cut anywhere and moved each time, asks for the same and ends with the same memory', () => {
  const whole = play((guest) => ({ guest }))
  const events = whole.world.transcript.flatMap(({ kind, input }) => (kind === 'emit' ? [input] : []))
  expect(
    events.filter(({ type }) => type === 'turn').map(({ data }) => (data as { reason?: string }).reason),
  ).toEqual([...[undefined, 'stopped', undefined, 'end_turn', undefined, 'end_turn']])
  const conversations = whole.world.transcript.flatMap(({ kind, input }) =>
    kind === 'llm' ? [input.conversation] : [],
  )
  expect([...new Set(conversations)]).toEqual(['main', 'main-2', 'main-3', 'main-4', 'main-5'])
  expect(events.filter(({ type }) => type === 'compacted')).toHaveLength(2)
  for (const seed of [1, 2]) {
    const below = seeded(seed)
    const cut = play((guest) => ({ guest: moved(options, guest), fuel: 200 + below(20_000) }))
    expect(cut.cuts, `seed ${seed}`).toBeGreaterThan(20)
    expect(cut.world.transcript, `seed ${seed}`).toEqual(whole.world.transcript)
    expect(cut.hash, `seed ${seed}`).toBe(whole.hash)
  }
})

test('I7: coder, saved at every rest without what is dead in its memory, asks for the same', () => {
  let rests = 0
  const rested = (guest: Guest): { guest: Guest } => {
    if (guest.state.name !== 'quiescent') return { guest }
    rests++
    const fresh = new Guest(options)
    fresh.restore([guest.snapshot({ lean: true }).bytes])
    return { guest: fresh }
  }
  const whole = play((guest) => ({ guest }))
  expect(play(rested).world.transcript).toEqual(whole.world.transcript)
  expect(rests).toBeGreaterThan(20)
})
