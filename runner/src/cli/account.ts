/** This machine's view of its account, for commands that look or steer: sessions, runners, journals, commands. */
import * as v from 'valibot'
import { openEntry, type Opened } from '@baton/shared/entries.ts'
import { BatonError } from '@baton/shared/errors.ts'
import { COMMANDS, DeviceAbout, RunnerAbout, SessionMeta } from '@baton/shared/journal.ts'
import { accountKey, newId, sessionKey, type Account } from '@baton/shared/keys.ts'
import {
  LIMITS,
  type AskGives,
  type CommandKind,
  type DeviceInfo,
  type Entry,
  type Notice,
  type Placement,
  type RunnerInfo,
  type SessionInfo,
} from '@baton/shared/protocol.ts'
import { openJson, place, sealJson } from '@baton/shared/seal.ts'
import type { ConnectionState } from '@baton/shared/connection.ts'
import { readEntry } from '@baton/shared/view/entry.ts'
import { partOf } from '@baton/shared/view/sessions.ts'
import { EMPTY, reduce, type Transcript } from '@baton/shared/view/transcript.ts'
import { loadIdentity, loadRelay, type Identity } from '../daemon/identity.ts'
import { Link } from '../daemon/link.ts'
import { defaultName } from '../daemon/runner.ts'
import { dataFolder } from './args.ts'
import { dismissedIn } from './dismissed.ts'
import { cleanLine } from './term/text.ts'

export interface NamedSession extends SessionInfo {
  named: SessionMeta
}
export interface NamedRunner extends RunnerInfo {
  about: RunnerAbout
}

export interface NamedDevice extends DeviceInfo {
  about: DeviceAbout
}
export interface Listed {
  sessions: NamedSession[]
  runners: NamedRunner[]
  devices: NamedDevice[]
}

const CONNECT_MS = 10_000
/** A relay that refuses the connection, or is not there, may be about to start; after this long it is not. */
const REFUSED_MS = 2_000
const CANDIDATES = 8
/** `running`, `waiting`, and room. */
const STATUS_COLUMNS = 9
const UNREADABLE = 'a session that this machine can not read'

export class AccountView {
  readonly identity: Identity
  readonly folder: string
  readonly #link: Link
  readonly #hearing = new Set<(notice: Notice) => void>()
  readonly #seeing = new Set<(state: ConnectionState) => void>()

