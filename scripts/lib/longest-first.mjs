/**
 * The order of test files: those that take long begin first, so that none of them runs alone at the end. Vitest orders by what it
 * measured last time, which a fresh clone does not have, and then by size, of which how long a file takes does not depend.
 */
import { relative } from 'node:path'
import { BaseSequencer } from 'vitest/node'
import { root } from './root.mjs'

/** The longest first; each takes more than a tenth of a minute on two cores. */
const LONG = [
  'test/test/arm64.test.ts',
  'test/test/torture.test.ts',
  'test/test/once.test.ts',
  'test/test/lid.test.ts',
  'test/test/faults.test.ts',
  'test/test/cli-sessions.test.ts',
  'test/test/home.test.ts',
  'test/test/copies-cli.test.ts',
  'test/test/examples.test.ts',
  'test/test/odd-tools.test.ts',
  'test/test/drain.test.ts',
  'test/test/attach.test.ts',
  'test/test/start.test.ts',
  'test/test/odd-files.test.ts',
  'test/test/first-light.test.ts',
  'client/test/flow.test.ts',
  'client/test/work.test.ts',
  'client/test/decide.test.ts',
  'client/test/phone.test.ts',
  'runner/test/guest-cli.test.ts',
  'runner/test/config-trust.test.ts',
  'runner/test/vm-resume.test.ts',
  'client/test/foot.test.ts',
  'runner/test/mcp.test.ts',
  'relay/test/fuzz.test.ts',
  'runner/test/vm-turns.test.ts',
]

export class LongestFirst extends BaseSequencer {
  /**
   * @override
   * @param {import('vitest/node').TestSpecification[]} files
   */
  async sort(files) {
    const sorted = await super.sort(files)
    return sorted.toSorted((a, b) => place(a.moduleId) - place(b.moduleId))
  }
}

/** @param {string} file */
function place(file) {
  const at = LONG.indexOf(relative(root, file))
  return at < 0 ? LONG.length : at
}
