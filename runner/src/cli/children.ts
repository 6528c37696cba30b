/** The programs that `baton up` runs, each a process of its own: it ends when its parent does, whatever the parent dies of. */
import { fork, type ChildProcess } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { BatonError } from '@baton/shared/errors.ts'

export const RELAY = fileURLToPath(new URL('../../../relay/src/cli.mjs', import.meta.url))
export const BATON = fileURLToPath(new URL('../../bin/baton.mjs', import.meta.url))

/**
 * Starts one, in a process group of its own: a Ctrl-C in the terminal reaches the parent alone, which ends its children in
 * the right order.
 */
export function child(program: string, args: string[]): ChildProcess {
  return fork(program, args, { detached: true, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
}

/** Resolves with the child's first message of this kind. Throws BatonError `internal` when it ends first, having said why. */
export function message(process: ChildProcess, kind: string): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    process.on('message', (said) => {
      if (typeof said === 'object' && said !== null && 't' in said && said.t === kind) {
        resolve(said)
      }
    })
    process.once('exit', () => reject(new BatonError('internal', '(it ended while starting)')))
  })
}

/** Ends a child: SIGTERM, then SIGKILL when it takes too long. */
export async function end(process: ChildProcess, within_ms: number): Promise<void> {
  if (process.exitCode !== null || process.signalCode !== null) return
  await new Promise<void>((resolve) => {
    const timer = setTimeout(() => process.kill('SIGKILL'), within_ms)
    process.once('exit', () => {
      clearTimeout(timer)
      resolve()
    })
    process.kill('SIGTERM')
  })
}
