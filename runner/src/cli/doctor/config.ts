/**
 * What doctor looks at in `baton.config.ts`: does it load, does it count, what does it allow, do its MCP servers answer? A config is
 * code: only those of folders that this machine's runner serves are run, or of one that is named, as far as they are trusted, and in
 * a process of their own (config-look.ts), which ends in time whatever they do.
 */
import { duration } from '@baton/shared/view/units.ts'
import { fork } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { CONFIG_FILES } from '../../config.ts'
import { ok, problem, type Check } from './check.ts'
import type { LookAt } from './config-look.ts'

const LOOK = fileURLToPath(new URL('./config-look.ts', import.meta.url))
const KILL_AFTER_MS = 1000

/** `folders`: those that a runner of this machine serves; undefined: not known. `named`: those that the person asks about. */
export async function configs(
  data: string,
  { folders, named }: { folders: readonly string[] | undefined; named: readonly string[] },
  within_ms: number,
): Promise<Check[]> {
  const all = [...new Set([...(folders ?? []), ...named])]
  const held = all.filter((folder) => CONFIG_FILES.some((name) => existsSync(join(folder, name))))
  const looks = await Promise.all(held.map((folder) => look({ data, folder }, within_ms)))
  if (looks.length > 0) return looks.flat()
  if (!folders && named.length === 0)
    return [
      about(
        ok('not looked at: the relay does not say which folders are served here; --workspace DIR names one'),
      ),
    ]
  if (all.length === 0) return [about(ok('no folder is served here'))]
  return [about(ok(`none in ${all.join(', ')}`))]
}

const about = (finding: Omit<Check, 'name'>): Check => ({ name: 'config', ...finding })

function look(at: LookAt, within_ms: number): Promise<Check[]> {
  return new Promise((resolve) => {
    const checks: Check[] = []
    // What a config prints is nothing to see here.
    const child = fork(LOOK, [], { stdio: ['ignore', 'ignore', 'ignore', 'ipc'] })
    let kill: NodeJS.Timeout | undefined
    const late = setTimeout(() => {
      checks.push(about(unfinished(at, `takes longer than ${duration(within_ms)}`, checks)))
      child.kill('SIGTERM')
      kill = setTimeout(() => child.kill('SIGKILL'), KILL_AFTER_MS)
    }, within_ms)
    child.on('message', (check: Check) => void checks.push(check))
    child.once('error', (error) => checks.push(about(unfinished(at, error.message, checks))))
    child.once('close', (code, signal) => {
      clearTimeout(late)
      clearTimeout(kill)
      if (checks.length === 0) checks.push(about(unfinished(at, `ends its process (${signal ?? code})`, [])))
      resolve(checks)
    })
    child.send(at, () => undefined)
  })
}

function unfinished({ folder }: LookAt, why: string, seen: readonly Check[]): Omit<Check, 'name'> {
  const what = seen.length === 0 ? 'the config' : 'an MCP server'
  return problem(
    `${folder}: ${what} ${why}.`,
    'Nothing in it may wait or end while it loads: see docs/tools.md.',
  )
}
