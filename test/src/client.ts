/** A device of an account as tests need it: sends commands, decides, reads journals. */
import type { Mode } from '@baton/shared/guest.ts'
import type * as v from 'valibot'
import { openEntry, type Opened } from '@baton/shared/entries.ts'
import type { COMMANDS, Rule, SessionMeta } from '@baton/shared/journal.ts'
import {
  newDevice,
  newId,
  sessionKey,
  signDecision,
  signMode,
  type Account,
  type Device,
} from '@baton/shared/keys.ts'
import { LIMITS, type CommandKind, type Placement, type SessionInfo } from '@baton/shared/protocol.ts'
import { place, sealJson } from '@baton/shared/seal.ts'
import { Link } from '@baton/runner/daemon/link.ts'
import { until } from './until.ts'

type CommandBody<K extends CommandKind> = v.InferInput<(typeof COMMANDS)[K]>

export class TestClient implements AsyncDisposable {
  readonly account: Account
  readonly device: Device
  readonly link: Link
  readonly #polled = new Map<string, Opened[]>()

  constructor(origin: string, account: Account, device = newDevice(account)) {
    this.account = account
    this.device = device
    this.link = new Link({ origin, account, device, about: { name: 'test', kind: 'cli' } })
  }

  static async open(origin: string, account: Account): Promise<TestClient> {
    const client = new TestClient(origin, account)
    client.link.connection.start()
    await client.link.ready()
    return client
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.link.connection.close()
  }

  /** Makes a session and starts it; resolves with its id. */
  async start(
    where: Placement,
    start: Omit<CommandBody<'start'>, 'mode'> & { mode?: Mode },
    title = 'test',
  ): Promise<string> {
    const sid = newId()
    const { agent, workspace, mode = 'ask' } = start
    const meta: SessionMeta = { title, agent, workspace, mode }
    const sealed = sealJson(sessionKey(this.account, sid), meta, place.meta(sid))
    await this.link.ask('create', { sid, meta: sealed, place: where })
    await this.command(sid, 'start', { ...start, mode })
    return sid
  }

  /** Sends a command; resolves with its id when it is durable. */
  async command<K extends CommandKind>(
    sid: string,
    kind: K,
    body: CommandBody<K>,
    options: { id?: string; place?: Placement } = {},
  ): Promise<string> {
    const id = options.id ?? newId()
    const sealed = sealJson(sessionKey(this.account, sid), body, place.command(sid, kind, id))
    await this.link.ask('command', {
      ...{ sid, id, kind, body: sealed },
      ...(options.place ? { place: options.place } : {}),
    })
    return id
  }

  /** `always`: a rule that goes with an approval. */
  decide(sid: string, effect: number, digest: string, approved = true, always?: Rule): Promise<string> {
    const { id, certificate } = this.device
    const signature = signDecision(this.device, { sid, effect, digest, approved, always })
    const rule = always ? { always } : {}
    return this.command(sid, 'decision', {
      ...{ effect, digest, approved, device: id, certificate, signature, ...rule },
    })
  }

  /** Changes the mode. `revision`: changes so far. */
  setMode(sid: string, mode: Mode, revision: number): Promise<string> {
    const { id, certificate } = this.device
    const signature = signMode(this.device, { sid, mode, revision })
    return this.command(sid, 'mode', { mode, revision, device: id, certificate, signature })
  }

  /** The approvals that wait. */
  async pending(sid: string): Promise<{ effect: number; digest: string; name: string }[]> {
    const open = new Map<number, { effect: number; digest: string; name: string }>()
    for (const entry of await this.poll(sid)) {
      if (entry.kind === 'intent' && entry.body.approve) {
        open.set(entry.body.effect, { effect: entry.body.effect, ...entry.body.approve })
      } else if (entry.kind === 'outcome') open.delete(entry.body.effect)
    }
    return [...open.values()]
  }

  /** Waits for an approval and gives it. */
  async approveNext(sid: string): Promise<void> {
    await until('an approval is asked for', async () => (await this.pending(sid)).length > 0)
    for (const { effect, digest } of await this.pending(sid)) await this.decide(sid, effect, digest)
  }

  /** The whole journal, read anew and opened. */
  entries(sid: string): Promise<Opened[]> {
    return this.#read(sid, [])
  }

  /** The journal for a poll: only what has come since the last one is read and opened. */
  async poll(sid: string): Promise<Opened[]> {
    const entries = await this.#read(sid, this.#polled.get(sid) ?? [])
    this.#polled.set(sid, entries)
    return entries
  }

  async #read(sid: string, known: Opened[]): Promise<Opened[]> {
    const key = sessionKey(this.account, sid)
    const all = [...known]
    for (;;) {
      const from = all.length + 1
      const { entries, tail } = await this.link.ask('read', { sid, from, limit: LIMITS.read_entries })
      all.push(...entries.map((entry) => openEntry(key, sid, entry)))
      if (all.length >= tail || entries.length === 0) return all
    }
  }

  /** Waits until the journal satisfies a condition; gives it up to there, read anew. */
  async untilEntries(sid: string, what: string, reached: (entries: Opened[]) => boolean): Promise<Opened[]> {
    const polled = await until(what, async () => {
      const entries = await this.poll(sid)
      return reached(entries) && entries
    })
    return (await this.entries(sid)).slice(0, polled.length)
  }

  async info(sid: string): Promise<SessionInfo> {
    const { sessions } = await this.link.ask('list', {})
    const info = sessions.find((session) => session.sid === sid)
    if (!info) throw new Error(`no session ${sid}`)
    return info
  }

  /** Waits until a runner is online; gives its device id. */
  async online(count: number): Promise<string[]> {
    return until(`${count} runners are online`, async () => {
      const { runners } = await this.link.ask('list', {})
      const ids = runners.filter((runner) => runner.online).map((runner) => runner.device)
      return ids.length >= count && ids
    })
  }
}
