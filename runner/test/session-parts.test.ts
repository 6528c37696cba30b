/** Parts of the session loop that only show their worth when somebody lies or something dies. */
import { objectionToCall, ruledDecision, tightened, type Policy } from '../src/session/permissions.ts'
import { bash } from '../src/tools/bash.ts'
import { job } from '../src/tools/job.ts'
import { describe, expect, it } from 'vitest'
import { callDigest, EMPTY_CONVERSATION, extendConversation } from '@baton/shared/digest.ts'
import { BatonError } from '@baton/shared/errors.ts'
import type { EffectRequest, Json, LlmInput, Message } from '@baton/shared/guest.ts'
import { newAccount, newDevice, signDecision } from '@baton/shared/keys.ts'
import type { BlobStore } from '@baton/shared/blobs.ts'
import type { Command, Entry } from '@baton/shared/protocol.ts'
import { place, sealJson } from '@baton/shared/seal.ts'
import { recentBlobs } from '../src/daemon/recent-blobs.ts'
import type { Intent } from '@baton/shared/journal.ts'
import { Book } from '../src/session/book.ts'
import type { Snapshots } from '../src/session/snapshots.ts'
import { Checkpoints } from '../src/session/checkpoints.ts'
import { Departure } from '../src/session/departure.ts'
import { Inbox } from '../src/session/inbox.ts'
import { Journal, notice, type Draft } from '../src/session/journal.ts'
import type { Lease, SessionOptions } from '../src/session/options.ts'
import { Conversations } from '../src/session/conversations.ts'
import { modeBody } from '../src/cli/signed.ts'
import { objectionTo, objectionToMode } from '../src/session/decisions.ts'
import { Effects, outcomeDraft } from '../src/session/effects.ts'
import { carryAsks, Diverged, sortAsks, stopUnbegun } from '../src/session/asks.ts'
import type { RelayLink } from '../src/session/link.ts'
import type { Live } from '../src/session/live.ts'
import { digestOf, type AwaitedRequest } from '../src/session/requests.ts'
import { steady } from '../src/session/steady.ts'
import { emptyState, fold } from '../src/session/state.ts'
import type { Tool } from '../src/tools/tool.ts'
import { packOf } from '../src/workspace/pack-file.ts'
import type { Workspace } from '../src/workspace/workspace.ts'

describe('the end of an agent while its session leaves', () => {
  it('I11: what was to be written and the state of the files are written before it', async () => {
    const written: Draft[] = []
    const waiting = [notice('still to be told')]
    const link = { ask: async () => ({}), ready: async () => undefined } as unknown as RelayLink
    const book = {
      append: async (_: Live, drafts: Draft[]) => void written.push(...drafts),
    } as unknown as Book
    const departure = new Departure({
      ...{ options: { link } as SessionOptions, lease: { sid: 's', epoch: 1 } as Lease, book },
      ...{ gone: new AbortController().signal, log: () => undefined },
      unwritten: () => waiting.splice(0),
    })
    const live = { pause: { state: 'finished', asked: [], result: null } } as unknown as Live
    await departure.letGo(live, { drafts: [notice('about the files')] }, 'handed-off', 'moving')
    expect(departure.ending).toBe('ended')
    expect(written.map(({ body }) => JSON.stringify(body))).toEqual([
      expect.stringContaining('still to be told'),
      expect.stringContaining('about the files'),
      expect.stringContaining('"done"'),
    ])
  })
})

describe('a snapshot', () => {
  it('I8: names what was not come to only when the runner leaves: else it may still begin it', async () => {
    const save = async (): Promise<unknown> => ({
      snapshot: { header: { state: 'quiescent' } },
      chain: [],
      bytes: 0,
    })
    const journal = { tail: 7, sid: 's', key: new Uint8Array(32) } as Journal
    const book = new Book(journal, {} as BlobStore, { save } as unknown as Snapshots)
    const state = emptyState()
    state.open.set(3, { seq: 5, intent: { effect: 3 } as Intent })
    const parts = {
      state,
      harness: {},
      carried: [],
      savedBlobs: [],
      agent_at: 3,
      agent: { bundle_blob: 'b' },
    }
    const live = { ...parts, toStart: new Map([[3, 'first']]) } as unknown as Live
    expect((await book.snapshotDraft(live)).body).not.toHaveProperty('unstarted')
    expect((await book.snapshotDraft(live, 'leaves')).body).toMatchObject({ unstarted: [3] })
  })
})

