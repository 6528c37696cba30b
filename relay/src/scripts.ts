/**
 * The Lua scripts of `lua/`, one state change each, as typed calls. Each file's header names its KEYS, ARGV and return codes;
 * the table below says the same to the type checker, and loading compares the two, so that neither can drift.
 *
 *   const [code, n] = await run(redis, 'command', { state, inbox, commands }, { account, sid, … })
 */
import { createHash } from 'node:crypto'
import { channel } from 'node:diagnostics_channel'
import { readFileSync } from 'node:fs'
import type { Redis } from 'ioredis'

interface Binding {
  keys: readonly string[]
  /** The last may end in `...`: a list. */
  args: readonly string[]
  returns: readonly string[]
}

export const SCRIPTS = {
  admit: { keys: ['accounts'], args: ['account', 'accounts_max'], returns: ['ok', 'accounts-full'] },
  append: {
    keys: ['state', 'journal', 'inbox', 'blobs', 'partial'],
    args: ['account', 'sid', 'device', 'epoch', 'first', 'session_channel', 'account_channel', 'entries...'],
    returns: ['ok', 'repeated', 'lease-lost', 'wrong-seq', 'already-consumed', 'no-blob', 'no-session'],
  },
  claim: {
    keys: ['state', 'journal', 'partial', 'offers'],
    args: ['account', 'sid', 'device', 'ttl_ms', 'tags', 'holders_max', 'session_channel', 'account_channel'],
    returns: ['ok', 'lease-held', 'placed-elsewhere', 'no-session'],
  },
  collect: {
    keys: ['state', 'blobs'],
    args: ['account', 'kind', 'seq', 'hashes', 'whole'],
    returns: ['ok', 'known', 'no-session'],
  },
  command: {
    keys: ['state', 'inbox', 'commands'],
    args: ['account', 'sid', 'id', 'kind', 'device', 'body', 'place', 'inbox_max', 'account_channel'],
    returns: ['ok', 'repeated', 'inbox-full', 'session-ended', 'no-session'],
  },
  create: {
    keys: ['state'],
    args: ['account', 'sid', 'meta', 'place', 'account_channel'],
    returns: ['created', 'exists', 'no-session'],
  },
  delta: {
    keys: ['state', 'partial'],
    args: ['account', 'device', 'epoch', 'effect', 'body', 'keep_ms', 'session_channel'],
    returns: ['ok', 'lease-lost', 'no-session'],
  },
  describe: {
    keys: ['state'],
    args: ['account', 'sid', 'meta', 'account_channel'],
    returns: ['ok', 'no-session'],
  },
  expire: {
    keys: ['state', 'journal', 'inbox'],
    args: ['account', 'sid', 'session_channel', 'account_channel'],
    returns: ['expired', 'held', 'free', 'no-session'],
  },
  leave: { keys: ['online'], args: ['connection'], returns: ['left', 'other'] },
  offer: {
    keys: ['state', 'offers'],
    args: ['account', 'sid', 'patience_ms', 'account_channel', 'candidates...'],
    returns: ['offered', 'waiting', 'held', 'no-session'],
  },
  'put-blob': {
    keys: ['state', 'blobs', 'blob'],
    args: ['account', 'hash', 'size', 'bytes'],
    returns: ['stored', 'known', 'no-session'],
  },
  'put-engine': {
    keys: ['engines', 'engine'],
    args: ['name', 'size', 'engines_max', 'bytes'],
    returns: ['stored', 'known', 'storage-limit'],
  },
  release: {
    keys: ['state', 'journal', 'inbox'],
    args: [
      'account',
      'sid',
      'device',
      'epoch',
      'status',
      'place',
      'seen',
      'session_channel',
      'account_channel',
    ],
    returns: ['ok', 'lease-lost', 'no-session'],
  },
  renew: {
    keys: ['state'],
    args: ['account', 'device', 'epoch', 'ttl_ms'],
    returns: ['ok', 'lease-lost', 'no-session'],
  },
} as const satisfies Record<string, Binding>

export type ScriptName = keyof typeof SCRIPTS
type Scripts = typeof SCRIPTS
type Value = string | number | Buffer

