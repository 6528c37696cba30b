/** Words that are the same wherever a session is shown. Pure. */
import type { Handoff } from './items.ts'
import type { Moving } from './transcript.ts'
import { duration, size } from './units.ts'

/** Longer, and what nobody held was parked rather than under way. */
const MOVING_MS = 3_000

/** `moved to cloud-2 · 64 ms · 41 KB` */
export function handoffWords(handoff: Handoff, nameOf: (device: string) => string): string {
  const to = nameOf(handoff.to)
  switch (handoff.how) {
    case 'moved':
      return [
        `moved to ${to}`,
        ...(handoff.gap_ms < MOVING_MS ? [duration(handoff.gap_ms)] : []),
        ...(handoff.bytes === undefined ? [] : [size(handoff.bytes)]),
      ].join(' · ')
    case 'took-over':
      return `${nameOf(handoff.from)} went away; ${to} took over`
    case 'back':
      return `${to} went away and came back`
  }
}

export function movingWords({ label, waits }: Moving): string {
  const where = label === '' ? 'Moving to another runner' : `Moving to ${label}`
  return waits ? `${where}, after the model has finished` : where
}
