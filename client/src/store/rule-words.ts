/** "Always for this session": the rule for a call, in words, or why there is none. Pure. */
import type { Access, Json } from '@baton/shared/guest.ts'
import type { Rule } from '@baton/shared/journal.ts'
import { permissionOf, ruleFor } from '@baton/shared/permissions.ts'

export interface SafeRule {
  rule: Rule
  words: string
}

export type Always = SafeRule | { reason: string }

/** What "always" would mean for a call; undefined for a call that no rule is about: one of the agent's own. */
export function alwaysOf(
  { name, input }: { name: string; input: { [key: string]: Json } },
  access: Access | undefined,
  rules: readonly Rule[],
): Always | undefined {
  if (access === undefined) return undefined
  const call = { name, access, input }
  const rule = ruleFor(call)
  if (!rule) {
    return { reason: 'No “always”: this is not one plain command.' }
  }
  // The runner checks it likewise, and would not let the approval count.
  if (permissionOf(call, 'ask', [rule]) !== 'allow')
    return { reason: 'No “always”: no rule would be safe here.' }
  if (permissionOf(call, 'ask', [...rules, rule]) !== 'allow') {
    return { reason: 'No “always”: a rule asks for this each time.' }
  }
  return { rule, words: ruleWords(rule) }
}

/** What a rule is about: ``every `npm test …` ``. */
export function ruleWords({ tool, prefix }: Rule): string {
  if (tool === 'bash') return prefix === undefined ? 'every command' : `every \`${prefix} …\``
  if (prefix !== undefined) return `every \`${tool}\` under \`${prefix}\``
  return `every \`${tool}\``
}
