/** Collects blobs that nothing needs any more, behind the writes that made them so. */
import type { NewEntry } from '@baton/shared/protocol.ts'
import type { Redis } from 'ioredis'
import { blobKey, sessionKeys } from './keys.ts'
import type { Usage } from './limits.ts'
import { run } from './scripts.ts'

/** After an append whose last entry is `last`: one that was lost only leaves some blobs behind. */
export async function collect(
  redis: Redis,
  usage: Usage,
  session: { account: string; sid: string },
  entries: readonly NewEntry[],
  last: number,
): Promise<void> {
  const { account, sid } = session
  const { state, blobs } = sessionKeys(sid)
  for (const [i, { kind, blobs: own, keeps = [] }] of entries.entries()) {
    if (kind !== 'snapshot' && kind !== 'checkpoint') continue
    const seq = last - entries.length + 1 + i
    const [code, bytes, forgotten] = await run(
      redis,
      'collect',
      { state, blobs },
      // A snapshot that names what it keeps of earlier ones names all of it.
      {
        ...{ account, kind, seq, hashes: [...own, ...keeps].join(' ') },
        whole: kind === 'snapshot' && keeps.length > 0 ? 1 : 0,
      },
    )
    if (code !== 'ok' || !forgotten) continue
    await redis.unlink(
      ...String(forgotten)
        .split(' ')
        .map((hash) => blobKey(sid, hash)),
    )
    usage.add(account, -Number(bytes))
  }
}
