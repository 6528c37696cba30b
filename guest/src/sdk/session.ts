/** What the guest knows of its session: how it was started, and what a person wants of it since. */
import type { Json, Mode, StartMessage } from '@baton/shared/guest.ts'

/** Mode and settings are those of now. */
export type StartInfo = Pick<StartMessage, 'mode' | 'tools' | 'about' | 'settings'>

export const session: { start: StartInfo | undefined } = { start: undefined }

class Listeners<A extends unknown[] = []> {
  readonly #all = new Set<(...given: A) => void>()

  add(callback: (...given: A) => void): () => void {
    this.#all.add(callback)
    return () => this.#all.delete(callback)
  }

  call(...given: A): void {
    for (const callback of this.#all) callback(...given)
  }

  clear(): void {
    this.#all.clear()
  }
}

let stopRequested = false
let compactRequested = false
const stops = new Listeners()
const modes = new Listeners<[Mode]>()
const settings = new Listeners<[StartInfo['settings']]>()
const compacts = new Listeners()

/** Has a person pressed Stop since the last `clear`? Open effects end with the code `stopped` on their own. */
export const stopping = {
  get requested(): boolean {
    return stopRequested
  },
  clear(): void {
    stopRequested = false
  },
}

/** Calls back when a person presses Stop. Returns a function that ends this. */
export const onStop = (callback: () => void): (() => void) => stops.add(callback)

/** Calls back when a person changed the mode; `start().mode` is it already. Returns a function that ends this. */
export const onMode = (callback: (mode: Mode) => void): (() => void) => modes.add(callback)

/** Calls back with what a person changed of the settings. Returns a function that ends this. */
export const onSettings = (callback: (changed: { [key: string]: Json }) => void): (() => void) =>
  settings.add(callback)

/** Does a person want the conversation to be compacted? True once for each time. */
export function takeCompact(): boolean {
  const wanted = compactRequested
  compactRequested = false
  return wanted
}

/** Calls back when a person wants that. Returns a function that ends this. */
export const onCompact = (callback: () => void): (() => void) => compacts.add(callback)

export function stop(): void {
  stopRequested = true
  stops.call()
}

export function compact(): void {
  compactRequested = true
  compacts.call()
}

export function changeMode(mode: Mode): void {
  if (session.start) session.start.mode = mode
  modes.call(mode)
}

export function changeSettings(changed: { [key: string]: Json }): void {
  if (session.start) session.start.settings = { ...session.start.settings, ...changed }
  settings.call(changed)
}

export function resetSession(): void {
  session.start = undefined
  stopRequested = false
  compactRequested = false
  for (const listeners of [stops, modes, settings, compacts]) listeners.clear()
}
