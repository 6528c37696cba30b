/**
 * The process that looks at one config for `baton doctor`: told a folder, it says what it sees and ends. Whatever else the config
 * has begun ends with it.
 */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { BatonError, explain } from '@baton/shared/errors.ts'
import { ruleWords } from '@baton/shared/permissions.ts'
import { duration } from '@baton/shared/view/units.ts'
import type { LoadedConfig } from '../../config.ts'
import { Trust } from '../../config/trust.ts'
import { McpServer } from '../../mcp/server.ts'
import { referencesOf } from '../../mcp/settings.ts'
import { cleanLine } from '../term/text.ts'
import { ok, problem, warning, type Check, type Finding } from './check.ts'

/** What a look is told. */
export interface LookAt {
  data: string
  folder: string
}

/** A session waits longer; most that answer at all do so at once. */
const SERVER_MS = 5000
const NAMED = 6

/** How the config counts, and what it allows. */
export function configFinding(folder: string, config: LoadedConfig, isPinned: boolean): Finding {
  const { tools, rules, mcp, sandbox, fetchAllowed, workspace } = config
  const own = tools.map(({ spec: { name, access, replay } }) => `${name} (${access}, ${replay})`)
  const secrets = [...new Set(referencesOf(mcp))]
  const parts = [
    `${folder}: loads, ${isPinned ? 'trusted as it is' : 'counts as it is: no session has worked in this folder itself'}`,
    ...listed('tools', own),
    ...listed('rules', rules.map(ruleWords)),
    ...listed('MCP servers', Object.keys(mcp)),
    ...listed('servers get', secrets),
    ...(sandbox === false ? [] : [`sandbox ${networkOf(sandbox) ? 'with' : 'without'} network`]),
    ...listed('fetch may reach', fetchAllowed),
    ...listed('carries', workspace.carry),
    ...listed('set-up', workspace.setup === undefined ? [] : [workspace.setup]),
    ...(workspace.place === 'in-place' ? ['sessions work in place'] : []),
  ]
  return ok(cleanLine(parts.join('; ')))
}

const networkOf = (sandbox: LoadedConfig['sandbox']): boolean =>
  typeof sandbox === 'object' && sandbox.network

function listed(what: string, words: readonly string[]): string[] {
  if (words.length === 0) return []
  const more = words.length > NAMED ? ` and ${words.length - NAMED} more` : ''
  return [`${what}: ${words.slice(0, NAMED).join(', ')}${more}`]
}

/** Why it does not count. */
export function refusalFinding(folder: string, error: unknown): Finding {
  if (error instanceof BatonError && error.code === 'config-changed')
    return problem(
      cleanLine(`${folder}: not as you saw it ${error.detail}: it does not run, and no session begins here.`),
      `Look at what changed, then: baton trust ${folder}`,
    )
  return problem(cleanLine(error instanceof Error ? error.message : String(error)), 'Mend the file.')
}

async function serverFinding(server: McpServer, name: string, unset: readonly string[]): Promise<Finding> {
  const began_at = performance.now()
  try {
    const { length } = await server.tools()
    return ok(`${name} answers in ${duration(performance.now() - began_at)}; ${length} tools`)
  } catch (error) {
    const says = cleanLine(`${name} does not answer: ${explain(error)}`)
    // It is the runner's environment that counts.
    if (unset.length > 0) return warning(says, `Set it where the runner starts: ${unset.join(', ')}`)
    return problem(says, 'Sessions begin without its tools: try its command, or its address, by hand.')
  } finally {
    await server.end()
  }
}

async function look({ data, folder }: LookAt, tell: (check: Check) => Promise<void>): Promise<void> {
  const trust = new Trust(data)
  let config: LoadedConfig
  try {
    config = await trust.load(folder)
  } catch (error) {
    return tell({ name: 'config', ...refusalFinding(folder, error) })
  }
  await tell({ name: 'config', ...configFinding(folder, config, await trust.isPinned(folder)) })
  const empty = join(data, 'mcp', `doctor-${process.pid}`)
  const place = { folder, root: config.workspace.place === 'in-place' ? folder : empty, empty }
  const looks = Object.entries(config.mcp).map(async ([name, definition]) => {
    const server = new McpServer({ name, definition, place, env: process.env, start_ms: SERVER_MS })
    const unset = referencesOf({ [name]: definition }).filter((variable) => !process.env[variable])
    await tell({ name: 'mcp', ...(await serverFinding(server, name, unset)) })
  })
  await Promise.all(looks)
  await rm(empty, { recursive: true, force: true })
}

/** Resolves when it is on its way: what ends before would keep it back. */
function tell(check: Check): Promise<void> {
  return new Promise((resolve) => process.send?.(check, undefined, undefined, () => resolve()))
}

if (import.meta.main) {
  process.once('message', (at: LookAt) => {
    // What the config has begun would keep this process alive.
    void look(at, tell).finally(() => process.exit(0))
  })
  process.once('disconnect', () => process.exit(0))
  process.once('SIGTERM', () => process.exit(1))
}
