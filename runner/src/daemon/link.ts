/** The runner's connection in the form that sessions need: they can wait for it, and blobs go beside it over HTTP. */
import { httpBlobs, type BlobStore } from '@baton/shared/blobs.ts'
import { Connection, type ConnectionOptions, type ConnectionState } from '@baton/shared/connection.ts'
import { httpEngines, type EngineStore } from '@baton/shared/engines.ts'
import { BatonError } from '@baton/shared/errors.ts'
import type { AskGives, AskName, AskWith, PeerFrame } from '@baton/shared/protocol.ts'
import type { RelayLink } from '../session/link.ts'
import { recentBlobs } from './recent-blobs.ts'

export class Link implements RelayLink {
  readonly connection: Connection
  readonly blobs: BlobStore
  readonly engines: EngineStore
  readonly #waiting = new Set<() => void>()

  constructor(options: ConnectionOptions) {
    this.connection = new Connection({
      ...options,
      onState: (state) => {
        options.onState?.(state)
        for (const check of [...this.#waiting]) check()
      },
    })
    const token = (): string => {
      const { state } = this.connection
      if (state.at !== 'open') throw new BatonError('offline')
      return state.welcome.token
    }
    this.blobs = recentBlobs(httpBlobs(options.origin, token))
    this.engines = httpEngines(options.origin, token, options.account)
  }

  ask<N extends AskName>(what: N, with_: AskWith<N>): Promise<AskGives<N>> {
    return this.connection.ask(what, with_)
  }

  tell(frame: Extract<PeerFrame, { t: 'delta' }>): void {
    this.connection.tell(frame)
  }

  /** Rejects with the signal's reason, or with the refusal when the relay will not have this device. */
  ready(signal?: AbortSignal): Promise<void> {
    return this.until((state) => state.at === 'open', signal)
  }

  until(reached: (state: ConnectionState) => boolean, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const end = (settle: () => void): void => {
        this.#waiting.delete(check)
        signal?.removeEventListener('abort', aborted)
        settle()
      }
      const check = (): void => {
        const { state } = this.connection
        if (reached(state)) end(resolve)
        else if (state.at === 'refused') end(() => reject(new BatonError(state.code, state.message)))
        else if (state.at === 'closed') end(() => reject(new BatonError('offline')))
      }
      const aborted = (): void => end(() => reject(signal?.reason))
      if (signal?.aborted) {
        reject(signal.reason)
        return
      }
      signal?.addEventListener('abort', aborted)
      this.#waiting.add(check)
      check()
    })
  }
}
