/** Words that are the same wherever a session is shown. Pure. */
import { ATTEMPTS_MAX } from '../backoff.ts'
import { ERRORS, isErrorCode } from '../errors.ts'
import type { Allowance } from '../journal.ts'
import type { EventItem, Handoff } from './items.ts'
import type { Moving, Retrying } from './transcript.ts'
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

/** `The model is busy: attempt 3 of 5, in 8 s`; `now` on the relay's clock. */
export function retryWords({ attempt, message, from }: Retrying, now: number): string {
  const why = message.trim().replace(/\.$/, '')
  const wait_s = Math.ceil((from - now) / 1000)
  return `${why}: attempt ${attempt} of ${ATTEMPTS_MAX}${wait_s > 0 ? `, in ${wait_s} s` : ''}`
}

/** `rule "bash: git status"`, `mode edit`: by what a call was allowed that nobody was asked for. */
export function allowanceWords({ mode, rules = [] }: Allowance): string {
  if (rules.length === 0) return `mode ${mode ?? 'unknown'}`
  const named = rules.map(({ tool, prefix }) => `"${prefix === undefined ? tool : `${tool}: ${prefix}`}"`)
  return `${rules.length === 1 ? 'rule' : 'rules'} ${named.join(', ')}`
}

/** Of a model's answer: how often it had been asked for before, in vain, because a move or a lost runner cut that off. */
export function repeatedWords(repeated: number): string {
  return `${repeated === 1 ? 'One request was' : `${repeated} requests were`} cut off and asked again.`
}

/** What to do about an error: as the agent says, else as the table of errors does; empty when its text says it, or nobody knows. */
export function todoOf({ code, todo, text }: Pick<EventItem, 'code' | 'todo' | 'text'>): string {
  const said = todo ?? (code !== undefined && isErrorCode(code) ? ERRORS[code].todo : '')
  return text.includes(said) ? '' : said
}
