import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { Backoff } from '../src/backoff.ts'
import { Connection, type ConnectionState } from '../src/connection.ts'
import { newAccount, newDevice, verifyChallenge } from '../src/keys.ts'
import { CLOSE, PROTOCOL, type Notice, type PeerFrame } from '../src/protocol.ts'

/** The relay's end of a socket, driven by hand; time is driven by hand too. */
class FakeSocket {
  static all: FakeSocket[] = []
  readyState: number = WebSocket.CONNECTING
  bufferedAmount = 0
  sent: PeerFrame[] = []
  onopen: (() => void) | null = null
  onmessage: ((event: { data: string }) => void) | null = null
  onclose: ((event: { code: number; reason: string }) => void) | null = null
  onerror: (() => void) | null = null

  constructor() {
    FakeSocket.all.push(this)
  }
  send(text: string): void {
    this.sent.push(JSON.parse(text) as PeerFrame)
  }
  close(): void {
    this.readyState = WebSocket.CLOSED
  }
  open(): void {
    this.readyState = WebSocket.OPEN
    this.onopen?.()
  }
  say(frame: object): void {
    this.onmessage?.({ data: JSON.stringify(frame) })
  }
  end(code = 1006, reason = ''): void {
    this.readyState = WebSocket.CLOSED
    this.onclose?.({ code, reason })
  }
  welcome(): void {
    this.open()
    this.say({ t: 'challenge', protocol: PROTOCOL, relay: 'r', nonce: 'n' })
    this.say({ t: 'welcome', token: 't', heartbeat_ms: 1000, timeout_ms: 2500, store: 's' })
  }
  pings(): number {
    return this.sent.filter((frame) => frame.t === 'ping').length
  }
}

const account = newAccount()
const device = newDevice(account)
let states: ConnectionState[] = []
let notices: Notice[] = []

function connect(): Connection {
  const connection = new Connection({
    ...{ origin: 'http://127.0.0.1:1', account, device, about: { name: 'test', kind: 'cli' } },
    onState: (state) => states.push(state),
    onNotice: (notice) => notices.push(notice),
    openSocket: () => new FakeSocket() as unknown as WebSocket,
    backoff: new Backoff({ base_ms: 100, cap_ms: 10_000, random: () => 1 }),
  })
  connection.start()
  return connection
}

const last = (): FakeSocket => FakeSocket.all.at(-1) as FakeSocket

beforeEach(() => {
  vi.useFakeTimers()
  FakeSocket.all = []
  states = []
  notices = []
})
afterEach(() => vi.useRealTimers())

describe('sign-in', () => {
  it('says hello, answers the challenge with a good signature, and is open at welcome', () => {
    const connection = connect()
    last().open()
    last().say({ t: 'challenge', protocol: PROTOCOL, relay: 'r', nonce: 'n' })
    const [hello, proof] = last().sent
    expect(hello).toMatchObject({ t: 'hello', account: account.id, device: device.id })
    if (proof?.t !== 'proof') throw new Error('no proof')
    expect(verifyChallenge(account.id, device.id, 'r', 'n', proof.signature)).toBe(true)
    last().welcome()
    expect(connection.state.at).toBe('open')
  })

  it('F6: a handshake that never ends has a deadline, and is tried again', () => {
    connect()
    last().open()
    vi.advanceTimersByTime(10_000)
    expect(states.at(-1)).toMatchObject({ at: 'waiting', reason: 'The relay did not answer in time.' })
    vi.advanceTimersByTime(100)
    expect(FakeSocket.all).toHaveLength(2)
  })

  it('F2: a socket that never opens has the same deadline', () => {
    connect()
    vi.advanceTimersByTime(10_000)
    expect(states.at(-1)?.at).toBe('waiting')
  })

  it('stops for a refusal that no retry heals, with its code', () => {
    const connection = connect()
    last().welcome()
    last().end(CLOSE['device-revoked'], 'gone')
    expect(connection.state).toMatchObject({ at: 'refused', code: 'device-revoked' })
    vi.advanceTimersByTime(60_000)
    expect(FakeSocket.all).toHaveLength(1)
  })

  it('stops when the relay speaks another version', () => {
    const connection = connect()
    last().open()
    last().say({ t: 'challenge', protocol: PROTOCOL + 1, relay: 'r', nonce: 'n' })
    expect(connection.state).toMatchObject({ at: 'refused', code: 'version-mismatch' })
  })
})

