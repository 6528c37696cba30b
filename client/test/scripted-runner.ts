/**
 * A runner whose work is written by the test: it signs in, serves, claims and appends through a real relay, with the real
 * protocol and keys, but a test says what the agent asks and what comes out.
 */
import { Connection } from '@baton/shared/connection.ts'
import { callDigest, requestDigest } from '@baton/shared/digest.ts'
import { openCommand, type BodyOf } from '@baton/shared/entries.ts'
import { ERRORS, type ErrorCode } from '@baton/shared/errors.ts'
import type { Json } from '@baton/shared/guest.ts'
import { accountKey, newDevice, poolTag, sessionKey, type Account, type Device } from '@baton/shared/keys.ts'
import type { Command, Hint, Notice, Placement, SealedKind, Status } from '@baton/shared/protocol.ts'
import { httpBlobs, type BlobStore } from '@baton/shared/blobs.ts'
import { utf8 } from '@baton/shared/bytes.ts'
import { place, sealJson } from '@baton/shared/seal.ts'
import { until } from './until.ts'

export interface ScriptedRunnerOptions {
  origin: string
  account: Account
  name: string
  pools?: string[]
  workspaces?: { path: string; name: string; branch?: string }[]
  model?: 'anthropic' | 'rehearsal'
  models?: string[]
}

interface Held {
  epoch: number
  seq: number
  effects: number
  inbox: Command[]
}

const RENEW_MS = 1_000

/** What the tools touch, as a start message tells it. */
const TOOLS = [
  { name: 'bash', access: 'run' },
  { name: 'edit', access: 'edit' },
  { name: 'write', access: 'edit' },
  { name: 'read', access: 'read' },
]

type Input = { [key: string]: Json }

export class ScriptedRunner {
  readonly device: Device
  readonly name: string
  /** Sids that were offered and not taken. */
  readonly offers: string[] = []
  readonly held = new Map<string, Held>()
  readonly #account: Account
  readonly #options: ScriptedRunnerOptions
  readonly #connection: Connection
  #serving: Promise<void> = Promise.resolve()
  #away: string[] | undefined
  #renewing: ReturnType<typeof setInterval> | undefined

  constructor(options: ScriptedRunnerOptions) {
    this.#options = options
    this.#account = options.account
    this.name = options.name
    this.device = newDevice(options.account)
    this.#connection = this.#newConnection()
  }

