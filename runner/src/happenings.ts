/**
 * What happens in this process, told to those who measure (daemon/metrics.ts). It costs nothing while nobody listens, and
 * carries no names.
 */
import { channel } from 'node:diagnostics_channel'

export interface Happenings {
  /** An effect ended here. `tokens`: of a model call, by what they were. */
  effect: { kind: string; ok: boolean; ms: number; tokens?: Record<string, number> }
  /** A session was offered. */
  offer: Record<string, never>
  /** A session was claimed; it had waited this long for a runner. */
  claim: { waited_ms: number }
  /** A session left this runner. */
  ending: { how: string }
  /** A session that moved here runs again: how long nobody ran it. */
  arrival: { blackout_ms: number }
}

const name = (what: keyof Happenings): string => `baton:runner:${what}`

export function happened<W extends keyof Happenings>(what: W, detail: Happenings[W]): void {
  const told = channel(name(what))
  if (told.hasSubscribers) told.publish(detail)
}

/** Calls `listener` from now on; the returned function ends that. */
export function listen<W extends keyof Happenings>(
  what: W,
  listener: (detail: Happenings[W]) => void,
): () => void {
  const told = channel(name(what))
  // Who measures must not end what is measured: a throw in here would be nobody's to catch.
  const heard = (message: unknown): void => {
    try {
      listener(message as Happenings[W])
    } catch {
      return
    }
  }
  told.subscribe(heard)
  return () => {
    told.unsubscribe(heard)
  }
}