describe('what came with the claim', () => {
  const key = new Uint8Array(32).fill(7)
  const said = (seq: number, under = seq): Entry => ({
    ...{ seq, epoch: 1, kind: 'event', at: 0, size: 0, blobs: [] },
    body: sealJson(key, { type: 'said', data: seq }, place.entry('s', 'event', under)),
  })
  const journalOf = (given: Entry[], asked: number[]): Journal => {
    const ask = async (_: string, { from }: { from: number }): Promise<unknown> => {
      asked.push(from)
      return { entries: Array.from({ length: 10 - from + 1 }, (_entry, i) => said(from + i)), tail: 10 }
    }
    const link = { ask, ready: async () => undefined } as unknown as RelayLink
    const { signal: gone } = new AbortController()
    return new Journal(link, { sid: 's', key, epoch: 2, tail: 10, gone, given })
  }

  it('L8: is not asked for again; holes are filled', async () => {
    const asked: number[] = []
    const journal = journalOf(
      [1, 2, 4, 5, 6].map((seq) => said(seq)),
      asked,
    )
    expect((await journal.at(4, 'event')).body.data).toBe(4)
    expect(asked).toEqual([])
    const seqs: number[] = []
    for await (const { seq } of journal.read(1)) seqs.push(seq)
    expect(seqs).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    expect(asked).toEqual([3])
    for await (const { seq } of journal.read(5)) seqs.push(seq)
    expect(seqs.slice(10)).toEqual([5, 6, 7, 8, 9, 10])
    expect(asked).toEqual([3, 7])
  })

  it('L8, I9: is believed no more than what is read: an entry moved to another place does not open', async () => {
    const journal = journalOf([said(4, 3)], [])
    await expect(journal.at(4, 'event')).rejects.toMatchObject({ code: 'cannot-open' })
  })
})

describe('the inbox of a session that was just claimed', () => {
  const commands = (...ns: number[]): Command[] =>
    ns.map((n) => ({ n, id: `command-${n}`, kind: 'stop', at: 0, device: 'd', body: '' }))
  const numbers = (list: Command[]): number[] => list.map(({ n }) => n)
  const [third] = commands(3) as [Command]

  it('Q1: what is told of before it was read waits for what was sent earlier', () => {
    const inbox = new Inbox()
    for (const command of commands(1)) inbox.add(command)
    // The notice of the second one came before there was anybody to hear it.
    expect(inbox.hear(third)).toEqual([])
    expect(numbers(inbox.waiting())).toEqual([1])
    expect(numbers(inbox.whole(commands(1, 2)))).toEqual([2, 3])
  })

  it('I6: what was heard of is told once, waiting or taken', () => {
    const inbox = new Inbox()
    for (const command of commands(1, 2)) inbox.add(command)
    inbox.take(commands(1)[0] as Command)
    expect(inbox.whole(commands(1, 2))).toEqual([])
    expect(numbers(inbox.hear(third))).toEqual([3])
    inbox.add(third)
    expect(inbox.hear(third)).toEqual([])
  })
})

describe('blobs that were here last', () => {
  const key = new Uint8Array(32)
  function counted(bytes_max: number): { blobs: BlobStore; fetched: string[] } {
    const stored = new Map<string, Uint8Array>()
    const fetched: string[] = []
    const store: BlobStore = {
      put: async (sid, _, plain) => {
        stored.set(`${sid}/${plain[0]}`, plain)
        return String(plain[0])
      },
      get: async (sid, _, hash) => {
        fetched.push(`${sid}/${hash}`)
        const plain = stored.get(`${sid}/${hash}`)
        if (!plain) throw new BatonError('no-blob')
        return plain
      },
    }
    return { blobs: recentBlobs(store, bytes_max), fetched }
  }

  it('are not fetched again, stored or read; one of another session is', async () => {
    const { blobs, fetched } = counted(100)
    await blobs.put('s', key, new Uint8Array(10).fill(1))
    expect((await blobs.get('s', key, '1'))[0]).toBe(1)
    expect(fetched).toEqual([])
    await expect(blobs.get('other', key, '1')).rejects.toMatchObject({ code: 'no-blob' })
  })

  it('make room for newer ones, those unused for longest first; what is larger than all room is not kept', async () => {
    const { blobs, fetched } = counted(100)
    for (const n of [1, 2]) await blobs.put('s', key, new Uint8Array(40).fill(n))
    await blobs.get('s', key, '1')
    await blobs.put('s', key, new Uint8Array(40).fill(3))
    await blobs.put('s', key, new Uint8Array(101).fill(4))
    for (const n of [1, 3, 2, 4, 4]) await blobs.get('s', key, String(n))
    expect(fetched).toEqual(['s/2', 's/4', 's/4'])
  })
})

