/** What mode and rules of a live session say of a call. The runner decides; the agent only knows the mode. */
import { callDigest } from '@baton/shared/digest.ts'
import { BatonError } from '@baton/shared/errors.ts'
import type { ApproveInput, ApproveResult, Mode, ToolInput, ToolSpec } from '@baton/shared/guest.ts'
import type { Allowance, Rule } from '@baton/shared/journal.ts'
import { rulingOf, ruleWords, type Ruling } from '@baton/shared/permissions.ts'
import type { Tool } from '../tools/tool.ts'

/** What a decision about a call is made by. */
export interface Policy {
  mode: Mode
  rules: readonly Rule[]
  tools: ReadonlyMap<string, Tool>
}

const RANK = { read: 0, edit: 1, run: 2 } as const

/** This runner's tools, none of them laxer than the agent was told at the start (F38). */
export function tightened(tools: readonly Tool[], told: readonly ToolSpec[]): Tool[] {
  const known = new Map(told.map((spec) => [spec.name, spec]))
  return tools.map((tool) => {
    const { name, access, replay } = tool.spec
    const before = known.get(name)
    if (!before) return tool
    const spec = {
      ...tool.spec,
      access: RANK[before.access] > RANK[access] ? before.access : access,
      replay: before.replay === 'never' ? before.replay : replay,
    }
    return { ...tool, spec, execute: (input, context) => tool.execute(input, context) }
  })
}

/** Rules of a config that count on a runner where the session did not begin: what allows more is left out (F38). */
export function restricting(rules: readonly Rule[]): Rule[] {
  return rules.filter(({ action }) => action !== 'allow')
}

/**
 * May this call run? Where mode and rules ask, it needs an approval of exactly this call, and each approval serves once (I10).
 * The agent asks for it; the runner does not take the agent's word.
 */
export function objectionToCall(
  policy: Policy,
  { name, input, approval }: ToolInput,
  approvals: ReadonlyMap<number, string>,
): BatonError | undefined {
  const tool = policy.tools.get(name)
  if (!tool) return new BatonError('unknown-tool', `(${name})`)
  const ruling = rulingOn(tool, input, policy)
  if (ruling.permission === 'allow') return undefined
  if (ruling.permission === 'deny') return new BatonError('not-allowed', `(${name}: ${why(ruling)})`)
  const digest = approval === undefined ? undefined : approvals.get(approval)
  return digest === callDigest(name, input) ? undefined : new BatonError('not-approved', `(${name})`)
}

/** Rules of one call that are named; a command line may need more. */
const NAMED_MAX = 8

/** The rules, or else the mode, by which a call runs that no person was asked for; undefined: a person was, or it only looks. */
export function allowanceOf(
  policy: Policy,
  { name, input, approval }: ToolInput,
  approvals: ReadonlyMap<number, string>,
): Allowance | undefined {
  const tool = policy.tools.get(name)
  if (!tool || (approval !== undefined && approvals.has(approval))) return undefined
  const { permission, through = [] } = rulingOn(tool, input, policy)
  if (permission !== 'allow') return undefined
  if (through.length > 0) return { rules: through.slice(0, NAMED_MAX) }
  return tool.spec.access === 'read' ? undefined : { mode: policy.mode }
}

/** The decision that mode and rules make by themselves; undefined: a person has to. */
export function ruledDecision(policy: Policy, { name, input }: ApproveInput): ApproveResult | undefined {
  const tool = policy.tools.get(name)
  if (!tool) return undefined
  const ruling = rulingOn(tool, input, policy)
  if (ruling.permission === 'ask') return undefined
  if (ruling.permission === 'allow') return { approved: true }
  return { approved: false, note: `Forbidden for ${name}: ${why(ruling)}.` }
}

/**
 * Why a call that may run may not lead where the call with another input would: a rule forbids that, or it would be asked for, and nobody
 * was. An approval of the call holds for where it leads, unless a rule asks for just that.
 */
export function objectionToWay(
  policy: Policy,
  { name, input }: Pick<ToolInput, 'name' | 'input'>,
  other: ToolInput['input'],
): string | undefined {
  const tool = policy.tools.get(name)
  if (!tool) return undefined
  const [here, there] = [rulingOn(tool, input, policy), rulingOn(tool, other, policy)]
  if (there.permission === 'deny') return `That is forbidden for ${name}: ${why(there)}.`
  const isNew = here.permission === 'allow' || (there.by !== undefined && there.by !== here.by)
  if (there.permission !== 'ask' || !isNew) return undefined
  return `For that a person is asked: call ${name} with it itself.`
}

function rulingOn(tool: Tool, input: ToolInput['input'], { mode, rules }: Policy): Ruling {
  if (mode === 'plan' && tool.changes?.(input)) return { permission: 'deny' }
  const { name, access } = tool.spec
  return rulingOf({ name, access, input }, mode, rules)
}

/** Of a denial: without a rule it is the mode, and only one mode forbids. */
const why = ({ by }: Ruling): string =>
  by ? `the rule "${ruleWords(by)}"` : 'the session is in plan mode, where only what looks may run'
