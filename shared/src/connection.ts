/**
 * A peer's connection to the relay: signs in, keeps alive, reconnects by itself, and carries asks and notices. The same code
 * in browser and Node (both have WebSocket). What was missed while away is not its business: feeds resume by cursor (feed.ts).
 *
 *   connecting ──welcome──▸ open ──close, silence──▸ waiting ──time, nudge──▸ connecting
 *        └──────────────────refusal that no retry can heal──▸ refused
 */
import * as v from 'valibot'
import { Backoff } from './backoff.ts'
import { BatonError, isErrorCode, type ErrorCode } from './errors.ts'
import type { DeviceAbout } from './journal.ts'
import { accountKey, signChallenge, type Account, type Device } from './keys.ts'
import {
  ASKS,
  CLOSE,
  PROTOCOL,
  RelayFrame,
  SOCKET_PATH,
  type AskGives,
  type AskName,
  type AskWith,
  type Notice,
  type PeerFrame,
} from './protocol.ts'
import { place, sealJson } from './seal.ts'

export type Welcome = Extract<RelayFrame, { t: 'welcome' }>

export type ConnectionState =
  | { at: 'connecting'; attempt: number }
  | { at: 'open'; welcome: Welcome }
  /** `retry_at`: milliseconds since 1970; `reason` in words. */
  | { at: 'waiting'; attempt: number; retry_at: number; reason: string }
  /** Trying again would not help; `restart` after the cause is gone. */
  | { at: 'refused'; code: ErrorCode; message: string }
  | { at: 'closed' }

export interface ConnectionOptions {
  /** Origin of the relay, e.g. `http://127.0.0.1:7788`. */
  origin: string
  account: Account
  device: Device
  about: DeviceAbout
  onState?: (state: ConnectionState) => void
  onNotice?: (notice: Notice) => void
  /** From the socket's start to `welcome`. */
  handshake_ms?: number
  backoff?: Backoff
  openSocket?: (url: string) => WebSocket
}

interface Pending {
  what: AskName
  resolve: (value: unknown) => void
  reject: (error: BatonError) => void
  timer: ReturnType<typeof setTimeout>
}

const HANDSHAKE_MS = 10_000
const ASK_MS = 15_000
/** After a nudge a live relay answers a ping within this; a socket that died in the background does not (F1, F2). */
const PROBE_MS = 3_000

/** Refusals at sign-in that no retry heals. */
const FINAL: ReadonlySet<string> = new Set<ErrorCode>([
  'bad-signature',
  'device-revoked',
  'accounts-full',
  'version-mismatch',
])

