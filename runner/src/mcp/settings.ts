/** The `mcp` part of baton.config.ts, and the environment that it refers to. */
import * as v from 'valibot'

const Access = v.picklist(['read', 'edit', 'run'])
const Replay = v.picklist(['safe', 'never'])

const policies = {
  /** May a call be started again when a crash left its outcome unknown? Default: `never`. */
  replay: v.optional(Replay, 'never'),
  /** What its tools touch; the mode decides by it whether a call asks first. Default: `run`. */
  access: v.optional(Access, 'run'),
  /** What differs for single tools, by the name that the server gives them. */
  tools: v.optional(
    v.record(v.string(), v.strictObject({ replay: v.optional(Replay), access: v.optional(Access) })),
    {},
  ),
}

export const McpSettings = v.record(
  v.pipe(v.string(), v.regex(/^[A-Za-z0-9-]{1,24}$/, 'a server name has 1 to 24 letters, digits or -')),
  v.union(
    [
      v.strictObject({
        command: v.pipe(v.string(), v.minLength(1)),
        args: v.optional(v.array(v.string()), []),
        /** Values may refer to the runner's environment: `${GITHUB_TOKEN}`. */
        env: v.optional(v.record(v.string(), v.string()), {}),
        /**
         * Relative to the folder of the config. Default: that folder; an empty one for a session that works in it in place, where
         * what an agent has written would be found before what is meant.
         */
        cwd: v.optional(v.string()),
        ...policies,
      }),
      v.strictObject({
        url: v.pipe(v.string(), v.url(), v.regex(/^https?:/, 'must begin with http:// or https://')),
        /** Values may refer to the runner's environment, as `env`. */
        headers: v.optional(v.record(v.string(), v.string()), {}),
        ...policies,
      }),
    ],
    'a server has a command, or a url, and beside it only args, env, cwd or headers, replay, access, tools',
  ),
)
export type McpSettings = v.InferOutput<typeof McpSettings>
export type McpDefinition = McpSettings[string]

const REFERENCE = /\$\{([A-Za-z_][A-Za-z0-9_]*)\}/g

/** The names that stand in a text as `${NAME}`. */
export function referencesIn(text: string): string[] {
  return Array.from(text.matchAll(REFERENCE), ([, name = '']) => name)
}

/** The variables of the runner that servers are given by name. */
export function referencesOf(settings: McpSettings): string[] {
  return Object.values(settings)
    .flatMap((server) => Object.values('command' in server ? server.env : server.headers))
    .flatMap(referencesIn)
}

/** Text with its `${NAME}` replaced, and the values that stand for secrets. Throws Error naming a variable that is not set. */
export function resolved(
  values: Record<string, string>,
  env: NodeJS.ProcessEnv,
): { values: Record<string, string>; secrets: string[] } {
  const secrets: string[] = []
  const replaced = Object.entries(values).map(([key, value]) => [
    key,
    value.replaceAll(REFERENCE, (_, name: string) => {
      const found = env[name]
      if (found === undefined || found === '')
        throw new Error(`it needs the environment variable ${name}, which is not set for this runner`)
      secrets.push(found)
      return found
    }),
  ])
  return { values: Object.fromEntries(replaced) as Record<string, string>, secrets }
}