describe('decisions', () => {
  const account = newAccount()
  const device = newDevice(account)
  const digest = callDigest('bash', { command: 'ls' })
  const state = emptyState()
  fold(state, {
    ...{ kind: 'intent', seq: 1, at: 0 },
    body: {
      ...{ effect: 1, kind: 'approve', replay: 'safe', digest, attempt: 1, now: 0 },
      approve: { name: 'bash', input: { command: 'ls' }, digest },
    },
  })
  const decisionBy = (by: typeof device) => ({
    ...{ effect: 1, digest, approved: true, device: by.id, certificate: by.certificate },
    signature: signDecision(by, { sid: 's', effect: 1, digest, approved: true }),
  })
  const policy: Policy = { mode: 'ask', rules: [], tools: new Map([['bash', bash]]) }
  const context = { account: account.id, sid: 's', open: state.open, isRevoked: () => false, policy }

  it('H8: one of a device of the account counts', () => {
    expect(objectionTo(decisionBy(device), context)).toBeUndefined()
  })

  it('H8: a mode that is given with a plan counts only while that plan waits', () => {
    const with_ = (plan: number) => modeBody(device, 's', 'edit', 0, plan)
    const now = { ...context, revision: 0 }
    expect(objectionToMode(with_(1), now)).toBeUndefined()
    expect(objectionToMode(with_(2), now)).toBe('The plan was decided already.')
    expect(objectionToMode(modeBody(device, 's', 'edit', 0), now)).toBeUndefined()
  })

  it('H8: one of a device that another account vouches for does not', () => {
    expect(objectionTo(decisionBy(newDevice(newAccount())), context)).toBe(
      'The device is not of this account.',
    )
  })

  it('H8: one of a removed device does not', () => {
    const isRevoked = (id: string): boolean => id === device.id
    expect(objectionTo(decisionBy(device), { ...context, isRevoked })).toBe(
      'The device was removed from the account.',
    )
  })

  it('B2: a denial says to the agent which rule it is, or that it is the mode', () => {
    const rules = [{ tool: 'bash', prefix: 'git push', action: 'deny' as const }]
    const said = (mode: Policy['mode'], command: string): (string | undefined)[] => {
      const input = { name: 'bash', input: { command } }
      const decided = ruledDecision({ ...policy, mode, rules }, { ...input, digest })
      const refused = objectionToCall({ ...policy, mode, rules }, input, new Map())
      return [decided?.note, refused?.message]
    }
    const [note, message] = said('full', 'git push -f')
    expect(note).toBe('Forbidden for bash: the rule "deny bash: git push".')
    expect(message).toContain('(bash: the rule "deny bash: git push")')
    for (const words of said('plan', 'ls')) expect(words).toMatch(/bash: the session is in plan mode/)
  })

  it('B1: in plan mode jobs are looked at and not stopped, whatever a rule allows', () => {
    const [own = job] = tightened([job], [job.spec])
    const rules = [{ tool: 'job', action: 'allow' as const }]
    const objection = (mode: Policy['mode'], action: string): string | undefined =>
      objectionToCall(
        { mode, rules, tools: new Map([['job', own]]) },
        { name: 'job', input: { action, id: 'job-1' } },
        new Map(),
      )?.message
    expect(objection('plan', 'stop')).toContain('(job: the session is in plan mode')
    expect(['status', 'output'].map((action) => objection('plan', action))).toEqual([undefined, undefined])
    expect(objection('ask', 'stop')).toBeUndefined()
  })
})

