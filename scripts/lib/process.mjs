/** Child processes. Whatever a script starts ends with it: a signal to the script reaches the child, then the script ends. */
import { spawn } from 'node:child_process'
import { constants } from 'node:os'
import { delimiter, join } from 'node:path'
import { root } from './root.mjs'

/** @type {NodeJS.Signals[]} */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP']
const OUTPUT_KEPT = 64 << 10

/** The Node 24 that came with the packages, whatever the machine has. */
export const node24 = join(root, 'node_modules', '.bin', 'node')

/**
 * @typedef {object} Ended
 * @property {number} code exit code; 128 + number of the signal that ended it, as a shell counts
 * @property {NodeJS.Signals | null} signal
 * @property {string} output the last 64 KiB of stdout and stderr, when captured
 */

/**
 * Runs a program to its end.
 *
 * @param {string} command
 * @param {string[]} args
 * @param {{ cwd?: string, env?: NodeJS.ProcessEnv, capture?: boolean, endWithParent?: boolean }} [options]
 *   `capture`: keep the output instead of showing it. `endWithParent: false`: the child decides itself when to end after a
 *   signal and the script stays to report its exit code.
 * @returns {Promise<Ended>} code 127 when the program does not exist
 */
export function run(
  command,
  args,
  { cwd = root, env = process.env, capture = false, endWithParent = true } = {},
) {
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd,
      env,
      stdio: capture ? ['ignore', 'pipe', 'pipe'] : 'inherit',
    })
    let output = ''
    /** @param {Buffer} chunk */
    const keep = (chunk) => {
      output = (output + chunk.toString()).slice(-OUTPUT_KEPT)
    }
    child.stdout?.on('data', keep)
    child.stderr?.on('data', keep)

    /** @type {NodeJS.Signals | undefined} */
    let received
    /** @param {NodeJS.Signals} signal */
    const pass = (signal) => {
      received = signal
      child.kill(signal)
    }
    for (const signal of SIGNALS) process.on(signal, pass)

    /** @param {Ended} ended */
    const end = (ended) => {
      for (const signal of SIGNALS) process.off(signal, pass)
      if (received !== undefined && endWithParent) process.exit(128 + constants.signals[received])
      resolve(ended)
    }
    child.on('error', (error) => end({ code: 127, signal: null, output: error.message }))
    child.on('close', (code, signal) =>
      end({ code: code ?? 128 + (signal ? constants.signals[signal] : 0), signal, output }),
    )
  })
}

/** The environment without the project's own programs in PATH: npm must not run on the Node that it replaces. */
export function outsideEnvironment() {
  const path = (process.env.PATH ?? '').split(delimiter)
  return { ...process.env, PATH: path.filter((entry) => !entry.includes('node_modules')).join(delimiter) }
}
