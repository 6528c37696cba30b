/**
 * Which values that a config gives to MCP servers are secrets, however it names them: as `${NAME}`, by `process.env.NAME`, or as they are.
 * They are blotted out of what servers answer, and variables of the runner that hold one are kept from commands.
 */
import { existsSync } from 'node:fs'
import { isPlain } from '../tools/environment.ts'
import { CHARS_MIN, redactor } from './redaction.ts'
import { referencesIn, type McpDefinition, type McpSettings } from './settings.ts'

/** Names that people give to variables with secrets. */
const SECRETIVE = /key|token|secret|pass|auth|cred|pat$|pw$/i
/** How a header says what follows. */
const SCHEME = /^(Basic|Bearer|Digest|Token|ApiKey)$/i
const TYPE = /^[a-z]+\/[\w.+-]+(;\s*charset=[\w-]+)?$/i

/** Of `env` or `headers`, as the server gets them: all that isn't clearly something else, whole and in the parts of a header. */
export function secretsIn(values: Record<string, string>): string[] {
  const all = Object.values(values)
    .filter((value) => value.length >= CHARS_MIN && !isKnownPlace(value) && !TYPE.test(value))
    .flatMap((value) => [value, ...value.split(/\s+/).filter((part) => !SCHEME.test(part))])
    .filter(({ length }) => length >= CHARS_MIN)
  return [...new Set(all)]
}

/** What says where something is, and would be missed in every answer. */
function isKnownPlace(value: string): boolean {
  if (value.startsWith('/')) return existsSync(value)
  const url = URL.parse(value)
  return url !== null && /^https?:$/.test(url.protocol) && [`${url.origin}/`, url.origin].includes(value)
}

/** The variables of the runner that servers are given, by name or by what they hold. */
export function givenVariables(settings: McpSettings, env: NodeJS.ProcessEnv): string[] {
  const given = Object.values(settings).map((server) => ({ values: Object.values(valuesOf(server)), server }))
  const named = given.flatMap(({ values }) => values.flatMap(referencesIn))
  const secrets = new Set([
    ...given.flatMap(({ server }) => secretsIn(valuesOf(server))),
    ...named.map((name) => env[name] ?? '').filter(({ length }) => length >= CHARS_MIN),
  ])
  const texts = given.flatMap(({ server }) => textsOf(server))
  const held = Object.entries(env).flatMap(([name, value = '']) => {
    if (value.length < CHARS_MIN || isPlain(name)) return []
    return secrets.has(value) || (SECRETIVE.test(name) && isIn(value, texts)) ? [name] : []
  })
  return [...named, ...held]
}

/** What variables hold that a server is given in some other form: in its arguments or its address, or as Base64. */
export function secretsElsewhere(server: McpDefinition, env: NodeJS.ProcessEnv): string[] {
  const texts = textsOf(server)
  return Object.entries(env).flatMap(([name, value = '']) =>
    value.length >= CHARS_MIN && SECRETIVE.test(name) && isIn(value, texts) ? [value] : [],
  )
}

/**
 * Names of variables that the text of a config with servers takes from the runner. It is only searched: a config runs for sessions of its
 * own folder alone.
 */
export function variablesIn(config: string): string[] {
  if (!/\bmcp\b/.test(config)) return referencesIn(config)
  const taken = Array.from(
    config.matchAll(/\benv\s*(?:\?\.)?\s*(?:\.\s*(\w+)|\[\s*['"`](\w+)['"`]\s*\])/g),
    (found) => String(found[1] ?? found[2]),
  )
  const parts = Array.from(config.matchAll(/\{([^{}]*)\}\s*=\s*(?:process\.)?env\b/g), ([, names = '']) =>
    names.split(',').map((name) => name.replace(/[:=].*$/s, '').trim()),
  )
  return [...referencesIn(config), ...taken, ...parts.flat()]
}

const valuesOf = (server: McpDefinition): Record<string, string> =>
  'command' in server ? server.env : server.headers

const textsOf = (server: McpDefinition): string[] => [
  ...Object.values(valuesOf(server)),
  ...('command' in server ? server.args : [server.url]),
]

/** In whatever form. */
const isIn = (secret: string, texts: readonly string[]): boolean => {
  const redact = redactor([secret])
  return texts.some((text) => redact(text) !== text)
}