describe('conversations', () => {
  const say = (text: string): Message => ({ role: 'user', content: [{ type: 'text', text }] })
  const digestOfAll = (messages: Message[]): string => messages.reduce(extendConversation, EMPTY_CONVERSATION)
  const input = (prior: Message[], add: Message[], digest = digestOfAll([...prior, ...add])): LlmInput => ({
    ...{
      conversation: 'c',
      prior: prior.length,
      follows: digestOfAll(prior),
      add,
      digest,
      system: '',
      tools: [],
    },
  })

  it('I7: are put together from what is new, and asked for whole where the beginning is not known', () => {
    const known = new Conversations()
    expect(known.extend(input([say('a')], [say('b')]))).toBeUndefined()
    expect(known.extend(input([], [say('a')]))).toEqual([say('a')])
    expect(known.extend(input([say('a')], [say('b')]))).toEqual([say('a'), say('b')])
    expect(known.extend(input([say('x'), say('y')], [say('b')]))).toBeUndefined()
  })

  it('A8: those that a compaction ended are forgotten, the one at work never', () => {
    const known = new Conversations(300)
    const long = say('x'.repeat(200))
    const named = (conversation: string, prior: Message[], add: Message[]): LlmInput => ({
      ...{ ...input(prior, add), conversation },
    })
    for (const name of ['main', 'aside', 'main-2']) known.extend(named(name, [], [long]))
    expect(known.names).toEqual(['aside', 'main-2'])
    expect(known.extend(named('aside', [long], [long, long]))).toHaveLength(3)
    expect(known.extend(named('main-3', [], [long]))).toHaveLength(1)
    expect(known.names).toEqual(['main-3'])
    expect(known.extend(named('aside', [long, long, long], [long]))).toBeUndefined()
  })

  it('are refused when they are not what their digest says', () => {
    const lie = input([], [say('a')], digestOfAll([say('b')]))
    expect(() => new Conversations().extend(lie)).toThrow(expect.objectContaining({ code: 'bad-input' }))
  })
})

describe('asks', () => {
  const tool = (id: number, approval: number): AwaitedRequest => ({
    ...{ id, kind: 'tool', input: { name: 'fire', input: {}, approval } },
  })
  const fire: Tool = {
    spec: { name: 'fire', description: '', schema: {}, replay: 'never', access: 'run' },
    execute: async () => ({ text: '', is_error: false }),
  }
  function liveAsking(...asked: EffectRequest[]): Live {
    return {
      ...{
        state: emptyState(),
        asked: 0,
        requests: new Map(),
        toStart: new Map(),
        pause: { state: 'quiescent', asked },
      },
      ...{ start: { mode: 'ask' }, tools: new Map([['fire', fire]]), rules: [] },
    } as unknown as Live
  }

  it('H7: one approval lets one call through, also when both are asked for in one slice', () => {
    const live = liveAsking(tool(2, 1), tool(3, 1))
    live.state.approvals.set(1, callDigest('fire', {}))
    const { drafts, fresh } = sortAsks(live, 0)
    expect(fresh.map(({ id }) => id)).toEqual([2])
    expect(drafts.at(-1)).toMatchObject({
      kind: 'outcome',
      body: { effect: 3, error: { code: 'not-approved' } },
    })
  })

  it('I10: an approval whose digest is of another call than the one shown is not asked for', () => {
    const digest = callDigest('fire', { at: 'everything' })
    const live = liveAsking({ id: 1, kind: 'approve', input: { name: 'fire', input: {}, digest } })
    expect(sortAsks(live, 0)).toMatchObject({
      fresh: [],
      drafts: [{}, { body: { error: { code: 'bad-input' } } }],
    })
  })

  it('I4: what is replayed while the session leaves is not carried along; what is new is, without an intent', () => {
    const intent = { effect: 2, kind: 'tool', replay: 'safe', attempt: 1, now: 0 } as const
    const live = liveAsking(tool(2, 1), { id: 3, kind: 'emit', input: { type: 'note', data: 1 } }, tool(4, 1))
    live.carried = []
    const digest = digestOf(tool(2, 1))
    fold(live.state, { ...{ kind: 'intent', seq: 1, at: 0 }, body: { ...intent, digest } })
    fold(live.state, { kind: 'event', seq: 2, at: 0, body: { effect: 3, type: 'note', data: 1 } })
    fold(live.state, { kind: 'outcome', seq: 3, at: 0, body: { effect: 2, now: 0, result: null } })
    carryAsks(live)
    expect(live.carried.map(({ id }) => id)).toEqual([4])
    expect(live.asked).toBe(3)
    expect(live.pause.asked).toEqual([])
  })

  it('I7: a request that differs from its intent is noticed', () => {
    const live = liveAsking(tool(2, 1))
    const other = digestOf(tool(2, 7))
    fold(live.state, {
      ...{ kind: 'intent', seq: 1, at: 0 },
      body: { effect: 2, kind: 'tool', replay: 'never', digest: other, attempt: 1, now: 0 },
    })
    expect(() => sortAsks(live, 0)).toThrow(Diverged)
  })

  it('H10: after Stop, and before the guest has heard of it, nothing starts', () => {
    const live = liveAsking(tool(2, 1), { id: 3, kind: 'prompt', input: {} })
    live.state.approvals.set(1, callDigest('fire', {}))
    const received = { kind: 'stop' as const, command: {}, id: 'x'.repeat(22), device: 'd', now: 0 }
    fold(live.state, { kind: 'received', seq: 1, at: 0, body: received })
    const { drafts, fresh } = sortAsks(live, 0)
    expect(fresh.map(({ kind }) => kind)).toEqual(['prompt'])
    expect(drafts[1]).toMatchObject({ kind: 'outcome', body: { effect: 2, error: { code: 'stopped' } } })
    live.toStart.set(9, 'again')
    expect(stopUnbegun(live, 0)).toMatchObject([{ body: { effect: 9, error: { code: 'stopped' } } }])
    expect(live.toStart.size).toBe(0)
  })

  it('what is too large to be written is refused in words, and its intent still names it', () => {
    const live = liveAsking({
      id: 1,
      kind: 'tool',
      input: { name: 'fire', input: { text: 'x'.repeat(300_000) } },
    })
    const { drafts, fresh } = sortAsks(live, 0)
    expect(fresh).toEqual([])
    expect(JSON.stringify(drafts).length).toBeLessThan(2000)
    expect(drafts[1]).toMatchObject({ body: { effect: 1, error: { code: 'too-large' } } })
  })
})

