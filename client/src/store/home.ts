/** Sessions that a runner can bring home: it was away, and they went on elsewhere. Pure. */
import type { SessionInfo } from '@baton/shared/protocol.ts'
import { isTaking } from '@baton/shared/view/runners.ts'
import type { Runner } from './account.ts'
import type { OutboxItem } from './outbox.ts'

export interface Homecoming {
  device: string
  name: string
  sids: string[]
}

/**
 * Each runner that is back, with what it can bring home. What has ended, is there already or is on its way is left out, and what
 * a person has put off.
 */
export function homecomings(
  runners: readonly Runner[],
  sessions: readonly SessionInfo[],
  outbox: readonly OutboxItem[],
  put_off: ReadonlySet<string>,
): Homecoming[] {
  const going = new Set(
    outbox.flatMap(({ sid, shown, state }) => (shown.as === 'move' && state !== 'refused' ? [sid] : [])),
  )
  return runners.flatMap((runner) => {
    const { device, about } = runner
    const away = new Set(isTaking(runner) ? about?.away : [])
    const sids = sessions
      .filter(({ sid, holder, status }) => {
        const movable = status !== 'done' && status !== 'failed' && status !== 'moving'
        return away.has(sid) && holder !== device && movable && !going.has(sid) && !put_off.has(sid)
      })
      .map(({ sid }) => sid)
    return sids.length === 0 ? [] : [{ device, name: about?.name ?? '', sids }]
  })
}

/** `laptop is back. 3 of its sessions went on elsewhere.` */
export function homecomingWords({ name, sids }: Homecoming): string {
  return sids.length === 1
    ? `${name} is back. One of its sessions went on elsewhere.`
    : `${name} is back. ${sids.length} of its sessions went on elsewhere.`
}
