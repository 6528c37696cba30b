/** The environment of the person who called, when npm or npx called in between: what they add is not for the agent's commands. */
import { delimiter, isAbsolute } from 'node:path'

/** A person may have set these themselves, and packages can't be fetched without them. */
const REACH = /^npm_config_(registry|proxy|https[-_]proxy|cafile|strict[-_]ssl)$/
const ADDED = /^(npm_.*|INIT_CWD|NODE|COLOR)$/

/** Folders that npm puts in front of PATH: one for each folder upwards, then its own. */
const BIN = /[\\/]node_modules[\\/]\.bin[\\/]?$|[\\/]node-gyp-bin[\\/]?$/

/** Gives `env` without what npm added to it; as it is when npm did not call. */
export function personsEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  if (env['npm_execpath'] === undefined) return env
  const kept = Object.fromEntries(
    Object.entries(env).filter(([name]) => !ADDED.test(name) || REACH.test(name)),
  )
  const path = env['PATH']?.split(delimiter) ?? []
  const first = path.findIndex((folder) => !(isAbsolute(folder) && BIN.test(folder)))
  return first < 0 ? kept : { ...kept, PATH: path.slice(first).join(delimiter) }
}

/** Lets this process, and whatever it starts, have the person's environment. */
export function leaveNpm(): void {
  const kept = personsEnvironment(process.env)
  for (const name of Object.keys(process.env)) if (!(name in kept)) delete process.env[name]
  Object.assign(process.env, kept)
}
