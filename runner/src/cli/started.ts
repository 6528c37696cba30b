/** Has a new session begun? What goes wrong at the start is told to whoever asked for it. */
import { openEntry } from '@baton/shared/entries.ts'
import { BatonError, ERRORS, isErrorCode } from '@baton/shared/errors.ts'
import type { Json } from '@baton/shared/guest.ts'
import { sessionKey } from '@baton/shared/keys.ts'
import { LIMITS } from '@baton/shared/protocol.ts'
import type { Copying } from './copying.ts'
import { dismiss } from './dismissed.ts'

const START_MS = 60_000
const LOOK_EVERY_MS = 200

/**
 * Waits until a runner has started the session, a copy once it has read it whole (F45). False: nobody has taken it yet. Throws
 * BatonError with the reason when it can't be started; then the session is dismissed in the data `folder`, if that is given: who asked
 * for it is told, and nothing comes of it any more.
 */
export async function untilStarted(
  { link, account, folder }: Copying & { folder?: string },
  sid: string,
  within_ms = START_MS,
): Promise<boolean> {
  const key = sessionKey(account, sid)
  const deadline = performance.now() + within_ms
  let from = 1
  while (performance.now() < deadline) {
    const { entries } = await link.ask('read', { sid, from, limit: LIMITS.read_entries })
    from += entries.length
    for (const entry of entries) {
      if (entry.consumes === undefined && entry.hint?.status !== 'failed') continue
      const opened = openEntry(key, sid, entry)
      if (opened.kind === 'event' && opened.body.type === 'failed') {
        // Where that can't be written it stays in the list.
        if (folder !== undefined) await dismiss(folder, [sid]).catch(() => undefined)
        throw failureIn(opened.body.data)
      }
      if (opened.kind !== 'received' || opened.body.kind !== 'start') continue
      if (opened.body.copied ?? opened.body.start) return true
    }
    if (entries.length === 0) await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS))
  }
  return false
}

/** What the runner told, without what its code says anyway. */
export function failureIn(data: Json): BatonError {
  const { code, message } = data as { code?: unknown; message?: unknown }
  const known = typeof code === 'string' && isErrorCode(code) ? code : 'internal'
  const said = typeof message === 'string' ? message : ''
  const { what, todo } = ERRORS[known]
  const begun = said.startsWith(what) ? said.slice(what.length) : said
  return new BatonError(known, (begun.endsWith(todo) ? begun.slice(0, -todo.length) : begun).trim())
}
