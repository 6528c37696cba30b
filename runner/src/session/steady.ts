/** Repeats what the network cut off, for as long as the lease may still be ours. */
import type { BlobStore } from '@baton/shared/blobs.ts'
import { BatonError } from '@baton/shared/errors.ts'
import type { RelayLink } from './link.ts'

/** Refusals that say nothing about whether the thing happened, or that pass by themselves. */
const PASSING: ReadonlySet<string> = new Set([
  'offline',
  'timeout',
  'store-down',
  'too-fast',
  'not-signed-in',
])
const PAUSE_MS = 200

/**
 * Runs `attempt` until it succeeds or fails for good. It must be harmless to repeat. Rejects with the reason of `gone` when
 * the lease ends first.
 */
export async function steady<T>(link: RelayLink, gone: AbortSignal, attempt: () => Promise<T>): Promise<T> {
  for (;;) {
    gone.throwIfAborted()
    try {
      return await attempt()
    } catch (error) {
      if (!(error instanceof BatonError) || !PASSING.has(error.code)) throw error
    }
    await pause(gone)
    await link.ready(gone)
  }
}

/** A blob store that waits out lost connections. */
export function steadyBlobs(link: RelayLink, gone: AbortSignal): BlobStore {
  return {
    put: (sid, key, plain) => steady(link, gone, () => link.blobs.put(sid, key, plain)),
    get: (sid, key, hash) => steady(link, gone, () => link.blobs.get(sid, key, hash)),
  }
}

function pause(signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const refuse = (): void => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', refuse)
      resolve()
    }, PAUSE_MS)
    signal.addEventListener('abort', refuse, { once: true })
  })
}
