/** How this device comes in: with its identity, by a pairing link, or not yet. */
import { explain } from '@baton/shared/errors.ts'
import { identityFromJson, identityToJson, parsePairingLink } from '@baton/shared/keys.ts'
import { Hub } from './net/hub.ts'
import { takePairing } from '@baton/shared/pairing.ts'
import { guessDeviceName } from './net/device-name.ts'
import { Cell } from './store/cell.ts'
import { openDatabase, wipe, type Database } from './store/db.ts'
import { Drafts } from './store/drafts.ts'

export type Entrance =
  | { at: 'opening' }
  /** The browser forbids storage. */
  | { at: 'broken'; message: string }
  | { at: 'unpaired'; problem?: string }
  | { at: 'pairing' }
  /** A link arrived and this device is paired already: asked first (F70). `unsent`: what would be lost. */
  | { at: 'asking'; link: string; unsent: number; problem?: string }
  | { at: 'paired'; hub: Hub; drafts: Drafts; db: Database }

export const entrance = new Cell<Entrance>({ at: 'opening' })

let db: Database | undefined

/** A link in the address pairs once; then the secret leaves the address bar and the history. */
function takeLinkFromAddress(): string | undefined {
  if (!location.hash.startsWith('#pair=')) return undefined
  const link = location.href
  history.replaceState(null, '', location.pathname)
  return link
}

export async function enter(): Promise<void> {
  addEventListener('hashchange', () => {
    const link = takeLinkFromAddress()
    if (link !== undefined) void arrive(link)
  })
  const link = takeLinkFromAddress()
  try {
    db = await openDatabase()
    if (link !== undefined) await arrive(link)
    else await useIdentity()
  } catch (error) {
    entrance.set({ at: 'broken', message: explain(error) })
  }
}

async function useIdentity(): Promise<void> {
  const saved = await db?.get('identity', 'me')
  if (saved === undefined || !db) {
    entrance.set({ at: 'unpaired' })
    return
  }
  try {
    const { account, device } = identityFromJson(saved)
    const about = guessDeviceName(navigator.userAgent)
    const hub = new Hub({ origin: location.origin, account, device, about, db })
    entrance.set({ at: 'paired', hub, drafts: new Drafts(db), db })
    await hub.start()
  } catch (error) {
    entrance.set({ at: 'unpaired', problem: explain(error) })
  }
}

/** A link came: by scan, tap or paste. */
export async function arrive(link: string): Promise<void> {
  let origin
  try {
    ;({ origin } = parsePairingLink(link))
  } catch (error) {
    const { at } = entrance.get()
    if (at !== 'paired' && at !== 'asking') entrance.set({ at: 'unpaired', problem: explain(error) })
    return
  }
  // Each relay serves its own app; the link leads there. In development another port serves this one.
  if (origin !== location.origin && !import.meta.env.DEV) {
    location.assign(link)
    return
  }
  const now = entrance.get()
  if (now.at === 'pairing') return
  const saved = await db?.get('identity', 'me')
  if (saved !== undefined && now.at !== 'unpaired') {
    if (now.at === 'paired') now.hub.close()
    entrance.set({ at: 'asking', link, unsent: await unsentCount() })
    return
  }
  await pair(link)
}

/** Takes the account behind the link and keeps it. What an earlier account left here is forgotten only when that worked. */
export async function pair(link: string): Promise<void> {
  entrance.set({ at: 'pairing' })
  try {
    const { account, device } = await takePairing(link, location.origin)
    if (db) await wipe(db)
    db = await openDatabase()
    await db.put('identity', identityToJson(account, device), 'me')
    // Asks the browser not to clear it under pressure; a refusal changes nothing.
    void navigator.storage?.persist?.()
    await useIdentity()
  } catch (error) {
    const problem = explain(error)
    const paired = (await db?.get('identity', 'me')) !== undefined
    if (paired) entrance.set({ at: 'asking', link, unsent: await unsentCount(), problem })
    else entrance.set({ at: 'unpaired', problem })
  }
}

async function unsentCount(): Promise<number> {
  const items = (await db?.getAll('outbox')) ?? []
  return items.filter((item) => item.state !== 'acknowledged').length
}

/** Keeps the account that is here. */
export async function keep(): Promise<void> {
  await useIdentity()
}

/** Forgets this device's identity and all that it holds, e.g. after it was revoked. */
export async function leave(): Promise<void> {
  const now = entrance.get()
  if (now.at === 'paired') now.hub.close()
  if (db) await wipe(db)
  db = await openDatabase()
  entrance.set({ at: 'unpaired' })
}