  private constructor(identity: Identity, folder: string, origin: string, about: DeviceAbout) {
    this.identity = identity
    this.folder = folder
    this.#link = new Link({
      ...{ origin, ...identity, about },
      onNotice: (notice) => this.#hearing.forEach((hear) => hear(notice)),
      onState: (state) => this.#seeing.forEach((see) => see(state)),
    })
  }

  /** Connects. Throws BatonError `no-identity`, `offline`, or the relay's refusal. */
  static async open(data: string | undefined, within_ms = CONNECT_MS): Promise<AccountView> {
    const folder = dataFolder(data)
    const [identity, relay] = [await loadIdentity(folder), await loadRelay(folder)]
    if (!identity || !relay) throw new BatonError('no-identity')
    const about = relay.about ?? { name: defaultName(), kind: 'cli' }
    const view = new AccountView(identity, folder, relay.origin, about)
    const giveUp = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const end = view.onState(({ at }) => {
      if (at === 'waiting') timer ??= setTimeout(() => giveUp.abort(), REFUSED_MS)
    })
    view.link.connection.start()
    try {
      await view.link.ready(AbortSignal.any([AbortSignal.timeout(within_ms), giveUp.signal]))
      return view
    } catch (cause) {
      view.close()
      throw cause instanceof BatonError ? cause : new BatonError('offline', `(${relay.origin})`, { cause })
    } finally {
      clearTimeout(timer)
      end()
    }
  }

  /** Hears notices of the connection until the returned function is called. `list` and `watch` make them come. */
  onNotice(hear: (notice: Notice) => void): () => void {
    this.#hearing.add(hear)
    return () => this.#hearing.delete(hear)
  }

  onState(see: (state: ConnectionState) => void): () => void {
    this.#seeing.add(see)
    return () => this.#seeing.delete(see)
  }

  get account(): Account {
    return this.identity.account
  }

  get link(): Link {
    return this.#link
  }

  close(): void {
    this.#link.connection.close()
  }

  async list(): Promise<Listed> {
    return AccountView.namesOf(this.identity, await this.#link.ask('list', {}))
  }

  /** A list with its names opened. */
  static namesOf({ account }: Identity, { sessions, runners, devices }: AskGives<'list'>): Listed {
    return {
      sessions: sessions.map((session) => namedSession(account, session)),
      runners: runners.map((runner) => namedRunner(account, runner)),
      devices: devices.map((device) => namedDevice(account, device)),
    }
  }

  named(session: SessionInfo): NamedSession {
    return namedSession(this.identity.account, session)
  }
  namedRunner(runner: RunnerInfo): NamedRunner {
    return namedRunner(this.identity.account, runner)
  }
  namedDevice(device: DeviceInfo): NamedDevice {
    return namedDevice(this.identity.account, device)
  }

  /**
   * The session that a person means: by id or its beginning, else by words of its title; without any, the only one there is that
   * was not dismissed here. Throws BatonError `which-session` with the candidates, `no-session`.
   */
  async find(text: string | undefined): Promise<NamedSession> {
    const { sessions } = await this.list()
    const gone = text === undefined ? await dismissedIn(this.folder) : new Set()
    const found = candidates(
      sessions.filter(({ sid }) => !gone.has(sid)),
      text,
    )
    if (found.length > 1) {
      const which =
        text === undefined ? `There are ${found.length}:` : `${JSON.stringify(text)} fits ${found.length}:`
      throw new BatonError('which-session', `${which}\n${listed(found)}\n`)
    }
    if (!found[0]) throw new BatonError('no-session', text === undefined ? '' : `(${JSON.stringify(text)})`)
    return found[0]
  }

  /** The sessions that are named, each once. Throws as `find`. */
  async findEach(names: readonly string[]): Promise<NamedSession[]> {
    const found = new Map<string, NamedSession>()
    for (const name of names) {
      const session = await this.find(name)
      found.set(session.sid, session)
    }
    return [...found.values()]
  }

  async create(sid: string, meta: SessionMeta, where: Placement): Promise<void> {
    await this.#link.ask('create', {
      sid,
      meta: sealJson(this.keyOf(sid), meta, place.meta(sid)),
      place: where,
    })
  }

  /** Sends a command; resolves with its id once it is durable. Throws BatonError `bad-input`, and what the relay refuses. */
  async command<K extends CommandKind>(
    sid: string,
    kind: K,
    body: v.InferInput<(typeof COMMANDS)[K]>,
    options: { place?: Placement; id?: string } = {},
  ): Promise<string> {
    const id = options.id ?? newId()
    const read = v.safeParse(COMMANDS[kind], body)
    if (!read.success) throw new BatonError('bad-input', `(${v.summarize(read.issues)})`)
    const sealed = sealJson(this.keyOf(sid), read.output, place.command(sid, kind, id))
    await this.#link.ask('command', {
      ...{ sid, id, kind, body: sealed },
      ...(options.place ? { place: options.place } : {}),
    })
    return id
  }

  /** All entries of a session, opened. */
  async *entries(sid: string): AsyncGenerator<Opened> {
    for await (const page of this.#pages(sid))
      for (const entry of page) yield openEntry(this.keyOf(sid), sid, entry)
  }

  /** What the journal says so far, as people see it. */
  async transcript(sid: string): Promise<Transcript> {
    const key = this.keyOf(sid)
    let read = EMPTY
    for await (const page of this.#pages(sid))
      read = reduce(
        read,
        page.map((entry) => readEntry(key, sid, entry)),
      )
    return read
  }

  async *#pages(sid: string): AsyncGenerator<Entry[]> {
    let from = 1
    for (;;) {
      const { entries, tail } = await this.#link.ask('read', { sid, from, limit: LIMITS.read_entries })
      yield entries
      from += entries.length
      if (from > tail || entries.length === 0) return
    }
  }

  keyOf(sid: string): Uint8Array {
    return sessionKey(this.identity.account, sid)
  }
}

