/**
 * Finds what a command has started, also what left its process group: every command carries a marker in its environment, and
 * whatever it starts inherits it. On Linux `/proc` shows the environment of each process. It hides from this who clears its
 * environment or overwrites it (a server that sets its own title may) and leaves the group as well; in the sandbox nothing hides.
 * Elsewhere than on Linux only the group counts.
 */
import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { platform } from 'node:os'

/** Marks everything that this process starts. */
export const RUN = randomBytes(8).toString('hex')
export const MARKER = 'BATON_CALL'

let calls = 0

/** A marker of a new command. Commands within commands carry those of both. */
export function newMarker(): string {
  calls++
  return `/${RUN}.${calls}/`
}

/** The environment of a marked command. */
export function marked(env: Record<string, string>, marker: string): Record<string, string> {
  return { ...env, [MARKER]: `${process.env[MARKER] ?? ''}${marker}` }
}

/** Living processes of a group or with a marker. Dead ones that nobody has collected yet do not count. */
export async function processesOf(group: number, marker: string): Promise<number[]> {
  if (platform() !== 'linux') return signalProcess(-group, 0) ? [-group] : []
  const all = await readdir('/proc').catch(() => undefined)
  // Too many open files, say: then the group is what there is to know.
  if (!all) return signalProcess(-group, 0) ? [-group] : []
  const names = all.filter((name) => /^\d+$/.test(name))
  const found = await Promise.all(
    names.map(async (name) => {
      const stat = await readFile(`/proc/${name}/stat`, 'latin1').catch(() => '')
      // pid (name) state parent group …, proc_pid_stat(5); the name may hold anything.
      const [state, , own] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
      if (state === undefined || state === '' || state === 'Z' || state === 'X') return false
      if (own === String(group)) return true
      return (await readFile(`/proc/${name}/environ`, 'latin1').catch(() => '')).includes(marker)
    }),
  )
  return names.filter((_, at) => found[at]).map(Number)
}

/** False when there is no such process (or, negative, group) any more. */
export function signalProcess(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal)
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}
