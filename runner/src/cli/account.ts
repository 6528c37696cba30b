/** This machine's view of its account, for commands that look or steer: sessions, runners, journals, commands. */
import * as v from 'valibot'
import { openEntry, type Opened } from '@baton/shared/entries.ts'
import { BatonError } from '@baton/shared/errors.ts'
import { COMMANDS, RunnerAbout, SessionMeta } from '@baton/shared/journal.ts'
import { accountKey, newId, sessionKey } from '@baton/shared/keys.ts'
import {
  LIMITS,
  type CommandKind,
  type Placement,
  type RunnerInfo,
  type SessionInfo,
} from '@baton/shared/protocol.ts'
import { openJson, place, sealJson } from '@baton/shared/seal.ts'
import { loadIdentity, loadRelay, type Identity } from '../daemon/identity.ts'
import { Link } from '../daemon/link.ts'
import { defaultName } from '../daemon/runner.ts'
import { dataFolder } from './args.ts'

export interface NamedSession extends SessionInfo {
  named: SessionMeta
}
export interface NamedRunner extends RunnerInfo {
  about: RunnerAbout
}

const CONNECT_MS = 10_000

export class AccountView {
  readonly identity: Identity
  readonly #link: Link

  private constructor(identity: Identity, link: Link) {
    this.identity = identity
    this.#link = link
  }

  /** Connects. Throws BatonError `no-identity`, `offline`, or the relay's refusal. */
  static async open(data: string | undefined): Promise<AccountView> {
    const folder = dataFolder(data)
    const [identity, relay] = [await loadIdentity(folder), await loadRelay(folder)]
    if (!identity || !relay) throw new BatonError('no-identity')
    const link = new Link({
      origin: relay.origin,
      ...identity,
      about: relay.about ?? { name: defaultName(), kind: 'cli' },
    })
    link.connection.start()
    await link.ready(AbortSignal.timeout(CONNECT_MS)).catch((cause: unknown) => {
      link.connection.close()
      throw cause instanceof BatonError ? cause : new BatonError('offline', `(${relay.origin})`, { cause })
    })
    return new AccountView(identity, link)
  }

  get link(): Link {
    return this.#link
  }

  close(): void {
    this.#link.connection.close()
  }

  async list(): Promise<{ sessions: NamedSession[]; runners: NamedRunner[] }> {
    const { sessions, runners } = await this.#link.ask('list', {})
    const names = accountKey(this.identity.account)
    return {
      sessions: sessions.map((session) => {
        const sealed = openJson(this.#key(session.sid), session.meta, place.meta(session.sid))
        return { ...session, named: v.parse(SessionMeta, sealed) }
      }),
      runners: runners.map((runner) => {
        const about = v.parse(RunnerAbout, openJson(names, runner.body, place.runner(runner.device)))
        return { ...runner, about }
      }),
    }
  }

  /** The session that a person means: by id or its beginning; without one, the only one there is. */
  async find(text: string | undefined): Promise<NamedSession> {
    const { sessions } = await this.list()
    const found = sessions.filter(({ sid }) => text === undefined || sid.startsWith(text))
    if (found.length > 1) {
      throw new BatonError('usage', `Which session? ${found.map(({ sid }) => sid.slice(0, 8)).join(', ')}.`)
    }
    if (!found[0]) throw new BatonError('no-session', text === undefined ? '' : `(${text})`)
    return found[0]
  }

  async create(sid: string, meta: SessionMeta, where: Placement): Promise<void> {
    await this.#link.ask('create', {
      sid,
      meta: sealJson(this.#key(sid), meta, place.meta(sid)),
      place: where,
    })
  }

  /** Sends a command; resolves with its id once it is durable. */
  async command<K extends CommandKind>(
    sid: string,
    kind: K,
    body: v.InferInput<(typeof COMMANDS)[K]>,
    options: { place?: Placement; id?: string } = {},
  ): Promise<string> {
    const id = options.id ?? newId()
    const sealed = sealJson(this.#key(sid), v.parse(COMMANDS[kind], body), place.command(sid, kind, id))
    await this.#link.ask('command', {
      ...{ sid, id, kind, body: sealed },
      ...(options.place ? { place: options.place } : {}),
    })
    return id
  }

  /** All entries of a session, opened. */
  async *entries(sid: string): AsyncGenerator<Opened> {
    let from = 1
    for (;;) {
      const { entries, tail } = await this.#link.ask('read', { sid, from, limit: LIMITS.read_entries })
      for (const entry of entries) yield openEntry(this.#key(sid), sid, entry)
      from += entries.length
      if (from > tail || entries.length === 0) return
    }
  }

  #key(sid: string): Uint8Array {
    return sessionKey(this.identity.account, sid)
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
