/** `baton approve` and `baton deny`: decisions about the calls that a session waits for. Approved is only what was shown or named. */
import { createInterface } from 'node:readline'
import { BatonError } from '@baton/shared/errors.ts'
import { Mode, type Rule } from '@baton/shared/journal.ts'
import { isTrueCall, questionOf } from '@baton/shared/view/call.ts'
import type { Approval } from '@baton/shared/view/items.ts'
import { modeName } from '@baton/shared/view/modes.ts'
import { pendingApprovals, type Transcript } from '@baton/shared/view/transcript.ts'
import * as v from 'valibot'
import { withAccount, type AccountView } from './account.ts'
import { parseFor } from './args.ts'
import { callLines } from './attach/rows.ts'
import { print } from './output.ts'
import { alwaysRule, decisionBody, endsPlanning, modeBody, ruleWords } from './signed.ts'
import { AFTER_PLAN } from './table.ts'
import { painted } from './term/style.ts'
import { clean } from './term/text.ts'

const WIDTH_MAX = 110
const UNDECIDED = 2

interface Flags {
  json?: boolean | undefined
  note?: string | undefined
  effect?: string[] | undefined
  yes?: boolean | undefined
  always?: boolean | undefined
  mode?: string | undefined
}

/** Approves the calls that are named; without a name those that the person, having seen them whole, says yes to. */
export async function approve(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('approve', args)
  const numbers = numbersIn(values.effect)
  return withAccount(values.data, async (view) => {
    const { sid } = await view.find(positionals[0])
    const transcript = await view.transcript(sid)
    const pending = pendingApprovals(transcript)
    if (values.mode !== undefined && !pending.some((approval) => endsPlanning(transcript, approval)))
      throw new BatonError('nothing-waits', '--mode belongs to a plan.', {
        todo: 'Else: baton mode SESSION MODE',
      })
    if (numbers.length > 0)
      return decide(view, { sid, transcript, approved: true }, named(pending, numbers), values)
    if (values.yes === true || pending.length === 0)
      return decide(view, { sid, transcript, approved: true }, pending, values)
    const canAsk = values.json !== true && process.stdin.isTTY && process.stdout.isTTY
    const forRules = values.always === true ? transcript : undefined
    if (!canAsk) return tellWaiting(sid, pending, forRules, values.json)
    const chosen = await asked(pending, forRules)
    return decide(view, { sid, transcript, approved: true }, chosen, values)
  })
}

/** Denies what waits, or the calls that are named. */
export async function deny(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('deny', args)
  const numbers = numbersIn(values.effect)
  return withAccount(values.data, async (view) => {
    const { sid } = await view.find(positionals[0])
    const transcript = await view.transcript(sid)
    const pending = pendingApprovals(transcript)
    const chosen = numbers.length === 0 ? pending : named(pending, numbers)
    return decide(view, { sid, transcript, approved: false }, chosen, values)
  })
}

function numbersIn(texts: readonly string[] = []): number[] {
  return texts.map((text) => {
    if (/^[1-9]\d{0,14}$/.test(text)) return Number(text)
    throw new BatonError('usage', `--effect takes the number of a call, not ${JSON.stringify(text)}.`)
  })
}

/** Throws BatonError `nothing-waits`. */
function named(pending: readonly Approval[], numbers: readonly number[]): Approval[] {
  return [...new Set(numbers)].map((number) => {
    const approval = pending.find(({ effect }) => effect === number)
    if (approval) return approval
    const known = pending.map(({ effect }) => effect).join(', ')
    const there = known === '' ? 'Nothing does.' : `What waits: ${known}.`
    throw new BatonError('nothing-waits', `(effect ${number}) ${there}`)
  })
}

/** A call with its number, whole, and the rule that `--always` would make of it. */
function callText({ effect, name, input, digest, at }: Approval, transcript?: Transcript): string {
  const columns = Math.min(WIDTH_MAX, process.stdout.columns || WIDTH_MAX)
  const lines = callLines(name, input, columns, [{ text: '    ' }])
  const lie = isTrueCall({ effect, name, input, digest, at })
    ? ''
    : '\n    (this is not what would run; it can not be approved)'
  const whole = lines.map((line) => painted(line, 'none').trimEnd()).join('\n')
  const rule = transcript && alwaysRule(transcript, { effect, name, input, digest, at })
  const always = rule ? `\n    From now on, in this session, without asking: ${clean(ruleWords(rule))}` : ''
  return `${clean(`effect ${effect}: ${questionOf(name)}`)}\n${whole}${lie}${always}`
}

