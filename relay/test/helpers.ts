/** What the relay's tests share: a real Redis in a temporary folder, relays on it, and a peer that speaks the protocol by hand. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BatonError, isErrorCode } from '@baton/shared/errors.ts'
import { newAccount, newDevice, newId, signChallenge, type Account, type Device } from '@baton/shared/keys.ts'
import {
  PROTOCOL,
  SOCKET_PATH,
  type AskGives,
  type AskName,
  type AskWith,
  type NewEntry,
  type RelayFrame,
} from '@baton/shared/protocol.ts'
import { Redis } from 'ioredis'
import { pino } from 'pino'
import { afterAll } from 'vitest'
import { WebSocket } from 'ws'
import { startRelay, type RunningRelay, type StartOptions } from '../src/main.ts'
import { startRedis, type RedisServer } from '../src/redis-server.ts'

export const silent = pino({ level: 'silent' })

/** Waits until `look` gives something. The deadline only ends what hangs. */
export async function until<T>(
  look: () => T | Promise<T>,
  what: string,
  deadline_ms = 30_000,
): Promise<Exclude<T, undefined | null | false>> {
  const end = Date.now() + deadline_ms
  for (;;) {
    const value = await look()
    if (value !== undefined && value !== null && value !== false) {
      return value as Exclude<T, undefined | null | false>
    }
    if (Date.now() > end) throw new Error(`waited in vain until ${what}`)
    await new Promise((resume) => setTimeout(resume, 5))
  }
}

/** Undone in reverse order when the test file ends. */
const cleanups: (() => Promise<unknown>)[] = []

export function atEnd(cleanup: () => Promise<unknown>): void {
  cleanups.push(cleanup)
}

afterAll(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup()
})

export async function temporaryFolder(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'baton-relay-'))
  atEnd(() => rm(dir, { recursive: true, force: true }))
  return dir
}

export async function redisForTest(): Promise<RedisServer> {
  const server = await startRedis({ dataDir: await temporaryFolder(), log: silent })
  atEnd(() => server.close())
  return server
}

/** A client of Redis to look behind the relay's back. */
export function lookInto(redis: RedisServer | string): Redis {
  const client = new Redis(typeof redis === 'string' ? redis : redis.path)
  client.on('error', () => undefined)
  atEnd(async () => client.disconnect())
  return client
}

/** Short times, so that what has to happen happens soon; generous limits, so that only tests of limits meet them. */
export async function relayForTest(
  redis: RedisServer | string,
  options: Partial<StartOptions> = {},
): Promise<RunningRelay> {
  const { limits, ...rest } = options
  const relay = await startRelay({
    redis: typeof redis === 'string' ? redis : redis.path,
    port: 0,
    log: silent,
    accounts_max: 10_000,
    // Raw peers do not ping.
    heartbeat_ms: 120_000,
    lease_ms: 60_000,
    sweep_ms: 50,
    offer_ms: 300,
    poll_ms: 200,
    ...rest,
    limits: { connects_burst: 1e6, frames_burst: 1e6, frames_per_s: 1e6, ...limits },
  })
  atEnd(() => relay.close())
  return relay
}

export interface Member {
  account: Account
  device: Device
}

export function newMember(account: Account = newAccount()): Member {
  return { account, device: newDevice(account) }
}

type Refusal = Extract<RelayFrame, { t: 'refusal' }>

/** A connection without any help: no reconnect, no validation of what arrives, able to misbehave. */
export class RawPeer {
  readonly socket: WebSocket
  readonly member: Member
  /** Everything that was not an answer or a refusal, in order of arrival. */
  readonly notices: RelayFrame[] = []
  readonly refusals: Refusal[] = []
  readonly closed: Promise<{ code: number; reason: string }>
  readonly #waiting = new Map<number, { resolve: (value: unknown) => void; reject: (error: Error) => void }>()
  readonly #about: string
  #re = 0
  #read = 0

