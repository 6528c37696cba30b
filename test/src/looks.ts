/** What tests look for in a journal. */
import type { Opened } from '@baton/shared/entries.ts'
import type { Json } from '@baton/shared/guest.ts'
import type { Intent, Outcome } from '@baton/shared/journal.ts'

/** What the guest has noted down, in order. */
export const notes = (entries: Opened[]): Json[] =>
  entries.flatMap((entry) => (entry.kind === 'event' && entry.body.type === 'note' ? [entry.body.data] : []))

export const noted =
  (count = 1) =>
  (entries: Opened[]): boolean =>
    notes(entries).length >= count

/** All attempts at one effect. */
export const intents = (entries: Opened[], effect: number): Intent[] =>
  entries.flatMap((entry) => (entry.kind === 'intent' && entry.body.effect === effect ? [entry.body] : []))

/** The guest waits for this effect. */
export const begun =
  (effect: number) =>
  (entries: Opened[]): boolean =>
    intents(entries, effect).length > 0

export const outcome = (entries: Opened[], effect: number): Outcome | undefined =>
  entries.flatMap((entry) =>
    entry.kind === 'outcome' && entry.body.effect === effect ? [entry.body] : [],
  )[0]

/** The files of the session are at the relay. */
export const stored = (entries: Opened[]): boolean => entries.some(({ kind }) => kind === 'checkpoint')
