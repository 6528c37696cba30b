/**
 * `npm test [-- FILTER…]`: gets what is missing, builds what changed, then runs every test. The last line is
 * `N passed, N failed`; arguments go to Vitest.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ensureBuilt } from './lib/build.mjs'
import { ensurePackages } from './lib/packages.mjs'
import { node24, run } from './lib/process.mjs'
import { Refusal, script } from './lib/progress.mjs'
import { ensurePrograms } from './lib/system.mjs'

/**
 * @typedef {object} Report what Vitest's JSON reporter writes, as far as we read it
 * @property {boolean} success
 * @property {number} numPassedTests
 * @property {number} numFailedTests
 * @property {number} numPendingTests
 * @property {number} numTodoTests
 * @property {{ status: string, assertionResults: { status: string }[] }[]} testResults
 */

/** @param {Report} report */
function summary(report) {
  // A file that could not be loaded fails without a failing test in it.
  const broken = report.testResults.filter(
    ({ status, assertionResults }) =>
      status === 'failed' && !assertionResults.some((test) => test.status === 'failed'),
  ).length
  const skipped = report.numPendingTests + report.numTodoTests
  const failed = report.numFailedTests + broken
  return `${report.numPassedTests} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`
}

await script(async () => {
  await ensurePackages()
  const onLinux =
    process.platform === 'linux' ? ['dbus-daemon', 'systemd-inhibit', 'bwrap', 'qemu-aarch64'] : []
  await ensurePrograms(['redis-server', 'chromium', 'git', ...onLinux])
  await ensureBuilt()

  const folder = mkdtempSync(join(tmpdir(), 'baton-test-'))
  try {
    const file = join(folder, 'report.json')
    const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${file}`]
    const vitest = ['node_modules/vitest/vitest.mjs', 'run', ...reporters, ...process.argv.slice(2)]
    const { code } = await run(node24, vitest)
    /** @type {Report} */
    let report
    try {
      report = JSON.parse(readFileSync(file, 'utf8'))
    } catch {
      throw new Refusal('Vitest ended without a result; see its output above.')
    }
    process.stdout.write(`${summary(report)}\n`)
    return code === 0 && !report.success ? 1 : code
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
