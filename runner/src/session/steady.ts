/** Repeats what the network cut off, for as long as the lease may still be ours. */
import type { BlobStore } from '@baton/shared/blobs.ts'
import { BatonError } from '@baton/shared/errors.ts'
import type { RelayLink } from './link.ts'

/** Refusals that say nothing about whether the thing happened, or that pass by themselves, with the time to wait. */
const PASSING_MS: Readonly<Record<string, number>> = {
  offline: 200,
  timeout: 200,
  'store-down': 200,
  'too-fast': 500,
  'not-signed-in': 200,
  // Somebody has to make room; until then the session stands still and loses nothing.
  'disk-full': 3000,
  'storage-limit': 3000,
}

/**
 * Runs `attempt` until it succeeds or fails for good. It must be harmless to repeat. Rejects with the reason of `gone` as soon
 * as the lease ends, also when an answer comes after that: nobody may act on it any more.
 */
export async function steady<T>(link: RelayLink, gone: AbortSignal, attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    gone.throwIfAborted()
    let wait_ms: number | undefined
    try {
      const value = await unlessAborted(gone, attempt())
      gone.throwIfAborted()
      return value
    } catch (error) {
      gone.throwIfAborted()
      wait_ms = error instanceof BatonError ? PASSING_MS[error.code] : undefined
      if (wait_ms === undefined) throw error
    }
    await unlessAborted(gone, new Promise((resolve) => setTimeout(resolve, wait_ms)))
    await link.ready(gone)
  }
}

/** Rejects with the reason of `signal` when that comes first. */
export function unlessAborted<T>(signal: AbortSignal, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const refuse = (): void => reject(signal.reason as Error)
    if (signal.aborted) return refuse()
    signal.addEventListener('abort', refuse, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', refuse))
  })
}

/** A blob store that waits out lost connections. */
export function steadyBlobs(link: RelayLink, gone: AbortSignal): BlobStore {
  return {
    put: (sid, key, plain) => steady(link, gone, () => link.blobs.put(sid, key, plain)),
    get: (sid, key, hash) => steady(link, gone, () => link.blobs.get(sid, key, hash)),
  }
}