function tellWaiting(
  sid: string,
  pending: readonly Approval[],
  transcript: Transcript | undefined,
  json: boolean | undefined,
): number {
  const message = 'Nothing was decided: say which calls.'
  const todo = `baton approve ${sid.slice(0, 8)} --effect N, or all of it: --yes`
  const waits = pending.map(({ effect, name, input, digest }) => ({ effect, name, input, digest }))
  print(
    json,
    { error: { code: 'usage', message, todo }, waits },
    pending.map((approval) => callText(approval, transcript)).join('\n'),
  )
  if (json !== true) process.stderr.write(`baton: ${message} ${todo}\n`)
  return UNDECIDED
}

/** One after the other. Whatever is no yes, the end of the input too, leaves a call as it is. */
async function asked(pending: readonly Approval[], transcript: Transcript | undefined): Promise<Approval[]> {
  const lines = createInterface({ input: process.stdin, terminal: false })
  const answers = lines[Symbol.asyncIterator]()
  const chosen: Approval[] = []
  try {
    for (const approval of pending) {
      print(false, null, callText(approval, transcript))
      if (!isTrueCall(approval)) continue
      process.stdout.write('Approve it? [y/N] ')
      const { value, done } = await answers.next()
      if (done === true) {
        process.stdout.write('\n')
        break
      }
      if (/^\s*y(es)?\s*$/i.test(value)) chosen.push(approval)
    }
    return chosen
  } finally {
    lines.close()
  }
}

interface Deciding {
  sid: string
  transcript: Transcript
  approved: boolean
}

async function decide(
  view: AccountView,
  { sid, transcript, approved }: Deciding,
  chosen: readonly Approval[],
  flags: Flags,
): Promise<number> {
  const { device } = view.identity
  const plan = chosen.find((approval) => endsPlanning(transcript, approval))
  const then = plan && approved ? v.parse(Mode, flags.mode ?? AFTER_PLAN[0]) : undefined
  const ruleOf = (approval: Approval): Rule | undefined => {
    if (flags.always !== true) return undefined
    const rule = alwaysRule(transcript, approval)
    if (rule) return rule
    throw new BatonError('usage', 'No rule would be safe for this call; approve it without --always.')
  }
  // All of it is made before anything is sent: what is refused here changes nothing.
  const decisions = chosen.map((approval) => {
    const always = ruleOf(approval)
    const body = decisionBody(device, sid, approval, {
      approved,
      ...(flags.note === undefined ? {} : { note: flags.note }),
      ...(always === undefined ? {} : { always }),
    })
    return { approval, always, body }
  })
  const lines: string[] = []
  const decided: unknown[] = []
  for (const { approval, always, body } of decisions) {
    const { effect, name, input, digest } = approval
    const mode = approval === plan ? then : undefined
    // First the mode: the agent looks at it as soon as it has the decision. It counts only while the plan waits.
    if (mode) await view.command(sid, 'mode', modeBody(device, sid, mode, transcript.revision, effect))
    await view.command(sid, 'decision', body)
    decided.push({
      ...{ effect, name, input, digest, approved },
      ...(always ? { always } : {}),
      ...(mode ? { mode } : {}),
    })
    const rule = always ? ` (from now on: ${ruleWords(always)})` : ''
    const also = mode ? ` (then: ${modeName(mode)})` : rule
    lines.push(`${approved ? 'Approved' : 'Denied'}: ${name} ${JSON.stringify(input)}${also}`)
  }
  print(flags.json, decided, clean(lines.join('\n')) || nothingWords(transcript))
  return 0
}

const nothingWords = (transcript: Transcript): string =>
  pendingApprovals(transcript).length === 0 ? 'Nothing waits for a decision.' : 'Nothing was decided.'
