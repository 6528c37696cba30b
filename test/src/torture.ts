/**
 * `npm run torture -- NAME [options] [--json]`: disturbs the product where it hurts, at length. The last line sums up; with
 * `--json` as JSON. Exit code 1 when something was violated.
 *
 *     handoff [--how kill|move] [--every N] [--at K …]   a session is killed or moved after every entry of its journal
 */
import { parseArgs } from 'node:util'
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

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      json: { type: 'boolean', default: false },
      how: { type: 'string', multiple: true, default: ['kill', 'move'] },
      every: { type: 'string', default: '1' },
      at: { type: 'string', multiple: true },
    },
  })
  const [name] = positionals
  if (name !== 'handoff') {
    console.error(`There is no torture ${name ?? '(none given)'}. There is: handoff`)
    return 2
  }
  const how = values.how.filter((one): one is How => one === 'kill' || one === 'move')
  const at = values.at?.map(Number)
  const summary = await tortureHandoff(
    { how, every: Number(values.every), ...(at ? { at } : {}) },
    (verdict) => {
      if (values.json) return console.log(JSON.stringify(verdict))
      const { at: place, how: one, restarted, violations } = verdict
      const words = violations.length === 0 ? 'ok' : violations.join('; ')
      console.log(`${one} after entry ${place}${restarted ? ', started again there' : ''}: ${words}`)
    },
  )
  const { entries, kills, moves, violations } = summary
  console.log(
    values.json
      ? JSON.stringify(summary)
      : `${entries} entries, ${kills} kills, ${moves} moves, ${violations} violations`,
  )
  return violations === 0 ? 0 : 1
}

if (import.meta.main) process.exitCode = await main()
