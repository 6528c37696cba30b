#!/usr/bin/env node
// The `baton` command. A Node that is too old hands over to the one that the project brings.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const NODE_MAJOR_MIN = 24

if (Number.parseInt(process.versions.node, 10) < NODE_MAJOR_MIN) handOver()
else {
  // Before anything is loaded: what comes from the cache has its types taken away already. An old Node does not know it.
  const { enableCompileCache, flushCompileCache } = await import('node:module')
  enableCompileCache()
  // Otherwise it is written at the end, which a process that is killed does not come to.
  setTimeout(flushCompileCache, 3000).unref()
  await import('../src/cli.ts')
}

function handOver() {
  const own = fileURLToPath(new URL('../../node_modules/.bin/node', import.meta.url))
  if (!existsSync(own)) {
    process.stderr.write(
      `baton: This is Node ${process.version}, and the project's own is not installed. Run: npm ci\n`,
    )
    process.exit(1)
  }
  const child = spawn(own, [fileURLToPath(import.meta.url), ...process.argv.slice(2)], { stdio: 'inherit' })
  // The terminal sends Ctrl-C to both; the child decides when it is done.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
    process.on(signal, () => signal !== 'SIGINT' && child.kill(signal))
  child.on('exit', (code, signal) => process.exit(code ?? (signal ? 1 : 0)))
  child.on('error', (error) => {
    process.stderr.write(`baton: ${error.message} Run: npm ci\n`)
    process.exit(1)
  })
}
