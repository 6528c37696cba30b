/**
 * `baton.config.ts` in a repository: tools of one's own for the agent, and how sessions run.
 *
 *     import { defineConfig } from 'baton/config'
 *     export default defineConfig({
 *       mcp: { github: { command: 'github-mcp-server', args: ['stdio'], env: { TOKEN: '${GITHUB_TOKEN}' } } },
 *       sandbox: { network: true },
 *       tools: {
 *         deploy: {
 *           description: 'Deploys to staging.',
 *           input: { type: 'object', properties: { tag: { type: 'string' } }, required: ['tag'] },
 *           replay: 'never',
 *           execute: async ({ tag }, { root, signal }) => `deployed ${tag}`,
 *         },
 *       },
 *     })
 *
 * It is read from the person's own folder, never from a work tree that a session has to itself: what an agent writes must not run
 * unasked. Where sessions work in that folder itself, it counts as the person saw it (config/trust.ts). Taken when a session starts or
 * arrives; a changed file counts from then on.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import * as v from 'valibot'
import { BatonError } from '@baton/shared/errors.ts'
import type { Rule } from '@baton/shared/journal.ts'
import { importFiles, type Files } from './config/modules.ts'
import { hostTool, type ConfigTool } from './config/host-tool.ts'
import { importWords, issueWords, ruleFaults } from './config/words.ts'
import type { McpSettings } from './mcp/settings.ts'
import type { SandboxSettings } from './sandbox/settings.ts'
import { builtinTools } from './tools/index.ts'
import type { Tool } from './tools/tool.ts'
import { DEFAULT_SETTINGS, type WorkspaceSettings } from './workspace/settings.ts'

export const CONFIG_FILES = ['baton.config.ts', 'baton.config.mts', 'baton.config.mjs', 'baton.config.js']

export interface Config {
  tools?: Record<string, ConfigTool>
  /** Permission rules: `{ tool: 'bash', prefix: 'npm test', action: 'allow' }`. Deny counts before ask, ask before allow. */
  rules?: Rule[]
  /** Where sessions work, which ignored files travel, what makes a new machine ready; see workspace/settings.ts. */
  workspace?: v.InferInput<typeof WorkspaceSettings>
  /** MCP servers whose tools the agent gets, as `mcp__<server>__<tool>`; see mcp/settings.ts. */
  mcp?: v.InferInput<typeof McpSettings>
  /** Commands run in a sandbox; see sandbox/settings.ts. Linux with bubblewrap only: elsewhere they are refused. */
  sandbox?: v.InferInput<typeof SandboxSettings>
  /** `allow`: hosts, or `host:port`, that `fetch` may reach although they are not public. */
  fetch?: { allow?: string[] }
}

/** Only for its types. */
export function defineConfig(config: Config): Config {
  return config
}

export { defineTool, type ConfigTool } from './config/host-tool.ts'

export interface LoadedConfig {
  /** The person's folder that the file lies in. Absent: there is none. */
  folder?: string
  tools: Tool[]
  rules: Rule[]
  workspace: WorkspaceSettings
  mcp: McpSettings
  sandbox: SandboxSettings
  fetchAllowed: string[]
  /** What was read for it. */
  files: Files
  /** There is one, but it must not run: what it would say is not known. */
  refused?: BatonError
}

export const NO_CONFIG: LoadedConfig = {
  ...{ tools: [], rules: [], mcp: {}, sandbox: false, fetchAllowed: [], files: {} },
  workspace: DEFAULT_SETTINGS,
}

/**
 * The tools that a repository brings; none when it has no config file. `repository`: the folder that holds the file.
 * `trusted`: the only files that may run. Throws BatonError `config-invalid`, naming the file and what is wrong in it, and
 * `config-changed`, naming the first file that is not as it was.
 */
export async function loadConfig(repository: string, trusted?: Files): Promise<LoadedConfig> {
  const file = CONFIG_FILES.map((name) => join(repository, name)).find((path) => existsSync(path))
  if (file === undefined) {
    const [gone] = Object.keys(trusted ?? {})
    if (gone !== undefined) throw new BatonError('config-changed', `(${gone})`)
    return NO_CONFIG
  }
  const { value, files } = await imported(file, trusted)
  // What checks JSON Schemas is large, and most folders have no config.
  const { ConfigSchema } = await import('./config/config-schema.ts')
  const parsed = v.safeParse(ConfigSchema, value)
  if (!parsed.success) {
    const words = parsed.issues.map((issue) => issueWords(issue))
    throw new BatonError('config-invalid', `${file}: ${words.join('; ')}`)
  }
  const taken = new Set(builtinTools().map((tool) => tool.spec.name))
  const tools = Object.entries(parsed.output.tools).map(([name, tool]) => {
    if (taken.has(name) || name.startsWith('mcp__'))
      throw new BatonError('config-invalid', `${file}: the name ${name} is taken by a built-in tool.`)
    const { description, replay, access, input } = tool
    return hostTool({ name, description, schema: input.schema, replay, access }, input, tool.execute)
  })
  const { rules, workspace, mcp, sandbox, fetch } = parsed.output
  // A rule with a slip of the pen in its name would forbid nothing.
  const faults = ruleFaults(rules, new Set([...taken, ...tools.map(({ spec }) => spec.name)]))
  if (faults.length > 0) throw new BatonError('config-invalid', `${file}: ${faults.join('; ')}`)
  return { folder: repository, tools, rules, workspace, mcp, sandbox, fetchAllowed: fetch.allow, files }
}

async function imported(file: string, trusted: Files | undefined): ReturnType<typeof importFiles> {
  try {
    return await importFiles(file, import.meta.url, trusted)
  } catch (error) {
    if (error instanceof BatonError) throw error
    throw new BatonError('config-invalid', await importWords(file, error), { cause: error })
  }
}
