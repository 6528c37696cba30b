/** The narrow moments of leaving, on a relay that is played by the test: it answers when the moment has come. */
import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import type { RelayLink } from '@baton/runner/session/link.ts'
import type { SessionOptions } from '@baton/runner/session/options.ts'
import { Session } from '@baton/runner/session/session.ts'
import { SavingTurns } from '@baton/runner/session/urgency.ts'
import type { Workspace } from '@baton/runner/workspace/workspace.ts'
import { packOf } from '@baton/runner/workspace/pack-file.ts'
import { sha256Hex } from '@baton/shared/bytes.ts'
import { BatonError } from '@baton/shared/errors.ts'
import { openEntry, type Opened } from '@baton/shared/entries.ts'
import type { LlmResult } from '@baton/shared/guest.ts'
import { newAccount, newDevice, newId, sessionKey } from '@baton/shared/keys.ts'
import type { AskName, Command, NewEntry } from '@baton/shared/protocol.ts'
import { place, sealJson } from '@baton/shared/seal.ts'
import { llm, prompt, said } from '../src/script-asks.ts'
import { ScriptHarness, type Program } from '../src/script-harness.ts'
import { until } from '../src/until.ts'

const account = newAccount()
const device = newDevice(account)

/** A relay that takes everything. `before`: called with the entries of an append before it is answered. */
class PlayedRelay implements RelayLink {
  readonly sid = newId()
  readonly entries: Opened[] = []
  readonly #start: Command
  readonly #blobs = new Map<string, Uint8Array>()
  before: (entries: Opened[]) => Promise<void> = async () => undefined

  constructor() {
    this.#start = this.command(1, 'start', { agent: 'script', workspace: '/w', mode: 'full' })
  }

  command(n: number, kind: 'start' | 'stop', body: object): Command {
    const id = newId()
    const sealed = sealJson(sessionKey(account, this.sid), body, place.command(this.sid, kind, id))
    return { n, id, kind, at: 0, device: device.id, body: sealed }
  }

  ask: RelayLink['ask'] = async (what: AskName, with_: object) => {
    if (what === 'inbox') return { commands: [this.#start] } as never
    if (what === 'append') await this.#append((with_ as { entries: NewEntry[] }).entries)
    return {}
  }

  readonly blobs: RelayLink['blobs'] = {
    put: async (_sid, _key, plain) => {
      const hash = sha256Hex(plain)
      this.#blobs.set(hash, plain)
      return hash
    },
    get: async (_sid, _key, hash) => {
      const plain = this.#blobs.get(hash)
      if (!plain) throw new BatonError('no-blob')
      return plain
    },
  }

  tell(): void {}

  async ready(): Promise<void> {}

  async #append(entries: NewEntry[]): Promise<void> {
    const key = sessionKey(account, this.sid)
    const opened = entries.map((entry, i) =>
      openEntry(key, this.sid, {
        ...entry,
        seq: this.entries.length + i + 1,
        epoch: 1,
        at: 0,
        size: 0,
      }),
    )
    this.entries.push(...opened)
    await this.before(opened)
  }
}

it('H4: an answer that comes while the session is just letting go is written, not asked for again', async () => {
  const program: Program = function* () {
    yield {}
    yield { ask: [llm(1, said('hi'))] }
    yield { ask: [prompt(2)] }
    return null
  }
  const relay = new PlayedRelay()
  const answer = Promise.withResolvers<LlmResult>()
  let calls = 0
  let stored = 0
  const oid = 'c'.repeat(40)
  const workspace: Workspace = {
    root: '/w',
    checkpoint: async () =>
      stored++ === 0 ? { kind: 'git', commit: oid, tree: oid, head: oid, branch: 'b' } : undefined,
    pack: async () => packOf(new Uint8Array([1])),
    about: async () => ({ path: '/w', branch: 'b', platform: 'test' }),
    close: async () => undefined,
  }
  const options: SessionOptions = {
    ...{ link: relay, account, device: device.id, tags: [], isRevoked: () => false, log: () => undefined },
    ...{ park_after_ms: 60_000, finish_within_ms: 60_000 },
    model: {
      name: 'rehearsal',
      call: () => {
        calls++
        return answer.promise
      },
    },
    agent: async () => new Uint8Array([1]),
    harness: () => new ScriptHarness(program),
    tools: async () => [],
    rules: async () => [],
    openWorkspace: async () => workspace,
    restoreWorkspace: async () => ({ workspace }),
  }
  const lease = {
    epoch: 1,
    seq: 0,
    snapshot: 0,
    checkpoint: 0,
    ttl_ms: 60_000,
    place: {},
    waited_ms: 0,
    moving: false,
    left: false,
  }
  const session = new Session(options, { ...lease, sid: relay.sid })
  const ran = session.run()
  await until(
    'the model is asked, and the files are stored',
    () => calls === 1 && relay.entries.some(({ kind }) => kind === 'checkpoint'),
  )
  session.leave({ why: 'shutdown', within_ms: 60_000, turns: new SavingTurns(1, 1) })
  await until('the files are stored once more', () => stored === 2)
  for (let n = 0; n < 20; n++) await turn()
  // The answer comes while Stop is being written: after the session has looked for what ended, before it lets go.
  relay.before = async (entries) => {
    if (!entries.some(({ kind }) => kind === 'received')) return
    const usage = { input_tokens: 1, output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0 }
    answer.resolve({ content: [{ type: 'text', text: 'late' }], stop_reason: 'end_turn', model: 'm', usage })
    for (let n = 0; n < 20; n++) await turn()
  }
  session.command(relay.command(2, 'stop', {}))
  expect(await ran).toBe('handed-off')
  const outcomes = relay.entries.filter((entry) => entry.kind === 'outcome' && entry.body.effect === 1)
  expect(outcomes).toMatchObject([{ body: { result: { content: [{ text: 'late' }] } } }])
})
