/** `npm run build`: gets the npm packages and builds what changed. */
import { ensureBuilt } from './lib/build.mjs'
import { ensurePackages } from './lib/packages.mjs'
import { script } from './lib/progress.mjs'

await script(async () => {
  await ensurePackages()
  await ensureBuilt()
})
