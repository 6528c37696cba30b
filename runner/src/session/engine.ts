/** The engine that a session needs: usually this runner's own, else the one that the account has stored (F60). */
import { BatonError } from '@baton/shared/errors.ts'
import type { SessionOptions } from './options.ts'
import { steady } from './steady.ts'

/** Fetched ones: old sessions tend to need the same. */
const fetched = new Map<string, Promise<Uint8Array>>()
const FETCHED_MAX = 4

/**
 * Undefined: this runner's own one does. Throws BatonError `snapshot-engine`, naming both, when the needed one is not to be had.
 */
export async function engineFor(
  { engine, link }: Pick<SessionOptions, 'engine' | 'link'>,
  gone: AbortSignal,
  needed: string,
): Promise<Uint8Array | undefined> {
  const { engines } = link
  if (!engine || !engines || engine.hash === needed) return undefined
  try {
    return await once(needed, () => steady(link, gone, () => engines.get(needed)))
  } catch (cause) {
    if (!(cause instanceof BatonError) || !['no-blob', 'bad-blob', 'cannot-open'].includes(cause.code)) {
      throw cause
    }
    const both = `it needs engine ${needed}, this runner has ${engine.hash}`
    throw new BatonError('snapshot-engine', `(${both}, and the account has not stored the other)`, { cause })
  }
}

function once(hash: string, fetch: () => Promise<Uint8Array>): Promise<Uint8Array> {
  const known = fetched.get(hash)
  if (known) return known
  const engine = fetch()
  fetched.set(hash, engine)
  engine.catch(() => fetched.delete(hash))
  const [oldest] = fetched.keys()
  if (fetched.size > FETCHED_MAX && oldest !== undefined) fetched.delete(oldest)
  return engine
}
