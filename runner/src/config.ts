/**
 * `baton.config.ts` in a repository: tools of one's own for the agent.
 *
 *     import { defineConfig } from 'baton/config'
 *     export default defineConfig({
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
 * It is read from the person's clone, never from a session's work tree: what an agent writes there must not run unasked. Taken
 * when a session starts or arrives; a changed file counts from then on.
 */
import { existsSync } from 'node:fs'
import { stat } from 'node:fs/promises'
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import * as v from 'valibot'
import { BatonError, explain } from '@baton/shared/errors.ts'
import type { Access, Json, Replay, ToolResult } from '@baton/shared/guest.ts'
import { Rule } from '@baton/shared/journal.ts'
import { builtinTools } from './tools/index.ts'
import { bounded } from './tools/text.ts'
import type { Tool } from './tools/tool.ts'
import { DEFAULT_SETTINGS, WorkspaceSettings } from './workspace/settings.ts'

const FILES = ['baton.config.ts', 'baton.config.mts', 'baton.config.mjs', 'baton.config.js']

export interface ConfigTool {
  /** What it does and when to use it, for the model. */
  description: string
  /** JSON Schema of the input, of type object. */
  input: { [key: string]: Json }
  /** May it be started again when a crash left its outcome unknown? */
  replay: Replay
  /** What it touches; the mode decides by it whether a call asks first. Default: `run`. */
  access?: Access
  execute(
    input: Record<string, Json>,
    context: { root: string; signal: AbortSignal },
  ): Promise<string | ToolResult> | string | ToolResult
}

export interface Config {
  tools?: Record<string, ConfigTool>
  /** Permission rules: `{ tool: 'bash', prefix: 'npm test', action: 'allow' }`. Deny counts before ask, ask before allow. */
  rules?: Rule[]
  /** Where sessions work, which ignored files travel, what makes a new machine ready; see workspace/settings.ts. */
  workspace?: v.InferInput<typeof WorkspaceSettings>
}

/** Only for its types. */
export function defineConfig(config: Config): Config {
  return config
}

type Execute = ConfigTool['execute']

const ToolName = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z0-9_-]{1,64}$/, 'a tool name has 1 to 64 letters, digits, _ or -'),
)
const ConfigSchema = v.strictObject({
  tools: v.optional(
    v.record(
      ToolName,
      v.strictObject({
        description: v.pipe(v.string(), v.minLength(1)),
        input: v.looseObject({ type: v.literal('object') }),
        replay: v.picklist(['safe', 'never']),
        access: v.optional(v.picklist(['read', 'edit', 'run']), 'run'),
        execute: v.custom<Execute>((value) => typeof value === 'function', 'must be a function'),
      }),
    ),
    {},
  ),
  rules: v.optional(v.array(Rule), []),
  workspace: v.optional(WorkspaceSettings, {}),
})

const Result = v.union([
  v.string(),
  v.object({
    text: v.string(),
    is_error: v.optional(v.boolean(), false),
    detail: v.optional(v.record(v.string(), v.unknown())),
  }),
])

export interface LoadedConfig {
  tools: Tool[]
  rules: Rule[]
  workspace: WorkspaceSettings
}

/**
 * The tools that a repository brings; none when it has no config file. `repository`: the folder that holds the file.
 * Throws BatonError `config-invalid`, naming the file and what is wrong in it.
 */
export async function loadConfig(repository: string): Promise<LoadedConfig> {
  const file = FILES.map((name) => join(repository, name)).find((path) => existsSync(path))
  if (file === undefined) return { tools: [], rules: [], workspace: DEFAULT_SETTINGS }
  const parsed = v.safeParse(ConfigSchema, await importDefault(file))
  if (!parsed.success) {
    const words = parsed.issues.map((issue) => `${v.getDotPath(issue) ?? 'the file'}: ${issue.message}`)
    throw new BatonError('config-invalid', `${file}: ${words.join('; ')}`)
  }
  const taken = new Set(builtinTools().map((tool) => tool.spec.name))
  const tools = Object.entries(parsed.output.tools).map(([name, tool]) => {
    if (taken.has(name))
      throw new BatonError('config-invalid', `${file}: the name ${name} is taken by a built-in tool.`)
    const schema = JSON.parse(JSON.stringify(tool.input)) as { [key: string]: Json }
    const { description, replay, access } = tool
    return hostTool({ name, description, schema, replay, access }, tool.execute)
  })
  return { tools, rules: parsed.output.rules, workspace: parsed.output.workspace }
}

function hostTool(spec: Tool['spec'], execute: Execute): Tool {
  return {
    spec,
    async execute(input, { root, signal }) {
      if (signal.aborted) throw new BatonError('stopped')
      let given: unknown
      try {
        given = await execute(input, { root, signal })
      } catch (error) {
        if (signal.aborted) throw new BatonError('stopped')
        return { text: bounded(`${spec.name} failed: ${explain(error)}`), is_error: true }
      }
      const result = v.safeParse(Result, given)
      if (!result.success) {
        return { text: `${spec.name} returned neither text nor a result with text.`, is_error: true }
      }
      if (typeof result.output === 'string') return { text: bounded(result.output), is_error: false }
      const { text, is_error, detail } = result.output
      return {
        text: bounded(text),
        is_error,
        ...(detail ? { detail: JSON.parse(JSON.stringify(detail)) as { [key: string]: Json } } : {}),
      }
    },
  }
}

async function importDefault(file: string): Promise<unknown> {
  resolveOurName()
  try {
    const url = pathToFileURL(file)
    // Modules are kept for good by their address; a changed file has to have another.
    url.searchParams.set('changed', String((await stat(file)).mtimeMs))
    const module = (await import(/* @vite-ignore */ url.href)) as { default?: unknown }
    return module.default
  } catch (error) {
    const words = error instanceof Error ? error.message : String(error)
    throw new BatonError('config-invalid', `${file}: ${words}`, { cause: error })
  }
}

let resolving = false

/** Lets the file import `baton/config` although nothing of that name is installed beside it. */
function resolveOurName(): void {
  if (resolving) return
  resolving = true
  const url = import.meta.url
  registerHooks({
    resolve: (specifier, context, next) =>
      specifier === 'baton/config' ? { url, shortCircuit: true } : next(specifier, context),
  })
}
