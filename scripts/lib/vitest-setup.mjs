/** Before the tests of a workspace that needs built artifacts: builds what is missing, and says when one is older than its sources. */
import { ensureBuilt, stateOf } from './build.mjs'
import { say } from './progress.mjs'

/** @type {Record<string, string[]>} */
const NEEDED = { test: ['engine', 'agents', 'client'], client: ['client'] }

/** @param {{ name: string }} project */
export default async function setup(project) {
  const needed = NEEDED[project.name] ?? ['engine', 'agents']
  await ensureBuilt(needed.filter((name) => stateOf(name) === 'missing'))
  const stale = needed.filter((name) => stateOf(name) === 'stale')
  if (stale.length > 0) say(`Testing with an older build of: ${stale.join(', ')}. To renew it: npm run build`)
}
