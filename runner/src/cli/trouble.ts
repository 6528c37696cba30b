/** Sessions that failed, or that rest because their last turn did: those are idle, but not because all is done. */
import { openEntry, type Opened } from '@baton/shared/entries.ts'
import * as v from 'valibot'
import type { AccountView, NamedSession } from './account.ts'
import { failureIn } from './started.ts'

export interface Trouble {
  code: string
  message: string
}

const Told = v.object({ code: v.string(), message: v.string() })
const TurnState = v.object({ state: v.picklist(['start', 'end']), reason: v.optional(v.string()) })

/** The end of a turn, or of a session, stands near the end of a journal that rests. */
const LAST_ENTRIES = 24
/** Only the newest are looked at: a list is not to take long. */
const SESSIONS_MAX = 20

/** What ended sessions that failed, and the last turn of those that are idle, by session. One that can't be read has none. */
export async function troublesOf(
  view: AccountView,
  sessions: readonly NamedSession[],
): Promise<Map<string, Trouble>> {
  const resting = sessions
    .filter(({ status }) => status === 'idle' || status === 'failed')
    .slice(0, SESSIONS_MAX)
  const found = await Promise.all(
    resting.map(async ({ sid, seq }): Promise<[string, Trouble | undefined]> => {
      const from = Math.max(1, seq - LAST_ENTRIES + 1)
      const read = view.link.ask('read', { sid, from, limit: LAST_ENTRIES })
      const { entries } = await read.catch(() => ({ entries: [] }))
      try {
        return [sid, troubleIn(entries.map((entry) => openEntry(view.keyOf(sid), sid, entry)))]
      } catch {
        return [sid, undefined]
      }
    }),
  )
  return new Map(found.flatMap(([sid, trouble]) => (trouble ? [[sid, trouble]] : [])))
}

/** The error that the session failed or its last turn ended with; undefined when it ended otherwise, or another turn has begun. */
export function troubleIn(entries: readonly Opened[]): Trouble | undefined {
  let told: Trouble | undefined
  let trouble: Trouble | undefined
  for (const entry of entries) {
    if (entry.kind !== 'event') continue
    const { type, data, effect } = entry.body
    if (type === 'failed' && effect === undefined) {
      const { code, message } = failureIn(data)
      return { code, message }
    }
    if (effect === undefined) continue
    if (type === 'error') {
      const parsed = v.safeParse(Told, data)
      if (parsed.success) told = parsed.output
    } else if (type === 'turn') {
      const parsed = v.safeParse(TurnState, data)
      trouble = parsed.success && parsed.output.reason === 'error' ? told : undefined
      told = undefined
    }
  }
  return trouble
}
