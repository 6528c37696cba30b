import { McpServer } from './server.ts'
import type { McpDefinition } from './settings.ts'

/** The servers of a session's stay, each started at its first call. */
export class McpServers {
  readonly #root: string
  readonly #env: NodeJS.ProcessEnv
  readonly #servers = new Map<string, McpServer>()

  /** `root`: the session's work tree. `env`: what `${NAME}` in the settings refers to. */
  constructor(root: string, env: NodeJS.ProcessEnv) {
    this.#root = root
    this.#env = env
  }

  server(name: string, definition: McpDefinition): McpServer {
    const key = keyOf(name, definition)
    const server =
      this.#servers.get(key) ?? new McpServer({ name, definition, root: this.#root, env: this.#env })
    this.#servers.set(key, server)
    return server
  }

  async end(): Promise<void> {
    await Promise.all(Array.from(this.#servers.values(), (server) => server.end()))
  }
}

/** Servers of the same settings are the same server. */
export function keyOf(name: string, definition: McpDefinition): string {
  return JSON.stringify([name, definition])
}
