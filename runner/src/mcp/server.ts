/**
 * One MCP server of one session's stay on this runner. Started at its first call, within a deadline; when it dies it is started
 * again at the next call, at once the first time, then ever more slowly. Each session has its own, so that what a server
 * remembers (an open page, a chosen project) does not leak into another session. It is the person's program with the person's secrets:
 * it runs in the person's folder, never among files that an agent writes.
 */
import { setTimeout as delay } from 'node:timers/promises'
import { mkdir, realpath } from 'node:fs/promises'
import { resolve } from 'node:path'
import type {
  CallToolResult,
  Client,
  StreamableHTTPClientTransport,
  Tool,
} from '@modelcontextprotocol/client'
import { BatonError } from '@baton/shared/errors.ts'
import { Backoff } from '@baton/shared/backoff.ts'
import { serverEnvironment } from '../tools/environment.ts'
import { isInside } from '../tools/paths.ts'
import { redactor } from './redaction.ts'
import { secretsElsewhere, secretsIn } from './secrets.ts'
import { resolved, type McpDefinition } from './settings.ts'
import type { StdioTransport } from './stdio.ts'

const START_MS = 20_000
const CALL_MS = 600_000
const TOOLS_MAX = 200

/** The server can't be had; the message says why, in words, without secrets. */
export class McpFailure extends Error {
  override name = 'McpFailure'
}

interface Connection {
  client: Client
  tools: Tool[]
  /** Ends the process, or the connection. */
  close: () => Promise<void>
}

export interface McpPlace {
  /** The person's folder, whose config names the server. */
  folder: string
  /** Where the agent writes: the session's work tree. Told to the server as BATON_WORK_TREE; its PATH leads to nothing in there. */
  root: string
  /** Made when it is needed: the folder of the server instead of the person's, when the agent works in that one. */
  empty: string
}

export interface McpServerOptions {
  name: string
  definition: McpDefinition
  /** Where it runs, if it is a program. */
  place: McpPlace
  env: NodeJS.ProcessEnv
  start_ms?: number
}

export class McpServer {
  readonly #options: McpServerOptions
  readonly #backoff = new Backoff({ base_ms: 1_000, cap_ms: 30_000 })
  #connecting: Promise<Connection> | undefined
  #redact = (text: string): string => text
  #failures = 0
  /** On the monotonic clock. */
  #notBefore = 0
  #isOver = false

  constructor(options: McpServerOptions) {
    this.#options = options
  }

