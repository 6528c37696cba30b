/** One thing that `baton doctor` looks at, and how what was found is told. */
import { execFile } from 'node:child_process'
import { explain } from '@baton/shared/errors.ts'
import { duration } from '@baton/shared/view/units.ts'

export interface Finding {
  state: 'ok' | 'warning' | 'problem'
  says: string
  /** What to do about it. */
  todo?: string
}

export interface Check extends Finding {
  name: string
}

export const ok = (says: string): Finding => ({ state: 'ok', says })
export const warning = (says: string, todo: string): Finding => ({ state: 'warning', says, todo })
export const problem = (says: string, todo: string): Finding => ({ state: 'problem', says, todo })

/** Runs one check; one that takes too long or throws is a problem of its own, and hinders no other. */
export async function checked(name: string, within_ms: number, look: () => Promise<Finding>): Promise<Check> {
  const late = Promise.withResolvers<Finding>()
  const timer = setTimeout(() => {
    const says = `It did not answer within ${duration(within_ms)}.`
    late.resolve(problem(says, 'Try again; if it stays so, whatever it asks hangs.'))
  }, within_ms)
  try {
    return { name, ...(await Promise.race([look(), late.promise])) }
  } catch (error) {
    return { name, ...problem(explain(error), 'Mend what is said, then run doctor again.') }
  } finally {
    clearTimeout(timer)
  }
}

/** What a program prints; undefined: it is not there. Throws Error when it fails. */
export function printed(program: string, args: string[], within_ms = 4000): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    execFile(program, args, { timeout: within_ms, encoding: 'utf8' }, (error, stdout, stderr) => {
      if (!error) resolve(stdout.trim())
      else if (error.code === 'ENOENT') resolve(undefined)
      else reject(new Error(stderr.trim().split('\n').at(-1) || error.message))
    })
  })
}
