/**
 * Rule coverage: every numbered rule of SPEC.md, and every field report that this version answers, is quoted by the title of
 * a test that runs, as in `I4: …` or `I1, F24: …`.
 */
import { withoutComments } from './sources.ts'
import type { Source } from './sources.ts'

/** Field reports (docs/field-reports.md) that have a test by now. A version never drops one. */
export const REPORTS =
  'F1 F2 F3 F4 F5 F6 F7 F8 F9 F10 F11 F12 F13 F14 F15 F16 F17 F18 F19 F20 F21 F22 F23 F24 F25 F26 F27 F28 F29 F31 F32 F33 F34 F35 F36 F37 F38 F44 F45 F46 F47 F48 F49 F50 F51 F52 F53 F54 F55 F56 F57 F58 F59 F60 F62 F63 F64 F65 F66 F68 F69 F70 F75'.split(
    ' ',
  )

const RULE = /^\s*[-*] \*\*([A-Z]+\d+)\*\*/gm
const REPORT = /^\s*- (F\d+) /gm
/** The first argument of a call that has more arguments, when it is a plain string: `test('…', `, `test.each(…)('…', `. */
const TITLE = /([\w.]*)\(\s*(['"`])((?:\\.|(?!\2)[^\\])*)\2\s*,/g
const IDS = /\b([A-Z]{1,4}\d+(?:(?:, | and )[A-Z]{1,4}\d+)*):/g

/** Ids of the rules in SPEC.md. @throws Error when one is there twice */
export function specRules(spec: string): string[] {
  const ids = [...spec.matchAll(RULE)].map(([, id]) => id ?? '')
  const twice = ids.find((id, at) => ids.indexOf(id) !== at)
  if (twice !== undefined) throw new Error(`SPEC.md has two rules ${twice}. Number one of them anew.`)
  return ids
}

/** Ids of the reports in docs/field-reports.md. */
export function reportIds(text: string): string[] {
  return [...text.matchAll(REPORT)].map(([, id]) => id ?? '')
}

/** Ids that the titles of tests in one file quote. Skipped tests quote nothing. */
export function quotedIds(text: string): Set<string> {
  const quoted = new Set<string>()
  for (const [, callee = '', , title = ''] of withoutComments(text).matchAll(TITLE)) {
    if (/\.(skip|todo)\b/.test(callee)) continue
    for (const [, ids = ''] of title.matchAll(IDS)) {
      for (const id of ids.split(/, | and /)) quoted.add(id)
    }
  }
  return quoted
}

/**
 * One line for each rule or report without a test, and for each id that a test quotes and nobody defines.
 *
 * @param spec text of SPEC.md
 * @param reports text of docs/field-reports.md
 */
export function ruleFaults(spec: string, reports: string, sources: Source[]): string[] {
  const rules = specRules(spec)
  const known = new Set([...rules, ...reportIds(reports)])
  const prefixes = new Set([...known].map((id) => id.replace(/\d+$/, '')))
  const faults: string[] = []

  const quoted = new Set<string>()
  for (const { path, folder, text } of sources) {
    if (folder !== 'test' || !/\.test\.tsx?$/.test(path)) continue
    for (const id of quotedIds(text)) {
      quoted.add(id)
      if (prefixes.has(id.replace(/\d+$/, '')) && !known.has(id)) {
        faults.push(`${path} quotes ${id}, which neither SPEC.md nor docs/field-reports.md has.`)
      }
    }
  }
  for (const id of rules) if (!quoted.has(id)) faults.push(`SPEC.md: no test quotes rule ${id}.`)
  for (const id of REPORTS) {
    if (!known.has(id)) faults.push(`docs/field-reports.md has no report ${id}.`)
    else if (!quoted.has(id)) faults.push(`docs/field-reports.md: no test quotes report ${id}.`)
  }
  return faults
}