/** One that can't be read, of a newer version say, is named so and hurts no other. */
function namedSession(account: Account, session: SessionInfo): NamedSession {
  const { sid, meta } = session
  const none: SessionMeta = { title: UNREADABLE, agent: '', mode: 'ask', workspace: '' }
  const sealed = (): unknown => openJson(sessionKey(account, sid), meta, place.meta(sid))
  return { ...session, named: readable(SessionMeta, sealed) ?? none }
}

function namedRunner(account: Account, runner: RunnerInfo): NamedRunner {
  const { device, body } = runner
  const none: RunnerAbout = {
    ...{ name: device.slice(0, 8), pools: [], platform: '', workspaces: [] },
    model: 'anthropic',
  }
  const sealed = (): unknown => openJson(accountKey(account), body, place.runner(device))
  return { ...runner, about: readable(RunnerAbout, sealed) ?? none }
}

function namedDevice(account: Account, info: DeviceInfo): NamedDevice {
  const { device, body } = info
  const about = readable(DeviceAbout, () => openJson(accountKey(account), body, place.device(device)))
  return { ...info, about: about ?? { name: device.slice(0, 8), kind: 'cli' } }
}

/** An id or a beginning of one counts before words of a title. */
export function candidates(sessions: readonly NamedSession[], text: string | undefined): NamedSession[] {
  if (text === undefined) return [...sessions]
  const exact = sessions.filter(({ sid }) => sid === text)
  if (exact.length > 0) return exact
  const begun = sessions.filter(({ sid }) => sid.startsWith(text))
  if (begun.length > 0) return begun
  const words = text.toLowerCase()
  return words.trim() === '' ? [] : sessions.filter(({ named }) => named.title.toLowerCase().includes(words))
}

/** Names by device id: runners by the one that they announce now, other devices by the one that they signed in with. */
export function namesOf({ runners, devices }: Listed): Map<string, string> {
  return new Map([...devices, ...runners].map(({ device, about }) => [device, about.name]))
}

/** What needs a person first, below it what failed; of each part the newest first. */
export function inOrder<S extends SessionInfo>(sessions: readonly S[]): S[] {
  const parts = ['needs-you', 'running', 'parked']
  const rank = (session: S): number =>
    parts.indexOf(partOf(session)) + (session.status === 'failed' ? 0.5 : 0)
  return sessions.toSorted((a, b) => rank(a) - rank(b) || b.changed_at - a.changed_at)
}

/** `  7fQ2abcd  running  Fix the build`. `length`: of the id. */
export function sessionLine({ sid, status, named }: NamedSession, length: number): string {
  return `  ${sid.slice(0, length)}  ${status.padEnd(STATUS_COLUMNS)}${cleanLine(named.title)}`
}

function listed(sessions: readonly NamedSession[]): string {
  const ids = sessions.map(({ sid }) => sid)
  // As many letters as tell them apart.
  const length = Math.max(8, ...ids.map((id) => sharedLength(id, ids) + 1))
  const rows = inOrder(sessions)
    .slice(0, CANDIDATES)
    .map((session) => sessionLine(session, length))
  const more = sessions.length - CANDIDATES
  return [...rows, ...(more > 0 ? [`  … and ${more} more: baton ls`] : [])].join('\n')
}

function sharedLength(id: string, ids: readonly string[]): number {
  return Math.max(
    0,
    ...ids.map((other) => {
      if (other === id) return 0
      let i = 0
      while (i < id.length && id[i] === other[i]) i++
      return i
    }),
  )
}

function readable<S extends v.GenericSchema>(schema: S, open: () => unknown): v.InferOutput<S> | undefined {
  try {
    return v.parse(schema, open())
  } catch {
    return undefined
  }
}

/** Runs something with an open account view and closes it whatever happens. */
export async function withAccount(
  data: string | undefined,
  work: (view: AccountView) => Promise<number>,
): Promise<number> {
  const view = await AccountView.open(data)
  try {
    return await work(view)
  } finally {
    view.close()
  }
}
