/**
 * What a machine tells of its power. Linux tells in time and lets itself be held back for some seconds (logind.ts), macOS is
 * looked at (macos.ts), and everywhere a sleep that nobody spoke of is found out afterwards (clock.ts). How a network that
 * changed is noticed stands in network.ts.
 */
import { watchClock } from './clock.ts'
import { watchLogind } from './logind.ts'
import { watchLid } from './macos.ts'
import { watchNetwork } from './network.ts'

/** Why the machine will be gone. */
export type Why = 'sleep' | 'shutdown'

export interface PowerEvents {
  /** It will be gone in `within_ms` at the latest. The machine is held back until this resolves, as far as it can be. */
  going(why: Why, within_ms: number): Promise<void>
  /** It is back, or did not go after all. */
  back(): void
  /** It was away for so long, in milliseconds, and nobody had said so. */
  jumped(away_ms: number): void
  /** Another network, or one after there was none. */
  network(): void
}

export interface PowerOptions {
  platform: NodeJS.Platform
  env: NodeJS.ProcessEnv
  events: PowerEvents
  log: (message: string) => void
}

/** Begins to watch; gives what ends it. */
export function watchPower({ platform, env, events, log }: PowerOptions): () => void {
  const ends = [
    watchClock((away_ms) => events.jumped(away_ms)),
    watchNetwork(() => events.network()),
    ...(platform === 'linux' ? [watchLogind({ env, events, log })] : []),
    ...(platform === 'darwin' ? [watchLid({ events, log })] : []),
  ]
  return () => {
    for (const end of ends) end()
  }
}
