/** What a runner says of itself to the relay: who it is, for how much it has room, what of its own is away. */
import { explain } from '@baton/shared/errors.ts'
import type { RunnerAbout } from '@baton/shared/journal.ts'
import { accountKey } from '@baton/shared/keys.ts'
import { place, sealJson } from '@baton/shared/seal.ts'
import type { Away } from './away.ts'
import type { Link } from './link.ts'
import type { RunnerOptions } from './runner.ts'

const AGAIN_MS = 1_000
/** A relay that lives knows by then that nothing is to be offered to this runner any more. */
const SAY_MS = 500

export interface AnnouncingOptions {
  runner: RunnerOptions
  link: Link
  tags: string[]
  away: Away
  /** For how many sessions there is room; none while it lets go. */
  capacity: () => number
  onRevoked: (device: string) => void
}

export class Announcing {
  readonly #options: AnnouncingOptions
  /** Counts what is said: only the newest is said again when it got lost. */
  #count = 0

  constructor(options: AnnouncingOptions) {
    this.#options = options
  }

  /** First who is revoked and what is away, then offers; again until both are answered or there is something newer to say. */
  async announce(): Promise<void> {
    const { link, away, onRevoked, runner } = this.#options
    const announcement = ++this.#count
    const connected = link.connection.state
    while (this.#count === announcement && link.connection.state === connected) {
      try {
        const { devices, sessions } = await link.ask('list', {})
        for (const known of devices) if (known.revoked) onRevoked(known.device)
        for (const session of sessions) away.see(session)
        await this.#serve()
        void this.#storeEngine()
        return
      } catch (error) {
        if (connected.at !== 'open') return
        runner.log(`could not announce, trying again: ${explain(error)}`)
        await new Promise((resolve) => setTimeout(resolve, AGAIN_MS))
      }
    }
  }

  /** Says that there is no room any more. Resolves when the relay knows, or soon without. */
  async leave(within_ms: number): Promise<void> {
    this.#count++
    await Promise.race([
      this.#serve().catch(() => undefined),
      new Promise((resolve) => setTimeout(resolve, Math.min(SAY_MS, within_ms))),
    ])
  }

  async #serve(): Promise<void> {
    const { link, tags, away, capacity, runner } = this.#options
    const { name, pools, workspaces, account, device, hands } = runner
    const about: RunnerAbout = {
      ...{ name, pools, workspaces, model: hands.model.name },
      ...(hands.model.models ? { models: [...hands.model.models] } : {}),
      platform: `${process.platform} ${process.arch}`,
      ...(away.sids.length > 0 ? { away: away.sids } : {}),
    }
    const body = sealJson(accountKey(account), about, place.runner(device.id))
    await link.ask('serve', { capacity: capacity(), tags, body })
  }

  /** So that a session which begins here is not bound to runners of this version. */
  async #storeEngine(): Promise<void> {
    const { link, runner } = this.#options
    const { engine } = runner.hands
    if (!engine) return
    try {
      await link.engines.put(engine.bytes)
    } catch (error) {
      runner.log(`the engine is not stored: ${explain(error)}`)
    }
  }
}
