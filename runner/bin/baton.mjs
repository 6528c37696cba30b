#!/usr/bin/env node
// Runs the command with the Node that the project brings, whatever the machine has.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'

const own = fileURLToPath(new URL('../../node_modules/.bin/node', import.meta.url))
const cli = fileURLToPath(new URL('../src/cli.ts', import.meta.url))
const node = existsSync(own) ? own : process.execPath
const child = spawn(node, [cli, ...process.argv.slice(2)], { stdio: 'inherit' })
// The terminal sends Ctrl-C to both; the child decides when it is done.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'])
  process.on(signal, () => signal !== 'SIGINT' && child.kill(signal))
child.on('exit', (code, signal) => process.exit(code ?? (signal ? 1 : 0)))
child.on('error', (error) => {
  process.stderr.write(`baton: ${error.message} Run: npm ci\n`)
  process.exit(1)
})
