/**
 * One WebSocket, from hello to close.
 *
 *   hello ──hello──▸ proof ──proof──▸ checking ──welcome──▸ open ──▸ closed
 *
 * Sign-in has a deadline (F6, F8); afterwards a peer that falls silent is closed (F4). Whatever a peer sends, the process lives:
 * what is not JSON or not a frame ends this connection, an ask that can't be carried out is refused. The reason of a close
 * begins with the error's code.
 */
import { BatonError } from '@baton/shared/errors.ts'
import { CLOSE, PROTOCOL, type PeerFrame, type RelayFrame } from '@baton/shared/protocol.ts'
import type { RawData, WebSocket } from 'ws'
import { handleAsk } from './asks.ts'
import type { Context } from './context.ts'
import { parseFrame, type UnknownFrame } from './frames.ts'
import { TokenBucket } from './limits.ts'
import { SignedIn, type Outlet } from './peer.ts'
import {
  admit,
  extendToken,
  isRevoked,
  newChallenge,
  newToken,
  type Challenge,
  type Hello,
} from './sign-in.ts'
import { storeErrorOf } from './store.ts'

type State =
  | { at: 'hello' }
  | { at: 'proof'; hello: Hello; challenge: Challenge }
  | { at: 'checking' }
  | { at: 'open'; peer: SignedIn; token: string; extended_at: number }
  | { at: 'closed' }

type Frame = PeerFrame | UnknownFrame

/** Beyond this many waiting bytes what may be lost is not sent. */
const OFFHAND_BYTES = 256 << 10
/** A close reason is at most 123 bytes (RFC 6455 §5.5). */
const REASON_CHARS = 120
const BYTES_A_TOKEN = 16 << 10
/** Refused for speed so often in a row, a peer is not merely hasty. */
const TOO_FAST_MAX = 1_000

export class Connection {
  #state: State = { at: 'hello' }
  readonly #context: Context
  readonly #relay: string
  readonly #socket: WebSocket
  readonly #bucket: TokenBucket
  readonly #timer: ReturnType<typeof setTimeout>
  #silence: ReturnType<typeof setTimeout> | undefined
  #inFlight = 0
  #tooFast = 0

