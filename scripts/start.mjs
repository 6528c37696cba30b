/** `npm start`: gets what is missing, builds what changed, then is `baton up` with the given arguments. */
import { join } from 'node:path'
import { ensureBuilt } from './lib/build.mjs'
import { ensurePackages } from './lib/packages.mjs'
import { node24, run } from './lib/process.mjs'
import { script } from './lib/progress.mjs'
import { root } from './lib/root.mjs'
import { ensurePrograms } from './lib/system.mjs'

await script(async () => {
  await ensurePackages()
  if (!process.env.REDIS_URL) await ensurePrograms(['redis-server'])
  await ensureBuilt()
  // The runner works in the folder where the person stood; npm itself moves to the repository.
  const cwd = process.env.INIT_CWD ?? process.cwd()
  const cli = join(root, 'runner', 'bin', 'baton.mjs')
  const { code, signal, output } = await run(node24, [cli, 'up', ...process.argv.slice(2)], {
    cwd,
    endWithParent: false,
  })
  // Ended by a signal: end the same way, so that whoever started us sees it.
  if (signal !== null) process.kill(process.pid, signal)
  if (output) process.stderr.write(`${output}\n`)
  return code
})
