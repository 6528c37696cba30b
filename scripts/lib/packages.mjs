/** npm packages: installed exactly as package-lock.json says, and only when they are not already. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Refusal, step } from './progress.mjs'
import { node24, outsideEnvironment, run } from './process.mjs'
import { root } from './root.mjs'

/**
 * @typedef {{ version?: string, integrity?: string, resolved?: string, link?: boolean, optional?: boolean }} Package
 * @typedef {{ packages: Record<string, Package> }} Lock
 */

/**
 * Does the lock file that npm leaves in node_modules agree with the wanted one? Packages for other platforms are optional and
 * may be missing.
 *
 * @param {Lock} wanted
 * @param {Lock} installed
 */
export function agrees(wanted, installed) {
  return Object.entries(wanted.packages).every(([path, want]) => {
    if (!path.includes('node_modules/')) return true
    const have = installed.packages[path]
    if (have === undefined) return want.optional === true
    return have.version === want.version && have.integrity === want.integrity && have.link === want.link
  })
}

/** @param {string} path */
function readLock(path) {
  try {
    return /** @type {Lock} */ (JSON.parse(readFileSync(join(root, path), 'utf8')))
  } catch {
    return undefined
  }
}

async function installed() {
  const wanted = readLock('package-lock.json')
  if (wanted === undefined)
    throw new Refusal('package-lock.json is missing or damaged. Restore it: git checkout package-lock.json')
  // npm writes this file last, so an installation that was cut off has none.
  const have = readLock('node_modules/.package-lock.json')
  if (have === undefined || !agrees(wanted, have)) return false
  return (await run(node24, ['--version'], { capture: true })).code === 0
}

/** Installs the npm packages when node_modules does not match package-lock.json. */
export async function ensurePackages() {
  if (await installed()) return
  await step('Installing npm packages (a minute or two the first time)', async () => {
    const { code, output } = await run(
      'npm',
      ['ci', '--loglevel=error', '--no-audit', '--no-fund', '--no-progress'],
      {
        env: outsideEnvironment(),
        capture: true,
      },
    )
    if (code !== 0) {
      const reason = output.trim().split('\n').slice(-8).join('\n')
      throw new Refusal(
        `${reason}\nnpm could not install the packages. Check the network and the rights to ${root}, then run it again.`,
      )
    }
  })
  const probe = await run(node24, ['--version'], { capture: true })
  if (probe.code !== 0) {
    throw new Refusal(
      'The npm package "node", which brings Node 24, was installed without its program (install scripts are off?). ' +
        'Run: npm rebuild node --ignore-scripts=false',
    )
  }
}