describe('when the lease is gone', () => {
  it('I8: no effect starts any more', () => {
    let started = false
    const effects = new Effects(() => undefined)
    effects.end()
    effects.start(1, 'tool', async () => {
      started = true
      return { result: null }
    })
    expect(started).toBe(false)
  })

  it('I8: an answer that comes late is not acted on', async () => {
    const gone = new AbortController()
    const link = { ready: async () => undefined } as unknown as RelayLink
    const { promise, resolve } = Promise.withResolvers<string>()
    const asked = steady(link, gone.signal, () => promise)
    gone.abort(new BatonError('lease-lost'))
    resolve('written')
    await expect(asked).rejects.toMatchObject({ code: 'lease-lost' })
  })
})

it('I11: a checkpoint that could not be sent is sent with the next', async () => {
  const oid = 'a'.repeat(40)
  let changed = true
  const workspace = {
    // As the real one: it tells of each change once.
    checkpoint: async () => {
      const told = changed
      changed = false
      return told ? { commit: oid, tree: oid, head: oid, branch: 'main' } : undefined
    },
    pack: async () => packOf(new Uint8Array([1])),
  } as unknown as Workspace
  let down = true
  const blobs = {
    put: async () => {
      if (down) throw new BatonError('offline')
      return 'b'.repeat(64)
    },
    get: async () => new Uint8Array(),
  }
  const checkpoints = new Checkpoints(blobs, 's', new Uint8Array(32), undefined)
  await expect(checkpoints.store(workspace)).rejects.toMatchObject({ code: 'offline' })
  down = false
  expect(await checkpoints.store(workspace)).toMatchObject({ kind: 'checkpoint', body: { commit: oid } })
  expect(await checkpoints.store(workspace)).toBeUndefined()
})

describe('C28: a result too long for its entry', () => {
  const stored = async (result: Json) => {
    const store = { blobs: { put: async () => 'b'.repeat(64), get: async () => new Uint8Array() }, sid: 's' }
    const ended = { effect: 1, performed: { result }, before: [], duration_ms: 1 }
    const { body } = await outcomeDraft(ended, { ...store, key: new Uint8Array(32) }, 1, 0)
    return body
  }
  const thinking = (text: string): Json => ({
    type: 'thinking',
    thinking: text,
    signature: 's1gn'.repeat(9000),
  })

  it('shows by what the model said and thought: no signature, and no text twice', async () => {
    const said = [thinking('Let me see.'), { type: 'text', text: 'I write it.' }]
    expect(await stored({ content: said })).toMatchObject({
      blob: { head: 'I write it.', tail: '', thoughts: 'Let me see.' },
    })
    const long = [thinking('Hm.'), { type: 'text', text: `begin ${'x'.repeat(40_000)} end` }]
    const body = await stored({ content: long })
    expect(body).toMatchObject({
      blob: { head: expect.stringMatching(/^begin x/), tail: expect.stringMatching(/x end$/) },
    })
    expect(JSON.stringify(body)).not.toContain('s1gn')
  })

  it('of a tool shows by its text', async () => {
    const detail = { diff: 'y'.repeat(40_000) }
    expect(await stored({ text: 'Edited.', is_error: false, detail })).toMatchObject({
      blob: { head: 'Edited.', tail: '' },
    })
  })
})