export type ScriptKeys<N extends ScriptName> = Record<Scripts[N]['keys'][number], string>
export type ScriptArgs<N extends ScriptName> = {
  [A in Scripts[N]['args'][number] as A extends `${infer List}...` ? List : A]: A extends `${string}...`
    ? Value[]
    : Value
}
export type ScriptCode<N extends ScriptName> = Scripts[N]['returns'][number]
/** The code, then what the header lists behind it. */
export type ScriptReply<N extends ScriptName> = [code: ScriptCode<N>, ...values: (string | number)[]]

const FOLDER = new URL('lua/', import.meta.url)

/** Reads a header: sections KEYS, ARGV, RETURNS; in each, the first word of a line indented by three is an item. */
export function parseHeader(source: string): Binding {
  const sections: Record<string, string[]> = { KEYS: [], ARGV: [], RETURNS: [] }
  let items: string[] | undefined
  for (const line of source.split('\n')) {
    if (!line.startsWith('--')) break
    const item = /^-- {3}(\S+)/.exec(line)?.[1]
    if (item !== undefined) items?.push(item)
    else items = sections[line.slice(3)] ?? items
  }
  return { keys: sections['KEYS'] ?? [], args: sections['ARGV'] ?? [], returns: sections['RETURNS'] ?? [] }
}

/** Throws when a script's header and its binding differ. */
export function checkHeader(name: string, source: string, binding: Binding): void {
  const header = parseHeader(source)
  for (const part of ['keys', 'args', 'returns'] as const) {
    const [there, here] = [header[part].join(' '), binding[part].join(' ')]
    if (there !== here)
      throw new Error(`lua/${name}.lua: its header says ${part}: ${there}; scripts.ts: ${here}`)
  }
}

/** Source of a script without the prelude. */
export function readScript(name: string): string {
  return readFileSync(new URL(`${name}.lua`, FOLDER), 'utf8')
}

interface Loaded {
  source: string
  sha: string
  binding: Binding
}

const prelude = readScript('prelude')
const loaded = new Map<string, Loaded>()
for (const [name, binding] of Object.entries(SCRIPTS)) {
  const body = readScript(name)
  checkHeader(name, body, binding)
  const source = `${prelude}\n${body}`
  loaded.set(name, { source, sha: createHash('sha1').update(source).digest('hex'), binding })
}

/**
 * Makes every script known to a Redis. Called at each connect, before anything else is sent: a script that had to be sent
 * again in the middle of pipelined calls would fall behind those that follow it.
 */
export async function loadScripts(redis: Redis): Promise<void> {
  await Promise.all([...loaded.values()].map(({ source }) => redis.script('LOAD', source)))
}

/** Every script that was run is told here, for those who measure. */
export const SCRIPT_CHANNEL = 'baton:relay:script'
export interface ScriptRun {
  script: ScriptName
  code: string
  /** From asking to the answer. */
  ms: number
}
const runs = channel(SCRIPT_CHANNEL)

/** Runs a script. Throws what Redis or the connection throws. */
export async function run<N extends ScriptName>(
  redis: Redis,
  name: N,
  keys: ScriptKeys<N>,
  args: ScriptArgs<N>,
): Promise<ScriptReply<N>> {
  const { source, sha, binding } = loaded.get(name) as Loaded
  const values: Value[] = binding.keys.map((key) => (keys as Record<string, string>)[key] ?? '')
  for (const arg of binding.args) {
    const value = (args as Record<string, Value | Value[]>)[arg.replace('...', '')] ?? ''
    if (Array.isArray(value)) for (const item of value) values.push(item)
    else values.push(value)
  }
  const began = performance.now()
  let reply: unknown
  try {
    reply = await redis.evalsha(sha, binding.keys.length, ...values)
  } catch (error) {
    if (!(error instanceof Error && error.message.startsWith('NOSCRIPT'))) throw error
    reply = await redis.eval(source, binding.keys.length, ...values)
  }
  const [code] = reply as ScriptReply<N>
  if (runs.hasSubscribers)
    runs.publish({ script: name, code, ms: performance.now() - began } satisfies ScriptRun)
  return reply as ScriptReply<N>
}
