/** `npm run torture -- NAME […]`: gets what is missing, builds what changed, then disturbs the product at length. */
import { ensureBuilt } from './lib/build.mjs'
import { ensurePackages } from './lib/packages.mjs'
import { node24, run } from './lib/process.mjs'
import { script } from './lib/progress.mjs'
import { ensurePrograms } from './lib/system.mjs'

await script(async () => {
  await ensurePackages()
  await ensurePrograms(['redis-server', 'git'])
  await ensureBuilt()
  const { code } = await run(node24, ['test/src/torture.ts', ...process.argv.slice(2)])
  return code
})
