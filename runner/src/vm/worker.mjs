// Where a guest's thread starts. What it loads comes from Node's compile cache, without types to take away first: that halves the
// time to the first restore, and is why this file itself is JavaScript.
import { enableCompileCache } from 'node:module'

enableCompileCache()
await import('./serve.ts')
