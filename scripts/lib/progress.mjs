/**
 * What a person sees while a script works: one line a step. On a terminal the line counts the seconds; elsewhere it is
 * printed when the step begins, now and then while it lasts, and when it ends.
 */
const terminal = process.stderr.isTTY
const REPEAT_SECONDS = terminal ? 1 : 15

/** A failure that a person can act on: its message is all that is shown. */
export class Refusal extends Error {}

/** @param {number} start from performance.now() */
function since(start) {
  return `${Math.max(1, Math.round((performance.now() - start) / 1000))} s`
}

/** @param {string} line */
export function say(line) {
  process.stderr.write(`${line}\n`)
}

/**
 * Runs `work` and shows that it runs.
 *
 * @template T
 * @param {string} what completes "… is under way", e.g. "Installing npm packages"
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function step(what, work) {
  const start = performance.now()
  const show = () =>
    process.stderr.write(terminal ? `\r\x1b[K${what} … ${since(start)}` : `${what} … ${since(start)}\n`)
  process.stderr.write(terminal ? `${what} …` : `${what} …\n`)
  const timer = setInterval(show, REPEAT_SECONDS * 1000)
  try {
    const result = await work()
    process.stderr.write(`${terminal ? '\r\x1b[K' : ''}${what}: done in ${since(start)}\n`)
    return result
  } catch (error) {
    process.stderr.write(`${terminal ? '\r\x1b[K' : ''}${what}: failed after ${since(start)}\n`)
    throw error
  } finally {
    clearInterval(timer)
  }
}

/**
 * Ends this script when npm has ended without telling it: by SIGKILL, or by a signal that npm does not pass on. In package.json
 * the scripts begin with `exec`, else npm's signals would reach only the shell between.
 */
function endWithNpm() {
  if (process.env.npm_lifecycle_event === undefined) return
  const npm = process.ppid
  const watch = () => process.ppid === npm || process.kill(process.pid, 'SIGTERM')
  setInterval(watch, 500).unref()
}

/**
 * The frame of every script: a Refusal becomes its message and exit code 1, anything else is a bug and keeps its stack.
 *
 * @param {() => Promise<number | void>} main gives the exit code
 */
export async function script(main) {
  endWithNpm()
  try {
    process.exitCode = (await main()) ?? 0
  } catch (error) {
    if (!(error instanceof Refusal)) throw error
    say(error.message)
    process.exitCode = 1
  }
}