export class Connection {
  #state: ConnectionState = { at: 'closed' }
  #socket: WebSocket | undefined
  readonly #options: ConnectionOptions
  readonly #backoff: Backoff
  readonly #pending = new Map<number, Pending>()
  #re = 0
  #pings = 0
  #heard_at = 0
  #deadline: ReturnType<typeof setTimeout> | undefined
  #heartbeat: ReturnType<typeof setInterval> | undefined
  #retry: ReturnType<typeof setTimeout> | undefined
  #refusal: { code: ErrorCode; message: string } | undefined

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.#backoff = options.backoff ?? new Backoff()
  }

  get state(): ConnectionState {
    return this.#state
  }

  get origin(): string {
    return this.#options.origin
  }

  start(): void {
    if (this.#state.at === 'closed' || this.#state.at === 'refused') this.#connect()
  }

  close(): void {
    this.#drop(new BatonError('offline'))
    this.#become({ at: 'closed' })
  }

  /** The network came back or the app became visible: retry now, or find out whether the socket still lives. */
  nudge(): void {
    if (this.#state.at === 'waiting') this.#connect()
    else if (this.#state.at === 'open') {
      const before = this.#heard_at
      this.#send({ t: 'ping', n: ++this.#pings })
      clearTimeout(this.#deadline)
      this.#deadline = setTimeout(() => {
        if (this.#heard_at === before) this.#lost('The relay did not answer.')
      }, PROBE_MS)
    }
  }

  /**
   * Asks the relay. Throws BatonError: the refusal's code; `offline` when not connected; `timeout` or `offline` when the
   * connection ended first, in which case it is not known whether the ask was carried out: ask again with the same ids.
   */
  ask<N extends AskName>(what: N, with_: AskWith<N>, timeout_ms = ASK_MS): Promise<AskGives<N>> {
    if (this.#state.at !== 'open') return Promise.reject(new BatonError('offline'))
    const re = ++this.#re
    return new Promise<AskGives<N>>((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#pending.delete(re)
        reject(new BatonError('timeout', `(${what})`))
      }, timeout_ms)
      this.#pending.set(re, { what, resolve: resolve as (value: unknown) => void, reject, timer })
      this.#send({ t: 'ask', re, what, with: with_ })
    })
  }

  /** Sends without waiting for an answer; dropped when not connected. Only for what may be lost. */
  tell(frame: Extract<PeerFrame, { t: 'delta' }>): void {
    if (this.#state.at === 'open') this.#send(frame)
  }

  /** Bytes that the socket has not sent yet; for senders that can wait. */
  get buffered(): number {
    return this.#socket?.bufferedAmount ?? 0
  }

  #connect(): void {
    this.#drop(new BatonError('offline'))
    this.#refusal = undefined
    this.#become({ at: 'connecting', attempt: this.#backoff.attempt })
    const url = `${this.#options.origin.replace(/^http/, 'ws')}${SOCKET_PATH}`
    let socket: WebSocket
    try {
      socket = this.#options.openSocket?.(url) ?? new WebSocket(url)
    } catch (error) {
      this.#wait(error instanceof Error ? error.message : 'The address is not valid.')
      return
    }
    this.#socket = socket
    const { account, device, about, handshake_ms = HANDSHAKE_MS } = this.#options
    this.#deadline = setTimeout(() => this.#lost('The relay did not answer in time.'), handshake_ms)
    socket.onopen = () => {
      const body = sealJson(accountKey(account), about, place.device(device.id))
      this.#send({
        t: 'hello',
        protocol: PROTOCOL,
        account: account.id,
        device: device.id,
        certificate: device.certificate,
        body,
      })
    }
    socket.onmessage = (event: MessageEvent) => {
      if (socket === this.#socket) this.#hear(String(event.data))
    }
    socket.onclose = (event: CloseEvent) => {
      if (socket === this.#socket) this.#closed(event.code, event.reason)
    }
    socket.onerror = () => undefined
  }

  #hear(text: string): void {
    this.#heard_at++
    let parsed
    try {
      parsed = v.safeParse(RelayFrame, JSON.parse(text))
    } catch {
      return
    }
    // A newer relay may send what this side does not know; it must not be hurt by it.
    if (!parsed.success) return
    const frame = parsed.output
    switch (frame.t) {
      case 'challenge': {
        const { account, device } = this.#options
        if (frame.protocol !== PROTOCOL) {
          this.#refuse('version-mismatch', `The relay speaks ${frame.protocol}, this side ${PROTOCOL}.`)
          return
        }
        const signature = signChallenge(device, account.id, frame.relay, frame.nonce)
        this.#send({ t: 'proof', signature })
        return
      }
      case 'welcome':
        this.#opened(frame)
        return
      case 'pong':
        if (this.#state.at === 'open') this.#backoff.settle()
        return
      case 'answer':
        this.#answered(frame.re, frame.with)
        return
      case 'refusal':
        this.#refused(frame.re, frame.code, frame.message)
        return
      default:
        this.#options.onNotice?.(frame)
    }
  }

  #opened(welcome: Welcome): void {
    clearTimeout(this.#deadline)
    this.#become({ at: 'open', welcome })
    let heard = this.#heard_at
    let silent_ms = 0
    this.#send({ t: 'ping', n: ++this.#pings })
    this.#heartbeat = setInterval(() => {
      silent_ms = heard === this.#heard_at ? silent_ms + welcome.heartbeat_ms : 0
      heard = this.#heard_at
      if (silent_ms >= welcome.timeout_ms) this.#lost('The relay fell silent.')
      else this.#send({ t: 'ping', n: ++this.#pings })
    }, welcome.heartbeat_ms)
  }

  #answered(re: number, with_: unknown): void {
    const pending = this.#take(re)
    if (!pending) return
    const parsed = v.safeParse(ASKS[pending.what].gives, with_)
    if (parsed.success) pending.resolve(parsed.output)
    else pending.reject(new BatonError('bad-frame', `(answer to ${pending.what})`))
  }

  #refused(re: number, code: string, message: string): void {
    const known: ErrorCode = isErrorCode(code) ? code : 'internal'
    const pending = this.#take(re)
    if (pending) pending.reject(new BatonError(known, message))
    // Before `welcome` nothing was asked: the refusal is of the sign-in.
    else if (this.#state.at === 'connecting') this.#refusal = { code: known, message }
  }

  #take(re: number): Pending | undefined {
    const pending = this.#pending.get(re)
    this.#pending.delete(re)
    clearTimeout(pending?.timer)
    return pending
  }

  #closed(code: number, reason: string): void {
    if (code === CLOSE['device-revoked']) this.#refuse('device-revoked', reason)
    else if (code === CLOSE['version-mismatch']) this.#refuse('version-mismatch', reason)
    else if (this.#refusal && FINAL.has(this.#refusal.code)) {
      this.#refuse(this.#refusal.code, this.#refusal.message)
    } else this.#lost(this.#refusal?.message ?? (reason || 'The connection ended.'))
  }

  #lost(reason: string): void {
    this.#drop(new BatonError('offline'))
    this.#wait(reason)
  }

  #wait(reason: string): void {
    const delay_ms = this.#backoff.next()
    this.#retry = setTimeout(() => this.#connect(), delay_ms)
    this.#become({ at: 'waiting', attempt: this.#backoff.attempt, retry_at: Date.now() + delay_ms, reason })
  }

  #refuse(code: ErrorCode, message: string): void {
    this.#drop(new BatonError(code, message))
    this.#become({ at: 'refused', code, message })
  }

  /** Lets go of the socket and of everything that waits on it. */
  #drop(error: BatonError): void {
    clearTimeout(this.#deadline)
    clearTimeout(this.#retry)
    clearInterval(this.#heartbeat)
    const socket = this.#socket
    this.#socket = undefined
    if (socket) {
      socket.onmessage = socket.onclose = socket.onopen = null
      socket.close()
    }
    for (const pending of this.#pending.values()) {
      clearTimeout(pending.timer)
      pending.reject(error)
    }
    this.#pending.clear()
  }

  #send(frame: PeerFrame): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(frame))
  }

  #become(state: ConnectionState): void {
    this.#state = state
    this.#options.onState?.(state)
  }
}
