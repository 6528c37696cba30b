/**
 * An MCP server as a child process, in a group of its own that dies with this one (F52). Messages are lines of JSON on its input
 * and output; of its error output the end is kept, for when it fails.
 */
import {
  ReadBuffer,
  serializeMessage,
  type JSONRPCMessage,
  type Transport,
} from '@modelcontextprotocol/client'
import { HeadAndTail } from '../tools/text.ts'
import { spawnGroup, type Group } from '../tools/process-group.ts'

const MESSAGE_BYTES_MAX = 16 << 20
const ERRORS_CHARS = 2_000

export class StdioTransport implements Transport {
  onclose?: () => void
  onerror?: (error: Error) => void
  onmessage?: (message: JSONRPCMessage) => void
  readonly #how: { command: string; args: string[]; env: Record<string, string>; cwd: string }
  readonly #buffer = new ReadBuffer({ maxBufferSize: MESSAGE_BYTES_MAX })
  readonly #errors = new HeadAndTail(ERRORS_CHARS)
  #group: Group | undefined
  #isClosed = false

  constructor(how: { command: string; args: string[]; env: Record<string, string>; cwd: string }) {
    this.#how = how
  }

  /** What it wrote to its error output, bounded. */
  get errors(): string {
    return this.#errors.toString().trim()
  }

  start(): Promise<void> {
    const { command, args, cwd, env } = this.#how
    const group = spawnGroup(command, args, { cwd, env, stdin: 'pipe' })
    this.#group = group
    const { child } = group
    child.stdout?.on('data', (chunk: Buffer) => this.#received(chunk))
    child.stderr?.on('data', (chunk: Buffer) => this.#errors.add(chunk.toString('utf8')))
    child.stdin?.on('error', (error) => this.onerror?.(error))
    child.once('exit', () => void this.close())
    return new Promise((resolve, reject) => {
      child.on('error', reject)
      child.once('spawn', resolve)
    })
  }

  send(message: JSONRPCMessage): Promise<void> {
    return new Promise((resolve, reject) => {
      const stdin = this.#group?.child.stdin
      if (!stdin || this.#isClosed) return reject(new Error('the server has ended'))
      stdin.write(serializeMessage(message), (error) => (error ? reject(error) : resolve()))
    })
  }

  /** Ends the server and whatever it has started. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    await this.#group?.end().catch((error: Error) => this.onerror?.(error))
    this.#group?.child.stdout?.destroy()
    this.#group?.child.stderr?.destroy()
    this.onclose?.()
  }

  #received(chunk: Buffer): void {
    try {
      this.#buffer.append(chunk)
    } catch (error) {
      this.onerror?.(error instanceof Error ? error : new Error(String(error)))
      void this.close()
      return
    }
    for (;;) {
      try {
        const message = this.#buffer.readMessage()
        if (message === null) return
        this.onmessage?.(message)
      } catch (error) {
        // JSON that is no message, say the log of a careless server.
        this.onerror?.(error instanceof Error ? error : new Error(String(error)))
      }
    }
  }
}