  /** `relay`: the relay's id, named in the challenge. */
  constructor(context: Context, relay: string, socket: WebSocket) {
    const { handshake_ms, limits } = context.options
    this.#context = context
    this.#relay = relay
    this.#socket = socket
    this.#bucket = new TokenBucket(limits.frames_per_s, limits.frames_burst, Date.now())
    this.#timer = setTimeout(() => this.end('timeout', 'sign-in took too long'), handshake_ms)
    socket.on('message', (data, isBinary) => this.#receive(data, isBinary))
    socket.on('close', () => this.#closed())
    // A broken frame or a lost network; `close` follows.
    socket.on('error', (error) => context.log.debug({ err: error.message }, 'socket'))
  }

  /** Closes with a code and its reason. */
  end(code: keyof typeof CLOSE, detail = '', as: string = code): void {
    const reason = detail === '' ? as : `${as}: ${detail}`
    this.#socket.close(CLOSE[code], reason.slice(0, REASON_CHARS))
    // A peer that does not answer the close is not waited for; ws ends the socket after 30 s.
    this.#closed()
  }

  #receive(data: RawData, isBinary: boolean): void {
    if (this.#state.at === 'closed') return
    const bytes = data as Buffer
    const { limits } = this.#context.options
    if (bytes.length > limits.frame_bytes) {
      this.end('too-large', `${bytes.length} of ${limits.frame_bytes} bytes`)
      return
    }
    this.#silence?.refresh()
    let frame: Frame
    try {
      if (isBinary) throw new BatonError('bad-frame', 'text expected')
      frame = parseFrame(bytes)
    } catch (error) {
      this.end('bad-frame', this.#explain(error).detail)
      return
    }
    const isSlowEnough = this.#bucket.take(1 + bytes.length / BYTES_A_TOKEN, Date.now())
    if (this.#state.at === 'open') this.#handle(frame, this.#state, isSlowEnough)
    else this.#signIn(frame)
  }

  #signIn(frame: Frame): void {
    const state = this.#state
    if (state.at === 'hello' && frame.t === 'hello') {
      if (frame.protocol !== PROTOCOL) {
        this.end('version-mismatch', `the relay speaks ${PROTOCOL}, the peer ${frame.protocol}`)
        return
      }
      const challenge = newChallenge(this.#relay)
      this.#state = { at: 'proof', hello: frame, challenge }
      this.#send({ t: 'challenge', protocol: PROTOCOL, ...challenge })
    } else if (state.at === 'proof' && frame.t === 'proof') {
      this.#state = { at: 'checking' }
      this.#admit(state.hello, state.challenge, frame.signature).catch((error: unknown) =>
        this.#turnAway(error),
      )
    } else {
      this.end('not-signed-in', `${frame.t} came too early`)
    }
  }

  async #admit(hello: Hello, challenge: Challenge, signature: string): Promise<void> {
    const { redis, store, hubs, usage, options, log } = this.#context
    const identity = await admit(redis, hello, challenge, signature, options.accounts_max)
    const peer = new SignedIn(this.#context, identity, this.#outlet())
    await hubs.join(peer)
    try {
      // Again, now that nothing is missed any more: the device may have been revoked in between.
      if (await isRevoked(redis, identity)) throw new BatonError('device-revoked')
      const [token, storeId] = await Promise.all([
        newToken(redis, identity, options.token_ms),
        store.id(),
        usage.load(identity.account),
      ])
      if (this.#state.at !== 'checking') throw new BatonError('timeout')
      clearTimeout(this.#timer)
      this.#state = { at: 'open', peer, token, extended_at: Date.now() }
      const timeout_ms = Math.ceil(options.heartbeat_ms * 2.5)
      this.#silence = setTimeout(() => this.end('timeout', 'no sign of life'), timeout_ms)
      this.#send({ t: 'welcome', token, heartbeat_ms: options.heartbeat_ms, timeout_ms, store: storeId })
      log.info({ device: identity.device }, 'signed in')
    } catch (error) {
      peer.close()
      throw error
    }
  }

  /** Says why, then closes. */
  #turnAway(error: unknown): void {
    if (this.#state.at === 'closed') return
    const { code, detail } = this.#explain(error)
    this.#context.log.info({ code }, 'sign-in refused')
    this.#send({ t: 'refusal', re: 0, code, message: detail })
    const away = code === 'store-down' || code === 'internal' || code === 'disk-full'
    if (away) this.end('draining', detail, code)
    else if (code === 'device-revoked') this.end('device-revoked', detail)
    else this.end('not-signed-in', detail, code)
  }

  #handle(frame: Frame, state: Extract<State, { at: 'open' }>, isSlowEnough: boolean): void {
    const { limits } = this.#context.options
    if (!isSlowEnough || (frame.t === 'ask' && this.#inFlight >= limits.asks_in_flight)) {
      if (++this.#tooFast > TOO_FAST_MAX) this.end('too-fast')
      else if (frame.t === 'ask') this.#refuse(frame.re, new BatonError('too-fast'))
      return
    }
    this.#tooFast = 0
    switch (frame.t) {
      case 'ping':
        this.#send({ t: 'pong', n: frame.n })
        this.#context.background(this.#beat(state))
        break
      case 'ask':
        void this.#answer(state.peer, frame.re, frame.what, frame.with)
        break
      case 'delta':
        state.peer.deltas.take(frame)
        break
      case 'unknown':
        this.#refuse(frame.re, new BatonError('unknown-message', `(${frame.kind})`))
        break
      case 'hello':
      case 'proof':
        this.end('bad-frame', `${frame.t} comes once`)
    }
  }

  async #answer(peer: SignedIn, re: number, what: string, input: unknown): Promise<void> {
    this.#inFlight++
    try {
      this.#send({ t: 'answer', re, with: await handleAsk(this.#context, peer, what, input) })
    } catch (error) {
      this.#refuse(re, error)
    } finally {
      this.#inFlight--
    }
  }

  #refuse(re: number, error: unknown): void {
    const { code, detail } = this.#explain(error)
    this.#send({ t: 'refusal', re, code, message: detail })
  }

  /** What a peer may know of an error: a code of the table. The rest goes to the log. */
  #explain(error: unknown): BatonError {
    if (error instanceof BatonError) return error
    const known = storeErrorOf(error)
    if (known) return known
    this.#context.log.error({ err: error instanceof Error ? error.stack : String(error) }, 'internal error')
    return new BatonError('internal')
  }

  /** What is looked after while a peer lives. A lost message of a revocation is made good for here. */
  async #beat(state: Extract<State, { at: 'open' }>): Promise<void> {
    const { redis, presence, options } = this.#context
    const { peer, token } = state
    const { account, device } = peer.identity
    if (peer.serving) await presence.touch(account, device, peer.id)
    if (await isRevoked(redis, peer.identity)) this.end('device-revoked')
    const now = Date.now()
    if (now - state.extended_at < options.token_ms / 4) return
    state.extended_at = now
    await extendToken(redis, token, options.token_ms)
  }

  #outlet(): Outlet {
    const { limits } = this.#context.options
    return {
      send: (frame) => {
        if (this.#socket.bufferedAmount > limits.buffer_bytes) this.end('timeout', 'reads too slowly')
        else this.#send(frame)
      },
      offhand: (frame) => {
        if (this.#socket.bufferedAmount <= OFFHAND_BYTES) this.#send(frame)
      },
      deliver: (frame) =>
        new Promise((resolve, reject) => {
          this.#socket.send(JSON.stringify(frame), (error) => (error ? reject(error) : resolve()))
        }),
      revoked: () => this.end('device-revoked'),
    }
  }

  #send(frame: RelayFrame): void {
    if (this.#socket.readyState === this.#socket.OPEN) this.#socket.send(JSON.stringify(frame))
  }

  #closed(): void {
    clearTimeout(this.#timer)
    clearTimeout(this.#silence)
    if (this.#state.at === 'open') this.#state.peer.close()
    this.#state = { at: 'closed' }
  }
}
