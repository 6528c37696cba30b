/** Before the tests of a workspace that needs built artifacts: builds what is missing, and says when one is older than its sources. */
import { ensureBuilt, stateOf } from './build.mjs'
import { node24, run } from './process.mjs'
import { say } from './progress.mjs'

/** @type {Record<string, string[]>} */
const NEEDED = { test: ['engine', 'agents', 'client'], client: ['client'] }

/**
 * Node writes its compile cache when a process ends by itself. Tests kill most of those that they start, which would then start
 * cold again and again, so the programs are loaded once before.
 */
const LOAD = `
  import { enableCompileCache } from 'node:module'
  enableCompileCache()
  const programs = [
    'relay/src/main.ts',
    'relay/src/flags.ts',
    'relay/src/redis-server.ts',
    'runner/src/cli/runner.ts',
    'runner/src/config/config-schema.ts',
    'runner/src/vm/serve.ts',
    'node_modules/dbus-native/index.js',
  ]
  for (const program of programs) await import(process.cwd() + '/' + program).catch(() => undefined)`
/** What begins at once, ended at once. */
const SHORT = [
  ['relay/src/cli.mjs', '--nonsense'],
  ['runner/bin/baton.mjs', '--version'],
]

/** @param {{ name: string }} project */
export default async function setup(project) {
  const needed = NEEDED[project.name] ?? ['engine', 'agents']
  await ensureBuilt(needed.filter((name) => stateOf(name) === 'missing'))
  const stale = needed.filter((name) => stateOf(name) === 'stale')
  if (stale.length > 0) say(`Testing with an older build of: ${stale.join(', ')}. To renew it: npm run build`)
  if (project.name !== 'test') return
  for (const args of [['--input-type=module', '-e', LOAD], ...SHORT])
    await run(node24, args, { capture: true })
}
