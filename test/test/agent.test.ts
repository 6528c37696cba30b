/** The agent with all that it meets, on real runners and a service that checks every request. */
import { describe, expect, it } from 'vitest'
import type { Opened } from '@baton/shared/entries.ts'
import type { Json } from '@baton/shared/guest.ts'
import { Cluster, type ClusterRunner } from '../src/cluster.ts'
import { until } from '../src/until.ts'

const turns = (entries: Opened[]): { [key: string]: Json }[] => eventsOf(entries, 'turn')

function eventsOf(entries: Opened[], type: string): { [key: string]: Json }[] {
  return entries.flatMap((entry) =>
    entry.kind === 'event' && entry.body.type === type ? [entry.body.data as { [key: string]: Json }] : [],
  )
}

function toolsOf(entries: Opened[]): string[] {
  return entries.flatMap((entry) =>
    entry.kind === 'intent' && entry.body.kind === 'tool' && entry.body.attempt === 1
      ? [entry.body.tool?.name ?? '']
      : [],
  )
}

interface Played {
  tools: string[]
  texts: string[]
  entries: Opened[]
  requests: number
}

/** Two prompts, the first steered while the model speaks; with `move` in the middle of that, to another runner. */
async function play(move: boolean): Promise<Played> {
  await using cluster = await Cluster.open({ script: 'agent' })
  const { client, model } = cluster
  const runners = [await cluster.runner('one'), ...(move ? [await cluster.runner('two')] : [])]
  const [one, two] = runners as [ClusterRunner, ClusterRunner | undefined]
  const sid = await client.start(
    { prefer: one.id },
    {
      ...{ agent: 'coder', workspace: cluster.repo, mode: 'full' as const },
      settings: { compact_at: 3000, effort: 'low' },
    },
  )
  await client.command(sid, 'prompt', { text: 'Write a note.' })
  await until('the model waits', async () => (await model.state()).gates['steer']?.waiting === 1)
  await client.command(sid, 'prompt', { text: 'Check it twice.', steer: true })
  await client.untilEntries(sid, 'the steering prompt is taken', (all) =>
    all.some(
      (entry) =>
        entry.kind === 'received' && entry.body.kind === 'prompt' && entry.body.command.steer === true,
    ),
  )
  if (two) {
    await client.command(sid, 'move', { label: 'two' }, { place: { prefer: two.id } })
    await client.untilEntries(
      sid,
      'the move waits for the model',
      (all) => eventsOf(all, 'moving').length > 0,
    )
  }
  await model.open('steer')
  const ended = (count: number) => (all: Opened[]) =>
    turns(all).filter(({ state }) => state === 'end').length === count
  await client.untilEntries(sid, 'the first turn has ended', ended(1))
  await client.command(sid, 'prompt', { text: 'And now?' })
  const entries = await client.untilEntries(sid, 'the second turn has ended', ended(2))

  const { requests } = await model.state()
  expect(requests.filter(({ end }) => end === 'invalid')).toEqual([])
  const last = JSON.stringify(requests.at(-1)?.body)
  const texts = Array.from(last.matchAll(/"text":"((?:[^"\\]|\\.)*)"/g), ([, text = '']) => text.slice(0, 60))
  return { tools: toolsOf(entries), texts, entries, requests: requests.length }
}

describe('the agent', () => {
  it('A1, A6, A8, F27, F31: goes through all of it, and through a move the same', async () => {
    const stayed = await play(false)
    const { entries } = stayed
    expect(stayed.tools).toEqual(['glob', 'read', 'write', 'read', 'grep'])
    const [, first, , second] = turns(entries)
    expect(first).toMatchObject({ reason: 'end_turn', usage: { requests: expect.any(Number) } })
    expect(second).toMatchObject({ reason: 'end_turn', cost_usd: expect.any(Number) })
    const retries = entries.flatMap((entry) =>
      entry.kind === 'intent' && entry.body.retry ? [entry.body.retry.code] : [],
    )
    expect(retries).toEqual(['model-busy', 'model-unreachable'])
    expect(eventsOf(entries, 'document')).toMatchObject([{ name: 'todo', value: [{ state: 'doing' }] }])
    expect(eventsOf(entries, 'compacted').length).toBeGreaterThan(0)
    expect(eventsOf(entries, 'error')).toEqual([])

    const moved = await play(true)
    expect(moved.tools).toEqual(stayed.tools)
    expect(moved.texts).toEqual(stayed.texts)
    expect(moved.requests).toBe(stayed.requests)
  })
})
