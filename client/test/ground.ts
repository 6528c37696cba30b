/** What the browser tests stand on: a real Redis and relay that serves the built client, scripted runners, phones. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Connection } from '@baton/shared/connection.ts'
import { newAccount, newDevice, newPairing, pairingLink, type Account } from '@baton/shared/keys.ts'
import { startRelay, type RunningRelay } from '@baton/relay/main.ts'
import { startRedis, type RedisServer } from '@baton/relay/redis-server.ts'
import { pino } from 'pino'
import { chromium, type Browser, type BrowserContext, type Page } from 'playwright-core'
import { ScriptedRunner, type ScriptedRunnerOptions } from './scripted-runner.ts'
import { until } from './until.ts'

export const DIST = join(import.meta.dirname, '../dist')

/** Long, because a test may hold a session for as long as it likes without renewing. */
const LEASE_MS = 600_000

export interface Phone {
  context: BrowserContext
  page: Page
  /** Uncaught errors and refusals by the content security policy. */
  errors: string[]
}

export interface PhoneOptions {
  theme?: 'light' | 'dark'
  width?: number
  height?: number
  touch?: boolean
  /** The user agent, from which the device takes its name. */
  agent?: string
}

export class Ground {
  readonly account: Account = newAccount()
  readonly #folder: string
  readonly #redis: RedisServer
  readonly #browser: Browser
  #relay: RunningRelay
  readonly #closers: (() => unknown)[] = []
  #owner: Connection | undefined

  private constructor(folder: string, redis: RedisServer, relay: RunningRelay, browser: Browser) {
    this.#folder = folder
    this.#redis = redis
    this.#relay = relay
    this.#browser = browser
  }

  static async open(): Promise<Ground> {
    const folder = await mkdtemp(join(tmpdir(), 'baton-client-'))
    const redis = await startRedis({ dataDir: folder, log: pino({ level: 'silent' }) })
    const relay = await startRelay(relayOptions(redis, 0))
    const browser = await chromium.launch({
      executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
      args: [
        '--no-sandbox',
        '--disable-gpu',
        '--disable-quic',
        '--no-first-run',
        '--disable-background-networking',
        '--disable-component-update',
        '--disable-sync',
      ],
    })
    return new Ground(folder, redis, relay, browser)
  }

  get origin(): string {
    return this.#relay.url
  }

  async close(): Promise<void> {
    for (const close of this.#closers.toReversed()) await close()
    this.#owner?.close()
    await this.#browser.close()
    await this.#relay.close()
    await this.#redis.close()
    await rm(this.#folder, { recursive: true, force: true })
  }

  /** Ends the relay as if its machine had gone; `relayBack` starts it again on its port. */
  async relayAway(): Promise<void> {
    await this.#relay.close()
  }

  async relayBack(): Promise<void> {
    this.#relay = await startRelay(relayOptions(this.#redis, this.#relay.port))
  }

  /** A fresh pairing link, as `baton pair` makes it. */
  async link(): Promise<string> {
    if (!this.#owner) {
      this.#owner = new Connection({
        origin: this.origin,
        account: this.account,
        device: newDevice(this.account),
        about: { name: 'laptop shell', kind: 'cli' },
      })
      this.#owner.start()
    }
    const owner = this.#owner
    await until('the owner is connected', () => owner.state.at === 'open')
    const pairing = newPairing(this.account)
    await owner.ask('pairing', { offer: pairing.offer, box: pairing.box })
    return pairingLink(this.origin, pairing)
  }

  async runner(options: Omit<ScriptedRunnerOptions, 'origin' | 'account'>): Promise<ScriptedRunner> {
    const runner = new ScriptedRunner({ origin: this.origin, account: this.account, ...options })
    await runner.start()
    this.#closers.push(() => runner.close())
    return runner
  }

  /** A phone with storage of its own, unpaired. */
  async phone({
    theme = 'light',
    width = 360,
    height = 740,
    touch = true,
    agent,
  }: PhoneOptions = {}): Promise<Phone> {
    const context = await this.#browser.newContext({
      viewport: { width, height },
      // Drawing is most of a browser's work, and neither how fine nor how it moves is looked at here.
      deviceScaleFactor: 1,
      reducedMotion: 'reduce',
      hasTouch: touch,
      isMobile: touch,
      colorScheme: theme,
      locale: 'en-GB',
      timezoneId: 'UTC',
      ...(agent === undefined ? {} : { userAgent: agent }),
    })
    this.#closers.push(() => context.close())
    const page = await context.newPage()
    page.setDefaultTimeout(30_000)
    const errors: string[] = []
    page.on('pageerror', (error) => errors.push(error.message))
    page.on('console', (message) => {
      if (message.type() === 'error' && /content security policy/i.test(message.text()))
        errors.push(message.text())
    })
    return { context, page, errors }
  }

  /** A phone that has joined the account. */
  async paired(options: PhoneOptions = {}): Promise<Phone> {
    const phone = await this.phone(options)
    await phone.page.goto(await this.link())
    await phone.page.getByRole('heading', { name: 'Sessions' }).waitFor()
    return phone
  }
}

function relayOptions(redis: RedisServer, port: number): Parameters<typeof startRelay>[0] {
  return {
    redis: redis.path,
    host: '127.0.0.1',
    port,
    clientDir: DIST,
    log: 'silent',
    lease_ms: LEASE_MS,
    sweep_ms: 50,
    offer_ms: 300,
    poll_ms: 500,
    limits: {
      connects_burst: 1e6,
      connects_per_s: 1e6,
      pairings_per_min: 1e6,
      frames_burst: 1e6,
      frames_per_s: 1e6,
    },
  }
}
