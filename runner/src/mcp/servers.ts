import { rm } from 'node:fs/promises'
import { McpServer, type McpPlace } from './server.ts'
import type { McpDefinition } from './settings.ts'

/** The servers of a session's stay, each started at its first call. */
export class McpServers {
  readonly #place: McpPlace
  readonly #env: NodeJS.ProcessEnv
  readonly #servers = new Map<string, McpServer>()

  /** `place`: where they run; its empty folder is theirs alone and goes with them. `env`: what `${NAME}` in the settings refers to. */
  constructor(place: McpPlace, env: NodeJS.ProcessEnv) {
    this.#place = place
    this.#env = env
  }

  server(name: string, definition: McpDefinition): McpServer {
    const key = keyOf(name, definition)
    const server =
      this.#servers.get(key) ?? new McpServer({ name, definition, place: this.#place, env: this.#env })
    this.#servers.set(key, server)
    return server
  }

  async end(): Promise<void> {
    await Promise.all(Array.from(this.#servers.values(), (server) => server.end()))
    await rm(this.#place.empty, { recursive: true, force: true }).catch(() => undefined)
  }
}

/** Servers of the same settings are the same server. */
export function keyOf(name: string, definition: McpDefinition): string {
  return JSON.stringify([name, definition])
}
