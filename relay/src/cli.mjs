// Where the relay starts as a program. What it loads comes from Node's compile cache, without types to take away first: that halves the
// time until it listens, and is why this file itself is JavaScript.
import { enableCompileCache, flushCompileCache } from 'node:module'

enableCompileCache()
// Otherwise it is written at the end, which one that is killed does not come to.
setTimeout(flushCompileCache, 3000).unref()
await import('./command.ts')