  /** The tools that it offers, by its own names. Throws McpFailure. */
  async tools(signal?: AbortSignal): Promise<Tool[]> {
    return (await this.#connected(signal)).tools
  }

  /** Throws McpFailure when the server can't be had or does not answer; BatonError `stopped` when the signal ended the call. */
  async call(name: string, input: Record<string, unknown>, signal: AbortSignal): Promise<CallToolResult> {
    const { client } = await this.#connected(signal)
    try {
      const result = await client.callTool(
        { name, arguments: input },
        { signal, timeout: CALL_MS, resetTimeoutOnProgress: true, maxTotalTimeout: CALL_MS },
      )
      this.#failures = 0
      this.#backoff.settle()
      return result
    } catch (error) {
      if (signal.aborted) throw new BatonError('stopped')
      throw this.#failure('the call failed', error)
    }
  }

  /** Text without the secrets that this server was given. */
  redact(text: string): string {
    return this.#redact(text)
  }

  async end(): Promise<void> {
    this.#isOver = true
    const connecting = this.#connecting
    this.#connecting = undefined
    const connection = await connecting?.catch(() => undefined)
    await connection?.close()
  }

  async #connected(signal?: AbortSignal): Promise<Connection> {
    if (this.#isOver) throw new McpFailure('the session is leaving this machine')
    const wait_ms = this.#notBefore - performance.now()
    if (!this.#connecting && wait_ms > 0) {
      throw new McpFailure(
        `it failed ${this.#failures} times and is tried again in ${Math.ceil(wait_ms / 1000)} s`,
      )
    }
    this.#connecting ??= this.#connect()
    return signal ? unlessAborted(this.#connecting, signal) : this.#connecting
  }

  async #connect(): Promise<Connection> {
    const { definition, start_ms = START_MS } = this.#options
    let close = async (): Promise<void> => undefined
    let errors = (): string => ''
    try {
      // Large, and only for those who have servers.
      const { Client } = await import('@modelcontextprotocol/client')
      const client = new Client({ name: 'baton', version: '1.0.0' })
      const transport =
        'command' in definition ? await this.#program(definition) : await this.#remote(definition)
      if ('errors' in transport) errors = () => transport.errors
      let isClosed = false
      close = async () => {
        isClosed = true
        await client.close()
        await transport.close()
      }
      await withDeadline(client.connect(transport, { timeout: start_ms }), start_ms)
      const tools = await withDeadline(listTools(client), start_ms)
      client.onclose = () => {
        // It died; whoever calls next starts another.
        if (!isClosed) this.#failed()
      }
      return { client, tools, close }
    } catch (error) {
      await close().catch(() => undefined)
      this.#failed()
      const said = errors()
      throw this.#failure('it could not be started', error, said === '' ? '' : ` It said: ${said}`)
    }
  }

  async #program(definition: Extract<McpDefinition, { command: string }>): Promise<StdioTransport> {
    const { command, args, cwd } = definition
    const { folder, root, empty } = this.#options.place
    const { StdioTransport } = await import('./stdio.ts')
    const { values, secrets } = resolved(definition.env, this.#options.env)
    this.#redactsAll(secrets, values)
    const env = { ...serverEnvironment(this.#options.env, root), BATON_WORK_TREE: root, ...values }
    if (cwd !== undefined) return new StdioTransport({ command, args, env, cwd: resolve(folder, cwd) })
    const isShared = isInside(await real(root), await real(folder))
    if (isShared) await mkdir(empty, { recursive: true, mode: 0o700 })
    return new StdioTransport({ command, args, env, cwd: isShared ? empty : folder })
  }

  async #remote({
    url,
    headers,
  }: Extract<McpDefinition, { url: string }>): Promise<StreamableHTTPClientTransport> {
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client')
    const { values, secrets } = resolved(headers, this.#options.env)
    this.#redactsAll(secrets, values)
    return new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers: values } })
  }

  #redactsAll(secrets: string[], values: Record<string, string>): void {
    const { definition, env } = this.#options
    this.#redact = redactor([...secrets, ...secretsIn(values), ...secretsElsewhere(definition, env)])
  }

  #failed(): void {
    this.#connecting = undefined
    this.#failures++
    // Once it may have been an accident.
    if (this.#failures > 1) this.#notBefore = performance.now() + this.#backoff.next()
  }

  #failure(what: string, error: unknown, more = ''): McpFailure {
    const words = error instanceof Error ? error.message : String(error)
    return new McpFailure(this.redact(`${what}: ${words}.${more}`))
  }
}

const real = (path: string): Promise<string> => realpath(path).catch(() => path)

/** Throws BatonError `stopped` as soon as the signal aborts. */
async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  if (signal.aborted) throw new BatonError('stopped')
  const over = new AbortController()
  const stopped = new Promise<never>((_, reject) => {
    const stop = (): void => reject(new BatonError('stopped'))
    signal.addEventListener('abort', stop, { once: true, signal: over.signal })
  })
  try {
    return await Promise.race([work, stopped])
  } finally {
    over.abort()
  }
}

async function listTools(client: Client): Promise<Tool[]> {
  if (!client.getServerCapabilities()?.tools) return []
  const { tools } = await client.listTools()
  return tools.slice(0, TOOLS_MAX)
}

async function withDeadline<T>(work: Promise<T>, within_ms: number): Promise<T> {
  const done = new AbortController()
  const late = delay(within_ms, undefined, { signal: done.signal }).then(() => {
    throw new Error(`no answer within ${within_ms / 1000} s`)
  })
  late.catch(() => undefined)
  try {
    return await Promise.race([work, late])
  } finally {
    done.abort()
    work.catch(() => undefined)
  }
}
