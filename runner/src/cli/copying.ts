/** Makes a new session out of the parts of another one: what `fork` and `import` have in common. */
import { CopyWriter } from '@baton/shared/copy-write.ts'
import type { CopyHead, CopyPart, CopyPlace } from '@baton/shared/copy.ts'
import { BatonError } from '@baton/shared/errors.ts'
import type { SessionMeta, StartCommand } from '@baton/shared/journal.ts'
import { newId, sessionKey, type Account } from '@baton/shared/keys.ts'
import type { Placement } from '@baton/shared/protocol.ts'
import { place, sealJson } from '@baton/shared/seal.ts'
import type { RelayLink } from '../session/link.ts'
import type { AccountView, NamedSession } from './account.ts'
import { targetOf } from './handoff.ts'
import { nearestFirst } from './nearest.ts'

export interface Copying {
  link: Pick<RelayLink, 'ask' | 'blobs'>
  account: Account
}

/** A running session may replace what is being read. */
const TRIES = 3

/** A session as a place to copy from or to. */
export function copyPlace({ link, account }: Copying, sid: string): CopyPlace {
  return {
    ...{ sid, key: sessionKey(account, sid), blobs: link.blobs },
    read: (from, limit) => link.ask('read', { sid, from, limit }),
  }
}

/**
 * Makes a session of a copy and starts it; it is shown as being copied until it is whole. Resolves when the start is durable.
 * `parts` is called again when the origin went on too fast. Throws BatonError `copy-…`, and whatever the relay refuses.
 */
export async function startCopy(
  copying: Copying,
  where: Placement,
  parts: () => AsyncIterable<CopyPart>,
  titled: (title: string) => string = (title) => title,
): Promise<{ sid: string; head: CopyHead }> {
  const { link, account } = copying
  const sid = newId()
  const to = copyPlace(copying, sid)
  const writer = new CopyWriter(to)
  const sealed = (meta: SessionMeta): string => sealJson(to.key, meta, place.meta(sid))
  let isMade = false
  try {
    const add = async (part: CopyPart): Promise<void> => {
      if (part.t === 'head' && !isMade) {
        const { meta } = part.head
        await link.ask('create', {
          ...{ sid, place: where, meta: sealed({ ...meta, title: `Copying: ${meta.title}` }) },
        })
        isMade = true
      }
      await writer.add(part)
    }
    await again(TRIES, async () => {
      for await (const part of parts()) await add(part)
    })
    const copy = await writer.end()
    const { head } = writer
    if (!head) throw new BatonError('copy-torn')
    const { title, agent, mode, workspace } = head.meta
    await link.ask('describe', { sid, meta: sealed({ title: titled(title), agent, mode, workspace }) })
    const start: StartCommand = { agent, workspace, mode, copy }
    const id = newId()
    const body = sealJson(sessionKey(account, sid), start, place.command(sid, 'start', id))
    await link.ask('command', { sid, id, kind: 'start', body })
    return { sid, head }
  } catch (error) {
    const { head } = writer
    if (isMade && head) {
      const meta = sealed({ ...head.meta, title: `Copy failed: ${head.meta.title}` })
      await link.ask('describe', { sid, meta }).catch(() => undefined)
    }
    throw error
  }
}

/** Tries anew when the origin went on too fast. */
export async function again<T>(tries: number, attempt: () => Promise<T>): Promise<T> {
  try {
    return await attempt()
  } catch (error) {
    if (tries <= 1 || !(error instanceof BatonError) || error.code !== 'copy-outrun') throw error
    return again(tries - 1, attempt)
  }
}

/** Where a copy is to run: as asked, else where its origin is, else here, else anywhere. Throws BatonError `no-runner`. */
export async function placeForCopy(
  view: AccountView,
  on: string | undefined,
  origin?: NamedSession,
): Promise<{ where: Placement; label: string }> {
  const { runners } = await view.list()
  if (on !== undefined) return targetOf(view, runners, on, undefined)
  const online = nearestFirst(runners, view.identity.device.id)
  const wanted = [origin?.holder, origin?.place.prefer]
  const runner =
    wanted.flatMap((device) => online.find((candidate) => candidate.device === device) ?? [])[0] ?? online[0]
  if (!runner) throw new BatonError('no-runner', 'None is. Start one: baton up, or: baton runner')
  const { pool, pin } = origin?.place ?? {}
  // A copy of a session that must stay in its pool stays there, too.
  const stays = pool !== undefined && pin === true && runner.tags.includes(pool)
  return { where: { prefer: runner.device, ...(stays ? { pool, pin } : {}) }, label: runner.about.name }
}
