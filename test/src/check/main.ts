/**
 * The quick checks of the repository itself: rule coverage, arrows between folders, the error document. `--fix` writes what
 * can be written. Part of `npm run check`; test/test/check.test.ts runs the same functions.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { arrowFaults } from './arrows.ts'
import { ERRORS_DOC, errorsDocument } from './errors-doc.ts'
import { ruleFaults } from './rules.ts'
import { readSources, ROOT } from './sources.ts'
import type { Source } from './sources.ts'

export interface Check {
  name: string
  /** What to do when it fails. */
  todo: string
  faults: (sources: Source[]) => string[]
  fix?: () => void
}

function read(path: string): string {
  try {
    return readFileSync(join(ROOT, path), 'utf8')
  } catch {
    throw new Error(`${path} is missing.`)
  }
}

export const CHECKS: Check[] = [
  {
    name: 'rule coverage',
    todo: "Write the test that proves the rule, and begin its title with the rule's id and a colon.",
    faults: (sources) => ruleFaults(read('SPEC.md'), read('docs/field-reports.md'), sources),
  },
  {
    name: 'arrows',
    todo: 'Import the way ARCHITECTURE.md draws it, and name packages in the package.json of the folder that uses them.',
    faults: (sources) => arrowFaults(sources),
  },
  {
    name: 'error document',
    todo: 'Run: npm run check -- --fix',
    faults: () =>
      read(ERRORS_DOC) === errorsDocument()
        ? []
        : [`${ERRORS_DOC} differs from the table in shared/src/errors.ts.`],
    fix: () => writeFileSync(join(ROOT, ERRORS_DOC), errorsDocument()),
  },
]

/** The faults of one check. A check that can't even run has that as its fault. */
export function faultsOf(check: Check, sources: Source[]): string[] {
  try {
    return check.faults(sources)
  } catch (error) {
    return [error instanceof Error ? error.message : String(error)]
  }
}

if (import.meta.main) {
  const fix = process.argv.includes('--fix')
  const sources = readSources()
  for (const check of CHECKS) {
    if (fix) check.fix?.()
    const faults = faultsOf(check, sources)
    if (faults.length === 0) {
      console.log(`ok    ${check.name}`)
    } else {
      console.log(
        `FAIL  ${check.name}\n${faults.map((line) => `      ${line}\n`).join('')}      ${check.todo}`,
      )
      process.exitCode = 1
    }
  }
}
