/** What the guest knows of its session: how it was started, and whether a person wants it to stop. */
import type { StartMessage } from '@baton/shared/guest.ts'

type StartInfo = Pick<StartMessage, 'mode' | 'tools' | 'about' | 'settings'>

export const session: { start: StartInfo | undefined } = { start: undefined }

let requested = false
const listeners = new Set<() => void>()

/** Has a person pressed Stop since the last `clear`? Open effects end with the code `stopped` on their own. */
export const stopping = {
  get requested(): boolean {
    return requested
  },
  clear(): void {
    requested = false
  },
}

/** Calls back when a person presses Stop. Returns a function that ends this. */
export function onStop(callback: () => void): () => void {
  listeners.add(callback)
  return () => listeners.delete(callback)
}

export function stop(): void {
  requested = true
  for (const listener of listeners) listener()
}

export function resetSession(): void {
  session.start = undefined
  requested = false
  listeners.clear()
}
