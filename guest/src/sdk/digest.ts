/** The digest that binds a decision to one call; the same as callDigest in shared/src/digest.ts, with the host's SHA-256. */
import type { Json } from '@baton/shared/guest.ts'
import { host } from './host.ts'

export function callDigest(name: string, input: { [key: string]: Json }): string {
  return host().sha256(canonicalJson([name, input]))
}

function canonicalJson(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`
  if (value === null || typeof value !== 'object') return JSON.stringify(value)
  const parts = Object.keys(value)
    // As in JSON: what is undefined is not there.
    .filter((key) => value[key] !== undefined)
    .toSorted()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] ?? null)}`)
  return `{${parts.join(',')}}`
}
