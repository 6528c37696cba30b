/**
 * `npm run bench [-- GROUP… --json]`: runs benchmark groups, all of them by default. A group is `bench/NAME.ts` and exports
 * `NAMEBench`, an async generator of results, and `about`. With `--json` one result a line; else a table that marks what misses its
 * budget. A missed budget is a finding, not a failure: the exit code is 0 unless a group can't run.
 */
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { oneOf, runProgram } from './command-line.ts'
import type { Bench, BenchAbout, BenchResult } from './bench/result.ts'

const FOLDER = join(import.meta.dirname, 'bench')

export interface Group {
  about: BenchAbout
  bench: Bench
}

/** Loads a group. @throws Error when its module lacks an export */
export async function loadGroup(name: string): Promise<Group> {
  const module = (await import(`./bench/${name}.ts`)) as Record<string, unknown>
  const { about, [`${name}Bench`]: bench } = module
  if (typeof bench !== 'function' || about === undefined) {
    throw new Error(`bench/${name}.ts must export ${name}Bench and about`)
  }
  return { about: about as BenchAbout, bench: bench as Bench }
}

/** Names of all groups. */
export function groupNames(folder = FOLDER): string[] {
  return readdirSync(folder)
    .filter((name) => name.endsWith('.ts') && name !== 'result.ts')
    .map((name) => name.replace(/\.ts$/, ''))
    .toSorted()
}

/** A value with as many digits as it can bear. */
function shown(value: number): string {
  const digits = Math.abs(value) >= 1000 ? 0 : Math.abs(value) >= 100 ? 1 : Math.abs(value) >= 1 ? 2 : 3
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

/** The results as an aligned table. */
export function table(results: readonly BenchResult[]): string {
  const rows = results.map(({ name, value, unit, samples, budget, ok, versus }) => [
    name,
    shown(value),
    unit,
    `n=${samples}`,
    budget === undefined ? '' : `budget ${shown(budget)} ${unit}`,
    ok ? (budget === undefined ? '' : 'ok') : 'MISSED',
    versus === undefined ? '' : `against ${versus}`,
  ])
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)))
  const pad = (cell: string, column: number): string =>
    column === 1 ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0)
  return rows.map((row) => `  ${row.map(pad).join('  ').trimEnd()}\n`).join('')
}

/**
 * Runs groups.
 *
 * @returns exit code: 1 when a group could not run to its end
 */
export async function runGroups(
  groups: Record<string, () => Promise<Group>>,
  { json, print }: { json: boolean; print: (text: string) => void },
): Promise<number> {
  let broken = 0
  let missed = 0
  for (const [name, load] of Object.entries(groups)) {
    const results: BenchResult[] = []
    try {
      const { about, bench } = await load()
      if (!json) print(`${name}\n  Measures ${about.measures}\n  Leaves out ${about.leavesOut}\n`)
      for await (const entry of bench()) {
        results.push(entry)
        if (json) print(`${JSON.stringify(entry)}\n`)
      }
      if (results.length === 0) throw new Error('it gave no result')
    } catch (error) {
      broken++
      const why = error instanceof Error ? (error.stack ?? error.message) : String(error)
      process.stderr.write(`The benchmark group ${name} could not run: ${why}\n`)
    }
    if (!json) print(`${table(results)}\n`)
    missed += results.filter(({ ok }) => !ok).length
  }
  if (!json && missed > 0)
    print(
      `${missed} missed their budget. That is told, and is no failure: the exit code says only whether all ran.\n`,
    )
  return broken === 0 ? 0 : 1
}

/** Returns the exit code. */
export function benchmarks(args: string[]): Promise<number> {
  const known = groupNames()
  const usage = `usage: npm run bench [-- GROUP… --json]

  GROUP     ${known.join(', ')}; default: all of them
  --json    one result a line, as JSON
  --help    this

Exit codes: 0 all ran, also when a budget was missed; 1 a group could not run; 2 the command line is not right.`
  const options = { json: { type: 'boolean', default: false } } as const
  return runProgram({ args, usage, options }, ({ values, positionals }) => {
    const wanted = positionals.length > 0 ? positionals.map((name) => oneOf('group', name, known)) : known
    const groups = wanted.map((name) => [name, () => loadGroup(name)] as const)
    return runGroups(Object.fromEntries(groups), {
      json: values.json,
      print: (text) => process.stdout.write(text),
    })
  })
}

if (import.meta.main) process.exitCode = await benchmarks(process.argv.slice(2))
