/** Where the relay starts as a program. What it loads comes from Node's compile cache, which halves the time until it listens. */
import { enableCompileCache } from 'node:module'

enableCompileCache()
await import('./command.ts')