  /** `about`: what the device says of itself, sealed. */
  constructor(relay: Pick<RunningRelay, 'url'>, member: Member = newMember(), about = 'AAAA') {
    this.member = member
    this.#about = about
    this.socket = new WebSocket(`${relay.url.replace('http', 'ws')}${SOCKET_PATH}`)
    this.socket.on('error', () => undefined)
    this.socket.on('message', (data) => this.#hear(JSON.parse((data as Buffer).toString()) as RelayFrame))
    this.closed = new Promise((resolve) => {
      this.socket.on('close', (code, reason) => {
        for (const { reject } of this.#waiting.values()) reject(new BatonError('offline'))
        resolve({ code, reason: reason.toString() })
      })
    })
    atEnd(async () => this.socket.terminate())
  }

  static async signIn(relay: Pick<RunningRelay, 'url'>, member: Member = newMember()): Promise<RawPeer> {
    const peer = new RawPeer(relay, member)
    await peer.signIn()
    return peer
  }

  get id(): string {
    return this.member.device.id
  }

  async signIn(): Promise<Extract<RelayFrame, { t: 'welcome' }>> {
    const { account, device } = this.member
    await this.open()
    this.hello()
    const { relay, nonce } = await this.notice('challenge')
    this.sendFrame({ t: 'proof', signature: signChallenge(device, account.id, relay, nonce) })
    return this.notice('welcome')
  }

  async open(): Promise<void> {
    await until(() => this.socket.readyState !== WebSocket.CONNECTING, 'the socket opens')
  }

  hello(changes: Record<string, unknown> = {}): void {
    const { account, device } = this.member
    const { certificate } = device
    const hello = {
      t: 'hello',
      protocol: PROTOCOL,
      account: account.id,
      device: device.id,
      certificate,
      body: this.#about,
    }
    this.sendFrame({ ...hello, ...changes })
  }

  sendFrame(frame: unknown): void {
    this.socket.send(JSON.stringify(frame))
  }

  ask<N extends AskName>(what: N, with_: AskWith<N>): Promise<AskGives<N>> {
    return this.askAnything(what, with_) as Promise<AskGives<N>>
  }

  askAnything(what: string, with_: unknown): Promise<unknown> {
    const re = ++this.#re
    return new Promise((resolve, reject) => {
      this.#waiting.set(re, { resolve, reject })
      this.sendFrame({ t: 'ask', re, what, with: with_ })
    })
  }

  /** The code with which the relay refuses. */
  async refused(what: string, with_: unknown): Promise<string> {
    try {
      await this.askAnything(what, with_)
    } catch (error) {
      if (error instanceof BatonError) return error.code
      throw error
    }
    throw new Error(`${what} was not refused`)
  }

  /** The next notice of a kind, after the one that this gave last. */
  async notice<T extends RelayFrame['t']>(
    kind: T,
    fits: (frame: Extract<RelayFrame, { t: T }>) => boolean = () => true,
  ): Promise<Extract<RelayFrame, { t: T }>> {
    return until(() => {
      for (let i = this.#read; i < this.notices.length; i++) {
        const frame = this.notices[i] as Extract<RelayFrame, { t: T }>
        if (frame.t !== kind || !fits(frame)) continue
        this.#read = i + 1
        return frame
      }
      if (this.socket.readyState === WebSocket.CLOSED) throw new Error(`closed before ${kind}`)
      return undefined
    }, `a notice of kind ${kind} comes`)
  }

  of<T extends RelayFrame['t']>(kind: T): Extract<RelayFrame, { t: T }>[] {
    return this.notices.filter((frame) => frame.t === kind) as Extract<RelayFrame, { t: T }>[]
  }

  /** Seqs of all entries that came for a session, in order of arrival. */
  seqs(sid: string): number[] {
    return this.of('entries')
      .filter((frame) => frame.sid === sid)
      .flatMap((frame) => frame.entries.map((entry) => entry.seq))
  }

  async session(place: AskWith<'create'>['place'] = {}): Promise<string> {
    const sid = newId()
    await this.ask('create', { sid, meta: 'bWV0YQ', place })
    return sid
  }

  command(sid: string, more: Partial<AskWith<'command'>> = {}): Promise<AskGives<'command'>> {
    return this.ask('command', { sid, id: newId(), kind: 'prompt', body: 'Ym9keQ', ...more })
  }

  close(): Promise<unknown> {
    this.socket.close()
    return this.closed
  }

  #hear(frame: RelayFrame): void {
    if (frame.t === 'answer') this.#take(frame.re)?.resolve(frame.with)
    else if (frame.t === 'refusal') {
      this.refusals.push(frame)
      const code = isErrorCode(frame.code) ? frame.code : 'internal'
      this.#take(frame.re)?.reject(new BatonError(code, frame.message))
    } else this.notices.push(frame)
  }

  #take(re: number) {
    const waiting = this.#waiting.get(re)
    this.#waiting.delete(re)
    return waiting
  }
}

export function entry(kind: NewEntry['kind'] = 'event', more: Partial<NewEntry> = {}): NewEntry {
  return { kind, body: 'Ym9keQ', blobs: [], ...more }
}

/** Entries first, first+1, … */
export function entries(count: number, body = 'Ym9keQ'): NewEntry[] {
  return Array.from({ length: count }, () => entry('event', { body }))
}

/** A small generator with a seed (mulberry32), so that a failed run can be repeated. */
export function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
}
