/**
 * Names of models as people type them. Only the service knows which there are: a name that is not known here may be a newer model's, so
 * it is warned of and not refused.
 */
import { nearest } from '../similar.ts'
import { factsOf, MODELS, NAMES } from './prices.ts'

/** Of the names that a service lists. */
const SHOWN = 8

/** `offered`: names that are known beside those of prices.ts. */
export function isKnownModel(name: string, offered: readonly string[] = []): boolean {
  return offered.includes(name) || factsOf(name) !== undefined
}

/** The name that was most likely meant: by the family that it names, `opus` say, else by its letters. */
export function modelMeant(name: string, names: readonly string[]): string | undefined {
  const word = name.trim().toLowerCase()
  return (
    nearest(word, names) ??
    names.find((known) => word.split(/[^a-z]+/).some((part) => part !== '' && part === familyOf(known)))
  )
}

/** What to say at once of a name that is not known; undefined: it is known. */
export function modelDoubt(name: string, offered: readonly string[] = []): string | undefined {
  if (isKnownModel(name, offered)) return undefined
  const others = [...new Set([...offered, ...NAMES])]
  const listed = offered.length > 0 ? offered : MODELS
  return `The model ${JSON.stringify(name)} is not known here. ${insteadOf(name, others, listed)} It is asked for all the same.`
}

/** Which ones there are instead, in words. `names`: from which one may be meant; `listed`: those to name, else the first of them. */
export function insteadOf(name: string, names: readonly string[], listed: readonly string[] = names): string {
  const found = modelMeant(name, names)
  if (found !== undefined) return `Did you mean ${found}?`
  const more = listed.length > SHOWN ? ', …' : ''
  return listed.length === 0 ? '' : `There are: ${listed.slice(0, SHOWN).join(', ')}${more}.`
}

/** `opus` of `claude-opus-5-5`. */
function familyOf(name: string): string | undefined {
  return /^claude-(?:[\d-]+-)?([a-z]+)/.exec(name)?.[1]
}
