/**
 * Fan-out: one subscription a channel, however many listen here. A message may get lost with the connection to Redis, so
 * every listener is told when the connection is back, and reads what it needs from where it stands.
 */
import type { Redis } from 'ioredis'
import type { Logger } from 'pino'

export interface Listener {
  message: (text: string) => void
  /** Messages may have been lost. */
  resumed: () => void
}

export class Notices {
  readonly #redis: Redis
  readonly #channels = new Map<string, Set<Listener>>()

  constructor(redis: Redis, log: Logger) {
    this.#redis = redis
    redis.on('message', (channel: string, text: string) => {
      for (const listener of this.#channels.get(channel) ?? []) listener.message(text)
    })
    redis.on('ready', () => {
      // A channel that was dropped while Redis was away may still be subscribed, one that was added may not be.
      const channels = [...this.#channels.keys()]
      if (channels.length === 0) return
      redis
        .subscribe(...channels)
        .then(() => {
          for (const listeners of this.#channels.values())
            for (const listener of listeners) listener.resumed()
        })
        .catch((error: unknown) => log.debug({ err: String(error) }, 'not subscribed yet'))
    })
  }

  /** Resolves once nothing more can be missed. Throws when Redis is away. */
  async listen(channel: string, listener: Listener): Promise<void> {
    const listeners = this.#channels.get(channel)
    if (listeners) listeners.add(listener)
    else this.#channels.set(channel, new Set([listener]))
    try {
      // Also when others listen already: their subscription may still be under way.
      await this.#redis.subscribe(channel)
    } catch (error) {
      this.drop(channel, listener)
      throw error
    }
  }

  drop(channel: string, listener: Listener): void {
    const listeners = this.#channels.get(channel)
    listeners?.delete(listener)
    if (listeners?.size !== 0) return
    this.#channels.delete(channel)
    // Calls on one connection keep their order, so a later listen() is not undone. When Redis is away there is nothing to undo.
    this.#redis.unsubscribe(channel).catch(() => undefined)
  }
}
