import { createContext, useContext, useEffect, useState, useSyncExternalStore } from 'react'
import type { Hub } from '../net/hub.ts'
import type { Cell } from '../store/cell.ts'
import type { Database } from '../store/db.ts'
import type { Drafts } from '../store/drafts.ts'
import { removedWords, type NamedDevice, type Runner } from '../store/account.ts'

/** What every screen of a paired device can reach. */
export interface Paired {
  hub: Hub
  drafts: Drafts
  db: Database
}

export const PairedContext = createContext<Paired | undefined>(undefined)

export function usePaired(): Paired {
  const paired = useContext(PairedContext)
  if (!paired) throw new Error('used outside of a paired app')
  return paired
}

export function useCell<T>(cell: Cell<T>): T {
  return useSyncExternalStore(cell.subscribe, cell.get)
}

export function useRunners(): Runner[] {
  const { hub } = usePaired()
  return hub.runners(useCell(hub.seen))
}

export function useDevices(): NamedDevice[] {
  const { hub } = usePaired()
  return hub.devices(useCell(hub.seen))
}

/** This device has no network, as its system says, and no connection. A short break of the connection alone is not that. */
export function useOffline(): boolean {
  const { hub } = usePaired()
  return useCell(hub.connection).at !== 'open' && !navigator.onLine
}

/** Why this device can send nothing any more (`device-revoked`). */
export function useRemoved(): string | undefined {
  const { hub } = usePaired()
  return removedWords(useCell(hub.connection))
}

/** The present time, again every `every_ms`. */
export function useNow(every_ms = 30_000): number {
  const [now, setNow] = useState(Date.now)
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), every_ms)
    return () => clearInterval(timer)
  }, [every_ms])
  return now
}

export function useMedia(query: string): boolean {
  const [media] = useState(() => matchMedia(query))
  return useSyncExternalStore(
    (listener) => {
      media.addEventListener('change', listener)
      return () => media.removeEventListener('change', listener)
    },
    () => media.matches,
  )
}
