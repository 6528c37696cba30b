/** A session as it stands in Redis, and what follows from it. */
import type { Placement, SessionInfo, Status } from '@baton/shared/protocol.ts'
import type { Redis } from 'ioredis'
import { sessionKeys } from './keys.ts'

export interface SessionState {
  account: string
  meta: string
  status: Status
  seq: number
  epoch: number
  /** Device id; '' for none. A lease that ran out stands here until it is swept. */
  holder: string
  /** Milliseconds on Redis' clock. */
  expires_at: number
  place: Placement
  /** Seq of the newest such entry, 0 for none. */
  snapshot: number
  checkpoint: number
  /** The runner that alone has its newest files, '' for none. */
  unstored: string
  /** Number of the newest command, and of the newest that the session knew of when it was let go and had no use for yet. */
  inbox: number
  seen: number
  /** When it began to wait for a runner, in milliseconds on Redis' clock; 0: it does not. */
  waits_since: number
  /** Runners that held it, the last one first. */
  holders: string[]
  /** Commands that wait. */
  pending: number
  bytes: number
  created_at: number
  changed_at: number
}

/** Resolves with undefined when there is no such session. */
export async function readState(redis: Redis, sid: string): Promise<SessionState | undefined> {
  const { state, inbox } = sessionKeys(sid)
  const [hash, pending] = await Promise.all([redis.hgetall(state), redis.xlen(inbox)])
  if (hash['account'] === undefined) return undefined
  const number = (field: string): number => Number(hash[field] ?? 0)
  return {
    account: hash['account'],
    meta: hash['meta'] ?? '',
    status: (hash['status'] ?? 'idle') as Status,
    seq: number('seq'),
    epoch: number('epoch'),
    holder: hash['holder'] ?? '',
    expires_at: number('expires_at'),
    place: JSON.parse(hash['place'] ?? '{}') as Placement,
    snapshot: number('snapshot'),
    checkpoint: number('checkpoint'),
    unstored: hash['unstored'] ?? '',
    inbox: number('inbox'),
    seen: number('seen'),
    waits_since: number('waits_since'),
    holders: hash['holders'] ? hash['holders'].split(' ') : [],
    pending,
    bytes: number('bytes'),
    created_at: number('created_at'),
    changed_at: number('changed_at'),
  }
}

/** What peers see of it. */
export function infoOf(sid: string, state: SessionState): SessionInfo {
  const { meta, status, seq, epoch, holder, place, pending, created_at, changed_at } = state
  return {
    sid,
    meta,
    status,
    seq,
    epoch,
    ...(holder === '' ? {} : { holder }),
    place,
    pending,
    created_at,
    changed_at,
  }
}

/**
 * Is there anything to do for a runner? A session that has ended stays so, whatever waits in its inbox. What it had seen when
 * it was let go, say a prompt while a decision is awaited, gives it no work before something else comes.
 */
export function hasWork({
  status,
  pending,
  inbox,
  seen,
}: Pick<SessionState, 'status' | 'pending' | 'inbox' | 'seen'>): boolean {
  if (status === 'done' || status === 'failed') return false
  return status === 'running' || status === 'moving' || (pending > 0 && inbox > seen)
}
