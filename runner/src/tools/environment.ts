/**
 * Environments of what runs for a session. A command gets the runner's without the secrets of the runner and of MCP servers; in the
 * sandbox only what is named; an MCP server only what every program needs, and what its settings give it.
 */
import { realpathSync } from 'node:fs'
import { delimiter, isAbsolute } from 'node:path'
import { isInside } from './paths.ts'

type Environment = Record<string, string>

/** The runner's own: its model's key, its settings and passphrase, its database, what systemd lends it. */
const OWN = /^(ANTHROPIC_.*|BATON_.*|REDIS_URL|REDISCLI_AUTH|CREDENTIALS_DIRECTORY)$/
/** What every program may know. No secret is in there, also when a config refers to it. */
const PLAIN = /^(PATH|HOME|LANG|LC_.*|TERM|TZ|USER|LOGNAME|SHELL)$/
/** May every program know it? */
export const isPlain = (name: string): boolean => PLAIN.test(name)
/** Set inside a git hook or by `git` itself, they would point commands at another repository. */
const GIT = /^GIT_(DIR|WORK_TREE|INDEX_FILE|OBJECT_DIRECTORY|PREFIX|COMMON_DIR)$/
/** Shells run what is in them. */
const SHELL_CODE = /^(BASH_ENV|PROMPT_COMMAND)$/

/** Nobody answers a question, and nobody turns pages. */
const NO_TERMINAL = { TERM: 'dumb', PAGER: 'cat', GIT_PAGER: 'cat', GIT_TERMINAL_PROMPT: '0', NO_COLOR: '1' }

/** Of a command. `withheld`: names of variables that hold secrets of MCP servers. */
export function commandEnvironment(
  env: NodeJS.ProcessEnv,
  withheld: ReadonlySet<string> = new Set(),
): Environment {
  const may = (name: string): boolean => PLAIN.test(name) || !(OWN.test(name) || withheld.has(name))
  return {
    ...only(env, (name) => may(name) && !GIT.test(name) && !SHELL_CODE.test(name)),
    ...NO_TERMINAL,
  }
}

/** Of a command in the sandbox. `named`: what the config lets in beside the plain ones; secrets of the runner and of servers stay out. */
export function boxedEnvironment(
  env: NodeJS.ProcessEnv,
  named: readonly string[],
  withheld: ReadonlySet<string> = new Set(),
): Environment {
  const allowed = only(env, (name) => PLAIN.test(name) || named.includes(name))
  return commandEnvironment(allowed, withheld)
}

/** Of an MCP server, which gets the rest from its settings. Nothing in `root`, where the agent writes, is found by its PATH. */
export function serverEnvironment(env: NodeJS.ProcessEnv, root: string): Environment {
  const plain = only(env, (name) => PLAIN.test(name))
  const { PATH: path } = plain
  if (path === undefined) return plain
  const places = [root, real(root)]
  const isTheirs = (folder: string): boolean =>
    places.some((place) => isInside(place, folder) || isInside(place, real(folder)))
  const kept = path.split(delimiter).filter((folder) => isAbsolute(folder) && !isTheirs(folder))
  return { ...plain, PATH: kept.join(delimiter) }
}

function real(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    return path
  }
}

function only(env: NodeJS.ProcessEnv, may: (name: string) => boolean): Environment {
  const kept = Object.entries(env).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && may(entry[0]),
  )
  return Object.fromEntries(kept)
}
