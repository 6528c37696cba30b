/** The repository's own rules, and the code that checks them. */
import { describe, expect, test } from 'vitest'
import { arrowFaults, importsOf } from '../src/check/arrows.ts'
import { errorsDocument } from '../src/check/errors-doc.ts'
import { CHECKS, faultsOf } from '../src/check/main.ts'
import { quotedIds, ruleFaults, specRules } from '../src/check/rules.ts'
import { readSources } from '../src/check/sources.ts'
import type { Source, Workspace } from '../src/check/sources.ts'

function source(path: string, text: string): Source {
  const [workspace, folder = ''] = path.split('/')
  return { path, workspace: workspace as Workspace, folder, text }
}

describe('this repository', () => {
  const sources = readSources()
  test.each(CHECKS.map((check) => [check.name, check] as const))('holds: %s', (_, check) => {
    expect(faultsOf(check, sources)).toEqual([])
  })
})

describe('rule coverage', () => {
  const quoted = (text: string) => [...quotedIds(text)]

  test('a title quotes by id and colon, one or several', () => {
    expect(quoted("test('Y1: holds', () => {})")).toEqual(['Y1'])
    expect(quoted("it.each(rows)('Y1, Y22 and V3: %s', fn)")).toEqual(['Y1', 'Y22', 'V3'])
    expect(quoted('describe("also inside, Y4: yes", fn)')).toEqual(['Y4'])
    expect(quoted('test(\n  `Y5: ${name}`,\n  fn)')).toEqual(['Y5'])
  })

  test('a comment, a skipped test, a plain string and a mention without a colon quote nothing', () => {
    expect(quoted("// test('Y1: holds', fn)\n/* test('Y2: holds', fn) */")).toEqual([])
    expect(quoted("test.skip('Y1: holds', fn)\ntest.todo('Y2: later')\nconst x = 'Y3: no'")).toEqual([])
    expect(quoted("test('Y1 holds', fn)")).toEqual([])
  })

  test('a rule without a test, an unknown id and a double rule are told', () => {
    const spec = '- **Y1** One.\n- **Y2** Two.\n'
    const faults = ruleFaults(spec, '- F1 x', [
      source('relay/test/a.test.ts', "test('Y1: a', f)\ntest('Y9: b', f)"),
    ])
    expect(faults).toContain('SPEC.md: no test quotes rule Y2.')
    expect(faults).toContain(
      'relay/test/a.test.ts quotes Y9, which neither SPEC.md nor docs/field-reports.md has.',
    )
    expect(faults).toContain('docs/field-reports.md: no test quotes report F1.')
    expect(faults.filter((line) => line.includes('Y1'))).toEqual([])
    expect(() => specRules('- **Y1** a\n- **Y1** b')).toThrow('two rules Y1')
  })

  test('only files of tests count', () => {
    const spec = '- **Y1** One.'
    expect(ruleFaults(spec, '', [source('relay/src/a.ts', "test('Y1: a', f)")])).toContain(
      'SPEC.md: no test quotes rule Y1.',
    )
  })
})

describe('arrows', () => {
  const declared = () =>
    new Set(['valibot', '@baton/shared', '@baton/guest', '@baton/relay', '@baton/runner'])
  const faults = (path: string, text: string) => arrowFaults([source(path, text)], declared)

  test('reads every form of import', () => {
    const text = `
      import a, { b } from 'one'
      import type { C } from 'two'
      import {
        d,
      } from 'three'
      export * from 'four'
      import 'five'
      const six = await import('six')
      // import x from 'never'
    `
    expect(importsOf(text)).toEqual([
      { from: 'one', typeOnly: false },
      { from: 'two', typeOnly: true },
      { from: 'three', typeOnly: false },
      { from: 'four', typeOnly: false },
      { from: 'five', typeOnly: false },
      { from: 'six', typeOnly: false },
    ])
  })

  test.each([
    ['relay/src/a.ts', "import { x } from '@baton/runner/x.ts'", 'relay must not know runner'],
    ['client/src/a.ts', "import { x } from '@baton/relay/x.ts'", 'client must not know relay'],
    ['runner/src/a.ts', "import { x } from '@baton/relay/x.ts'", 'runner must not know relay'],
    ['shared/src/a.ts', "import { x } from '@baton/guest/x.ts'", 'shared must not know guest'],
    ['guest/src/a.ts', "import { x } from '@baton/shared/x.ts'", 'only types'],
    ['relay/src/lua/a.ts', "import { x } from '../../../shared/src/x.ts'", 'write @baton/shared/'],
    ['relay/src/a.ts', "import x from 'left-pad/x'", 'relay/package.json does not name'],
    ['client/src/a.ts', "import { readFile } from 'node:fs'", 'runs in a browser'],
    ['test/src/a.ts', "import x from '../../scripts/x.ts'", 'outside the workspaces'],
  ])('%s may not %s', (path, text, message) => {
    expect(faults(path, text)).toEqual([expect.stringContaining(message)])
  })

  test.each([
    ['runner/src/cli.ts', "import { startRelay } from '@baton/relay/main.ts'"],
    ['runner/src/a.ts', "import { x } from '@baton/guest/x.ts'"],
    ['guest/src/a.ts', "import type { X } from '@baton/shared/x.ts'"],
    ['guest/src/agents/a.ts', "import { llm } from 'baton'"],
    ['relay/src/lua/a.ts', "import { x } from '../keys.ts'"],
    ['relay/test/a.test.ts', "import { until } from '@baton/test/until.ts'"],
    ['relay/src/a.ts', "import * as v from 'valibot'"],
    ['test/test/a.test.ts', "import { x } from '../../scripts/lib/x.mjs'"],
  ])('%s may %s', (path, text) => {
    expect(faults(path, text)).toEqual([])
  })
})

test('the error document has a row for every code', () => {
  expect(errorsDocument()).toMatch(
    /^\| `lease-lost` \| The lease has ended .* \| Stop working .* \| 409 \|$/m,
  )
})
