/** The parts of a running relay, as those who handle requests need them. */
import type { Redis } from 'ioredis'
import type { Logger } from 'pino'
import type { Hubs } from './hub.ts'
import type { AddressLimit, DiskRoom, Usage } from './limits.ts'
import type { Notices } from './notices.ts'
import type { RelayOptions } from './options.ts'
import type { Presence } from './presence.ts'
import type { Scheduler } from './scheduler.ts'
import type { Store } from './store.ts'

export interface Context {
  options: RelayOptions
  log: Logger
  store: Store
  redis: Redis
  notices: Notices
  hubs: Hubs
  presence: Presence
  scheduler: Scheduler
  usage: Usage
  disk: DiskRoom
  connects: AddressLimit
  pairings: AddressLimit
  /** Has work left that the caller does not wait for; close() does, errors are logged. */
  background: (work: Promise<unknown>) => void
}