  #newConnection(): Connection {
    const { origin, account, name } = this.#options
    return new Connection({
      origin,
      account,
      device: this.device,
      about: { name, kind: 'laptop' },
      onNotice: (notice) => this.#noticed(notice),
      onState: ({ at }) => {
        if (at === 'open') this.#serving = this.#serve().catch(() => undefined)
      },
    })
  }

  async start(): Promise<void> {
    this.#connection.start()
    this.#renewing = setInterval(() => void this.#renew().catch(() => undefined), RENEW_MS)
    await until(`${this.name} is connected`, () => this.#connection.state.at === 'open')
    await this.#serving
  }

  /** Serves, and catches up with what came into the inboxes meanwhile; again after each reconnect. */
  async #serve(): Promise<void> {
    const { pools = [], workspaces = [], model = 'anthropic', models } = this.#options
    const about = {
      name: this.name,
      pools,
      platform: 'linux x64',
      model,
      workspaces,
      models,
      away: this.#away,
    }
    await this.#connection.ask('serve', {
      capacity: 8,
      tags: pools.map((pool) => poolTag(this.#account, pool)),
      body: sealJson(accountKey(this.#account), about, place.runner(this.device.id)),
    })
    // A renewal makes the relay look for commands that it has not told of.
    await this.#renew()
  }

  async #renew(): Promise<void> {
    const leases = [...this.held].map(([sid, { epoch }]) => ({ sid, epoch }))
    if (leases.length > 0) await this.#connection.ask('renew', { leases })
  }

  get isConnected(): boolean {
    return this.#connection.state.at === 'open'
  }

  async #catchUp(sid: string): Promise<void> {
    const { commands } = await this.#connection.ask('inbox', { sid })
    const inbox = this.held.get(sid)?.inbox
    for (const command of commands) {
      if (inbox && !inbox.some(({ id }) => id === command.id)) inbox.push(command)
    }
  }

  close(): void {
    clearInterval(this.#renewing)
    this.#connection.close()
  }

  #noticed(notice: Notice): void {
    if (notice.t === 'offer' && !this.offers.includes(notice.sid)) this.offers.push(notice.sid)
    if (notice.t === 'inbox') {
      const inbox = this.held.get(notice.sid)?.inbox
      if (inbox && !inbox.some(({ id }) => id === notice.command.id)) inbox.push(notice.command)
    }
  }

  /** Waits for an offer, of `sid` or of any session, and claims it. */
  async take(sid?: string): Promise<string> {
    const offered = await until(`${this.name} is offered a session`, () =>
      this.offers.find((offer) => sid === undefined || offer === sid),
    )
    this.offers.splice(this.offers.indexOf(offered), 1)
    await this.claim(offered)
    return offered
  }

  async claim(sid: string, effects = 0): Promise<void> {
    const { epoch, seq } = await this.#connection.ask('claim', { sid })
    this.held.set(sid, { epoch, seq, effects, inbox: [] })
    await this.#catchUp(sid)
  }

  /** Consumes the next command of a kind and journals it as received. Resolves with what was in it. */
  async receive(sid: string, kind: Command['kind']): Promise<Json> {
    const held = this.#of(sid)
    const command = await until(`a ${kind} arrives at ${this.name}`, () =>
      held.inbox.find((c) => c.kind === kind),
    )
    held.inbox.splice(held.inbox.indexOf(command), 1)
    const opened = openCommand(this.#key(sid), sid, command) as Json
    const { id, n, device } = command
    const body = {
      kind,
      id,
      device,
      now: 0,
      command: opened,
      ...(kind === 'move' ? { place: command.place } : {}),
      ...(kind === 'start' ? { start: { tools: TOOLS } } : {}),
    }
    await this.append(sid, 'received', body as BodyOf<'received'>, {
      consumes: { n, id },
      hint: { status: 'running' },
    })
    return opened
  }

  async append<K extends SealedKind>(
    sid: string,
    kind: K,
    body: BodyOf<K>,
    extra: { hint?: Hint; consumes?: { n: number; id: string }; blobs?: string[] } = {},
  ): Promise<void> {
    await this.appendAll(sid, [{ kind, body, ...extra }])
  }

  /** Many entries in one write. */
  async appendAll(
    sid: string,
    entries: {
      kind: SealedKind
      body: unknown
      hint?: Hint
      consumes?: { n: number; id: string }
      blobs?: string[]
    }[],
  ): Promise<void> {
    const held = this.#of(sid)
    const first = held.seq + 1
    await this.#connection.ask('append', {
      sid,
      epoch: held.epoch,
      first,
      entries: entries.map(({ kind, body, blobs = [], ...rest }, i) => ({
        kind,
        body: sealJson(this.#key(sid), body, place.entry(sid, kind, first + i)),
        blobs,
        ...rest,
      })),
    })
    held.seq += entries.length
  }

  /** Begins a model call; returns its effect. */
  async think(sid: string): Promise<number> {
    const effect = this.#nextEffect(sid)
    await this.append(sid, 'intent', {
      effect,
      kind: 'llm',
      replay: 'safe',
      digest: requestDigest('llm', effect),
      attempt: 1,
      now: 0,
      llm: { prior: 0, added: 1 },
    })
    return effect
  }

  /** The call failed in a way that passes: the next attempt is `wait_ms` away. */
  async retry(sid: string, effect: number, attempt: number, code: ErrorCode, wait_ms: number): Promise<void> {
    const now = Date.now()
    await this.append(sid, 'intent', {
      effect,
      kind: 'llm',
      replay: 'safe',
      digest: requestDigest('llm', effect),
      attempt,
      now,
      retry: { code, message: ERRORS[code].what, not_before: now + wait_ms },
    })
  }

  async fail(sid: string, effect: number, code: ErrorCode): Promise<void> {
    await this.append(sid, 'outcome', { effect, now: 0, error: { code, message: ERRORS[code].what } })
  }

  stream(sid: string, effect: number, text: string, thought?: string): void {
    const said = thought === undefined ? { text } : { text, thought }
    const body = sealJson(this.#key(sid), said, place.delta(sid, effect))
    this.#connection.tell({ t: 'delta', sid, epoch: this.#of(sid).epoch, effect, body })
  }

  async say(sid: string, effect: number, text: string, thought?: string): Promise<void> {
    const thinking = [
      { type: 'redacted_thinking', data: 'cmVkYWN0ZWQ' },
      { type: 'thinking', thinking: thought ?? '', signature: 'c2lnbmF0dXJl' },
    ]
    const result = {
      content: [...(thought === undefined ? [] : thinking), { type: 'text', text }],
      stop_reason: 'end_turn',
      model: 'scripted',
      usage: { input_tokens: 1, output_tokens: 1, cache_read_tokens: 0, cache_write_tokens: 0 },
    }
    await this.append(sid, 'outcome', { effect, now: 0, result, duration_ms: 1200 })
  }

  /** Asks for an approval; `digest` other than the true one is what a lying relay or runner could show. */
  async ask(sid: string, name: string, input: Input, digest = callDigest(name, input)): Promise<number> {
    const effect = this.#nextEffect(sid)
    await this.append(
      sid,
      'intent',
      {
        effect,
        kind: 'approve',
        replay: 'safe',
        digest: requestDigest('approve', { name, input, digest }),
        attempt: 1,
        now: 0,
        approve: { name, input, digest },
      },
      { hint: { status: 'waiting', notify: true } },
    )
    return effect
  }

  /** Tells watchers something, as the agent does. */
  async emit(sid: string, type: string, data: Json): Promise<void> {
    await this.append(sid, 'event', { effect: this.#nextEffect(sid), type, data })
  }

  /** A blob of the session, opened. */
  async blob(sid: string, hash: string): Promise<Uint8Array> {
    return await this.#blobs().get(sid, this.#key(sid), hash)
  }

  /** The runner says that these sessions were here before it slept. */
  async tellAway(sids: string[]): Promise<void> {
    this.#away = sids
    await this.#serve()
  }

  async decided(sid: string, effect: number, approved: boolean, device: string): Promise<void> {
    await this.append(
      sid,
      'outcome',
      { effect, now: 0, result: { approved, device } },
      { hint: { status: 'running' } },
    )
  }

  async call(sid: string, name: string, input: Input, approval?: number): Promise<number> {
    const effect = this.#nextEffect(sid)
    const tool = { name, input, ...(approval === undefined ? {} : { approval }) }
    await this.append(sid, 'intent', {
      effect,
      kind: 'tool',
      replay: 'never',
      digest: requestDigest('tool', { name, input }),
      attempt: 1,
      now: 0,
      tool,
    })
    return effect
  }

  async did(sid: string, effect: number, text: string, detail: Input = {}, duration_ms = 40): Promise<void> {
    const is_error = typeof detail['exit_code'] === 'number' && detail['exit_code'] !== 0
    await this.append(sid, 'outcome', { effect, now: 0, result: { text, is_error, detail }, duration_ms })
  }

  /** A result that is too long for its entry. */
  async didAtLength(sid: string, effect: number, text: string): Promise<void> {
    const json = JSON.stringify({ text, is_error: false })
    const hash = await this.#blobs().put(sid, this.#key(sid), utf8(json))
    const blob = { hash, bytes: json.length, head: text.slice(0, 200), tail: text.slice(-200) }
    await this.append(sid, 'outcome', { effect, now: 0, blob, duration_ms: 900 }, { blobs: [hash] })
  }

  /** Waits for a prompt: the session is idle. */
  async rest(sid: string): Promise<void> {
    const effect = this.#nextEffect(sid)
    await this.append(
      sid,
      'intent',
      { effect, kind: 'prompt', replay: 'safe', digest: requestDigest('prompt', {}), attempt: 1, now: 0 },
      { hint: { status: 'idle' } },
    )
  }

  async release(sid: string, status: Status, to?: Placement): Promise<void> {
    const { epoch } = this.#of(sid)
    await this.#connection.ask('release', { sid, epoch, status, ...(to ? { place: to } : {}) })
    this.held.delete(sid)
  }

  effectsOf(sid: string): number {
    return this.#of(sid).effects
  }

  #blobs(): BlobStore {
    return httpBlobs(this.#connection.origin, () => {
      const { state } = this.#connection
      return state.at === 'open' ? state.welcome.token : ''
    })
  }

  #nextEffect(sid: string): number {
    return ++this.#of(sid).effects
  }

  #key(sid: string): Uint8Array {
    return sessionKey(this.#account, sid)
  }

  #of(sid: string): Held {
    const held = this.held.get(sid)
    if (!held) throw new Error(`${this.name} does not hold ${sid}`)
    return held
  }
}
