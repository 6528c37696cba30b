/** Blobs that were stored or fetched last stay in memory: a session that parks and wakes here need not wait for what was just here. */
import type { BlobStore } from '@baton/shared/blobs.ts'

/** Snapshots and the like; what is larger, say a pack of files, is read once. */
const EACH_BYTES_MAX = 256 << 10
const BYTES_MAX = 16 << 20

/**
 * Hashes name blobs for good, so nothing here goes stale; whether the relay still has one is checked where an entry refers to it (J3).
 * Readers must not write into what they get.
 */
export function recentBlobs(blobs: BlobStore, bytes_max = BYTES_MAX): BlobStore {
  /** In the order of their last use. */
  const recent = new Map<string, Uint8Array>()
  let bytes = 0

  const forget = (name: string): void => {
    bytes -= recent.get(name)?.length ?? 0
    recent.delete(name)
  }

  const keep = (name: string, plain: Uint8Array): void => {
    forget(name)
    if (plain.length > Math.min(EACH_BYTES_MAX, bytes_max)) return
    recent.set(name, plain)
    bytes += plain.length
    for (const [oldest] of recent) {
      if (bytes <= bytes_max) return
      forget(oldest)
    }
  }

  return {
    async put(sid, key, plain) {
      const hash = await blobs.put(sid, key, plain)
      keep(`${sid}/${hash}`, plain)
      return hash
    },
    async get(sid, key, hash) {
      const name = `${sid}/${hash}`
      const plain = recent.get(name) ?? (await blobs.get(sid, key, hash))
      keep(name, plain)
      return plain
    },
  }
}
