/**
 * Sleep and shutdown as systemd's login manager tells of them (org.freedesktop.login1, systemd's Inhibitor Locks): a delay lock
 * beforehand, then `PrepareForSleep(true)`, then as many seconds as `InhibitDelayMaxUSec` allows, less if the lock is given
 * back; `PrepareForSleep(false)` after waking. A lock is good for one sleep: after each a new one is taken.
 */
import type { Message, MessageBus } from 'dbus-native'
import { Inhibitor } from './inhibitor.ts'
import type { PowerEvents, Why } from './power.ts'

const LOGIND = 'org.freedesktop.login1'
const PATH = '/org/freedesktop/login1'
const MANAGER = 'org.freedesktop.login1.Manager'
const SIGNALS: ReadonlyMap<string, Why> = new Map([
  ['PrepareForSleep', 'sleep'],
  ['PrepareForShutdown', 'shutdown'],
])
const SYSTEM_BUS = 'unix:path=/run/dbus/system_bus_socket'
const ASK_MS = 5_000
/** What logind grants when nobody configured it. */
const DELAY_MS = 5_000
/** For the way of the signal and of the lock: logind's clock started before ours. */
const MARGIN_MS = 300

export interface LogindOptions {
  env: NodeJS.ProcessEnv
  events: Pick<PowerEvents, 'going' | 'back'>
  log: (message: string) => void
}

/** Without logind it says so in the log, once, and that is all. Gives what ends it. */
export function watchLogind(options: LogindOptions): () => void {
  const logind = new Logind(options)
  void logind.start()
  return () => logind.close()
}

class Logind {
  readonly #options: LogindOptions
  readonly #inhibitor: Inhibitor
  #bus: MessageBus | undefined
  #delay_ms = DELAY_MS
  #isClosed = false
  /** The machine is about to go, or gone. */
  #isGoing = false
  /** How often it was about to go. */
  #goings = 0

  constructor(options: LogindOptions) {
    this.#options = options
    this.#inhibitor = new Inhibitor(options.env, options.log)
  }

  async start(): Promise<void> {
    const { env, log } = this.#options
    try {
      const { createClient } = await import('dbus-native')
      const busAddress = env['DBUS_SYSTEM_BUS_ADDRESS'] ?? SYSTEM_BUS
      // Once it was there it is looked for again: the bus may be started anew under us.
      const bus = createClient({
        busAddress,
        timeout: ASK_MS,
        reconnect: { minDelay: 500, maxDelay: 30_000 },
      })
      this.#bus = bus
      if (this.#isClosed) return this.close()
      // Who asks hears of it; the connection itself is made again.
      bus.connection.on('error', () => undefined)
      bus.connection.on('message', (message) => this.#hear(message))
      bus.on('reconnected', () => void this.#again())
      await bus.addMatch(`type='signal',sender='${LOGIND}',path='${PATH}',interface='${MANAGER}'`)
      await this.#readDelay()
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      log(
        `no notice of sleep on this machine: logind does not answer (${why}); SIGTERM and SIGHUP hand over as well`,
      )
      this.close()
      return
    }
    if (!this.#isClosed) this.#inhibitor.take()
  }

  close(): void {
    this.#isClosed = true
    this.#inhibitor.release()
    // Not `close` of the bus: that would go on looking for a bus that is not there.
    this.#bus?.connection.end()
  }

  async #readDelay(): Promise<void> {
    const delay_ms = Number(await this.#read('InhibitDelayMaxUSec')) / 1_000
    this.#delay_ms = delay_ms > 0 ? delay_ms : DELAY_MS
  }

  async #read(property: string): Promise<unknown> {
    return this.#bus?.invoke<unknown>({
      destination: LOGIND,
      path: PATH,
      interface: 'org.freedesktop.DBus.Properties',
      member: 'Get',
      signature: 'ss',
      body: [MANAGER, property],
    })
  }

  /** The bus was away and is back: the signal of waking may have been missed. */
  async #again(): Promise<void> {
    const isPreparing = await this.#read('PreparingForSleep').catch(() => undefined)
    if (isPreparing === false) this.#back()
  }

  #hear({ type, path, interface: from, member = '', body = [] }: Message): void {
    const why = SIGNALS.get(member)
    if (type !== 4 || path !== PATH || from !== MANAGER || why === undefined) return
    if (body[0] === true) void this.#going(why)
    else if (body[0] === false) this.#back()
  }

  async #going(why: Why): Promise<void> {
    if (this.#isGoing) return
    this.#isGoing = true
    const going = ++this.#goings
    const within_ms = Math.max(0, this.#delay_ms - MARGIN_MS)
    let timer: ReturnType<typeof setTimeout> | undefined
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, within_ms)))
    await Promise.race([this.#options.events.going(why, within_ms).catch(() => undefined), late])
    clearTimeout(timer)
    // Held no longer than needed: a person waits for it. If the machine is back by now, the lock is for the next time.
    if (this.#isGoing && this.#goings === going) this.#inhibitor.release()
  }

  #back(): void {
    if (!this.#isGoing) return
    this.#isGoing = false
    this.#options.events.back()
    if (this.#isClosed) return
    this.#inhibitor.take()
    void this.#readDelay().catch(() => undefined)
  }
}
