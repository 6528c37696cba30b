/**
 * `npm run torture -- NAME [options] [--json]`: disturbs the product where it hurts, at length. The last line sums up; with
 * `--json` as JSON. Exit code 1 when something was violated.
 *
 *     handoff [--how kill,write,move] [--every N] [--at K,K]   a session is killed or moved after every entry of its journal, and
 *                                                              killed whenever a file was written
 *     pool [--sessions 50] [--capacity 8]                      more sessions than a runner has room for
 */
import { oneOf, runProgram, wholeNumber, WrongLine } from './command-line.ts'
import { pool, poolLine } from './torture/pool.ts'
import { Torture, type How, type Verdict } from './torture/handoff.ts'
import { WRITTEN } from './torture/task.ts'

export interface HandoffSummary {
  entries: number
  kills: number
  moves: number
  violations: number
}

/** Disturbs after every `every`-th entry and each write, or only after those in `at`; calls `told` after each run. */
export async function tortureHandoff(
  { how, every = 1, at }: { how: How[]; every?: number; at?: number[] },
  told: (verdict: Verdict) => void,
): Promise<HandoffSummary> {
  const summary: HandoffSummary = { entries: 0, kills: 0, moves: 0, violations: 0 }
  for (const one of how) {
    await using torture = await Torture.open(one)
    summary.entries = await torture.measure()
    const length = one === 'write' ? WRITTEN.times : summary.entries
    const all = Array.from({ length }, (_, i) => i + 1)
    for (const place of at ?? all.filter((k) => one === 'write' || k % every === 0)) {
      const verdict = await torture.disturb({ how: one, at: place })
      summary[one === 'move' ? 'moves' : 'kills']++
      summary.violations += verdict.violations.length
      told(verdict)
    }
  }
  return summary
}

const NAMES = ['handoff', 'pool'] as const
const HOWS = ['kill', 'write', 'move'] as const satisfies How[]

const USAGE = `usage: npm run torture -- NAME [options]

  handoff   a session is killed or moved after every entry of its journal
    --how kill,write,move   what is done to it; write: it is killed when a file was just written. Default: one after the other
    --every N               only after every N-th entry
    --at K,K                only after these entries, or writes
  pool      more sessions than a runner has room for
    --sessions N       how many; default 50
    --capacity N       how many the runner holds at once; default 8

  --json    the result as JSON, in the last line
  --help    this

Exit codes: 0 all went well, 1 something was violated, 2 the command line is not right.`

const OPTIONS = {
  json: { type: 'boolean', default: false },
  how: { type: 'string', default: HOWS.join(',') },
  every: { type: 'string', default: '1' },
  at: { type: 'string' },
  sessions: { type: 'string', default: '50' },
  capacity: { type: 'string', default: '8' },
} as const

/** Returns the exit code. */
export function torture(args: string[]): Promise<number> {
  return runProgram({ args, usage: USAGE, options: OPTIONS }, async ({ values, positionals }) => {
    const [name, ...more] = positionals
    const chosen = oneOf('torture', name, NAMES)
    if (more.length > 0) throw new WrongLine('One at a time, please.')
    return chosen === 'handoff' ? handoff(values) : crowd(values)
  })
}

interface CrowdValues {
  json: boolean
  sessions: string
  capacity: string
}

async function crowd({ json, sessions, capacity }: CrowdValues): Promise<number> {
  const verdict = await pool({
    sessions: wholeNumber('sessions', sessions),
    capacity: wholeNumber('capacity', capacity),
  })
  console.log(json ? JSON.stringify(verdict) : poolLine(verdict))
  return verdict.violations.length === 0 ? 0 : 1
}

interface HandoffValues {
  json: boolean
  every: string
  how: string
  at?: string | undefined
}

async function handoff({ json, ...values }: HandoffValues): Promise<number> {
  const how = values.how.split(',').map((one) => oneOf('--how', one, HOWS))
  const every = wholeNumber('every', values.every)
  const at = values.at?.split(',').map((one) => wholeNumber('at', one))
  const summary = await tortureHandoff({ how, every, ...(at ? { at } : {}) }, (verdict) => {
    if (json) return console.log(JSON.stringify(verdict))
    const { at: place, how: one, restarted, violations } = verdict
    const words = violations.length === 0 ? 'ok' : violations.join('; ')
    console.log(
      `${one} after ${one === 'write' ? 'write' : 'entry'} ${place}${restarted ? ', started again there' : ''}: ${words}`,
    )
  })
  const { entries, kills, moves, violations } = summary
  console.log(
    json
      ? JSON.stringify(summary)
      : `${entries} entries, ${kills} kills, ${moves} moves, ${violations} violations`,
  )
  return violations === 0 ? 0 : 1
}

if (import.meta.main) process.exitCode = await torture(process.argv.slice(2))