describe('liveness', () => {
  it('F4: a silent relay is noticed within the negotiated time-out, which pings precede', () => {
    connect()
    last().welcome()
    const socket = last()
    vi.advanceTimersByTime(2000)
    expect(socket.pings()).toBe(3)
    vi.advanceTimersByTime(2000)
    expect(states.some((state) => state.at === 'waiting' && state.reason === 'The relay fell silent.')).toBe(
      true,
    )
  })

  it('a relay that answers pings stays connected', () => {
    const connection = connect()
    last().welcome()
    for (let i = 0; i < 20; i++) {
      vi.advanceTimersByTime(1000)
      last().say({ t: 'pong', n: i })
    }
    expect(connection.state.at).toBe('open')
    expect(FakeSocket.all).toHaveLength(1)
  })

  it('F1: on becoming visible a socket that died in the background is found out within seconds', () => {
    const connection = connect()
    last().welcome()
    connection.nudge()
    vi.advanceTimersByTime(3000)
    expect(connection.state.at).toBe('waiting')
  })

  it('a nudge while waiting connects at once', () => {
    const connection = connect()
    last().end()
    expect(connection.state.at).toBe('waiting')
    connection.nudge()
    expect(FakeSocket.all).toHaveLength(2)
  })
})

describe('reconnecting', () => {
  it('F9: waits longer and longer, up to a cap', () => {
    connect()
    const waits: number[] = []
    for (let i = 0; i < 12; i++) {
      last().end()
      const state = states.at(-1)
      if (state?.at !== 'waiting') throw new Error('not waiting')
      waits.push(state.retry_at - Date.now())
      vi.advanceTimersByTime(10_000)
    }
    expect(waits.slice(0, 4)).toEqual([100, 200, 400, 800])
    expect(waits.at(-1)).toBe(10_000)
  })

  it('opening and dying at once does not reset the backoff; a held connection does', () => {
    connect()
    for (let i = 0; i < 5; i++) {
      last().welcome()
      last().end()
      vi.advanceTimersByTime(10_000)
    }
    last().welcome()
    last().say({ t: 'pong', n: 1 })
    last().end()
    const state = states.at(-1)
    expect(state?.at === 'waiting' && state.retry_at - Date.now()).toBe(100)
  })
})

describe('asks', () => {
  it('resolves with the validated answer', async () => {
    const connection = connect()
    last().welcome()
    const asked = connection.ask('renew', { leases: [] })
    last().say({ t: 'answer', re: 1, with: { lost: [] } })
    await expect(asked).resolves.toEqual({ lost: [] })
  })

  it('rejects with the code of the refusal', async () => {
    const connection = connect()
    last().welcome()
    const asked = connection.ask('claim', { sid: 'x'.repeat(22) })
    last().say({ t: 'refusal', re: 1, code: 'lease-held', message: '' })
    await expect(asked).rejects.toMatchObject({ code: 'lease-held' })
  })

  it('rejects what waits when the connection ends, and what is asked while there is none', async () => {
    const connection = connect()
    last().welcome()
    const asked = connection.ask('list', {})
    last().end()
    await expect(asked).rejects.toMatchObject({ code: 'offline' })
    await expect(connection.ask('list', {})).rejects.toMatchObject({ code: 'offline' })
  })

  it('gives up on an answer that never comes', async () => {
    const connection = connect()
    last().welcome()
    const asked = connection.ask('list', {}, 500)
    const failed = expect(asked).rejects.toMatchObject({ code: 'timeout' })
    vi.advanceTimersByTime(500)
    await failed
  })

  it('is not hurt by frames that it does not know', () => {
    const connection = connect()
    last().welcome()
    last().say({ t: 'novelty', x: 1 })
    last().onmessage?.({ data: 'not json' })
    expect(connection.state.at).toBe('open')
    expect(notices).toEqual([])
  })
})
