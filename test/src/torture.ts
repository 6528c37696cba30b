/**
 * `npm run torture -- NAME [options] [--json]`: disturbs the product where it hurts, at length. The last line sums up; with
 * `--json` as JSON. Exit code 1 when something was violated.
 *
 *     handoff [--how kill,move] [--every N] [--at K,K]     a session is killed or moved after every entry of its journal
 *     pool [--sessions 50] [--capacity 8]                more sessions than a runner has room for
 */
import { parseArgs } from 'node:util'
import { pool, poolLine } from './torture/pool.ts'
import { Torture, type How, type Verdict } from './torture/handoff.ts'

export interface HandoffSummary {
  entries: number
  kills: number
  moves: number
  violations: number
}

/** Disturbs after every `every`-th entry, or only after those in `at`; calls `told` after each run. */
export async function tortureHandoff(
  { how, every = 1, at }: { how: How[]; every?: number; at?: number[] },
  told: (verdict: Verdict) => void,
): Promise<HandoffSummary> {
  const summary: HandoffSummary = { entries: 0, kills: 0, moves: 0, violations: 0 }
  for (const one of how) {
    await using torture = await Torture.open(one)
    summary.entries = await torture.measure()
    const all = Array.from({ length: summary.entries }, (_, i) => i + 1)
    for (const place of at ?? all.filter((k) => k % every === 0)) {
      const verdict = await torture.disturb({ how: one, at: place })
      summary[one === 'kill' ? 'kills' : 'moves']++
      summary.violations += verdict.violations.length
      told(verdict)
    }
  }
  return summary
}

const OPTIONS = {
  json: { type: 'boolean', default: false },
  how: { type: 'string', default: 'kill,move' },
  every: { type: 'string', default: '1' },
  at: { type: 'string' },
  sessions: { type: 'string', default: '50' },
  capacity: { type: 'string', default: '8' },
} as const

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: OPTIONS })
  const [name] = positionals
  if (name === 'handoff') return handoff(values)
  if (name === 'pool') {
    const verdict = await pool({ sessions: Number(values.sessions), capacity: Number(values.capacity) })
    console.log(values.json ? JSON.stringify(verdict) : poolLine(verdict))
    return verdict.violations.length === 0 ? 0 : 1
  }
  console.error(`There is no torture ${name ?? '(none given)'}. There are: handoff, pool`)
  return 2
}

interface HandoffValues {
  json: boolean
  every: string
  how: string
  at?: string | undefined
}

async function handoff({ json, every, ...values }: HandoffValues): Promise<number> {
  const how = values.how.split(',').filter((one): one is How => one === 'kill' || one === 'move')
  const at = values.at?.split(',').map(Number)
  const summary = await tortureHandoff({ how, every: Number(every), ...(at ? { at } : {}) }, (verdict) => {
    if (json) return console.log(JSON.stringify(verdict))
    const { at: place, how: one, restarted, violations } = verdict
    const words = violations.length === 0 ? 'ok' : violations.join('; ')
    console.log(`${one} after entry ${place}${restarted ? ', started again there' : ''}: ${words}`)
  })
  const { entries, kills, moves, violations } = summary
  console.log(
    json
      ? JSON.stringify(summary)
      : `${entries} entries, ${kills} kills, ${moves} moves, ${violations} violations`,
  )
  return violations === 0 ? 0 : 1
}

if (import.meta.main) process.exitCode = await main()
