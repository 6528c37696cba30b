/**
 * A scripted model on 127.0.0.1 that speaks the Anthropic Messages API with streaming, so that the real SDK is what runs
 * against it. It checks every request against the API's rules, records it whole and counts it.
 *
 * In a test's own process: `await startModelServer([[say('Hello')]])`. As a process that outlives runners:
 *
 *   node test/src/model-server.ts --script NAME [--port N] [--record FILE]
 *
 * where NAME is one of model-scripts.ts. It prints `model server: URL`, and keeps FILE equal to `state()`. Both forms answer
 * `GET /test/state` and `POST /test/open/GATE`.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setImmediate as breathe } from 'node:timers/promises'
import type { Json } from '@baton/shared/guest.ts'
import { oneOf, runProgram, wholeNumber } from './command-line.ts'
import { readRequest } from './model-rules.ts'
import type { MessagesRequest } from './model-rules.ts'
import { errorBody, messageSteps, summaryTurn, turnIndex, wantsSummary } from './model-turns.ts'
import type { Part, Script, Sent, Turn } from './model-turns.ts'
import { WholeMessage } from './model-whole.ts'

/** `open`: being answered. `aborted`: the caller hung up. `cut`, `failed`, `refused`: as scripted. `invalid`: broke a rule. */
export type RequestEnd = 'open' | 'answered' | 'aborted' | 'cut' | 'failed' | 'refused' | 'invalid'

export interface RecordedRequest {
  /** From 1, in order of arrival. */
  n: number
  end: RequestEnd
  headers: Record<string, string>
  /** Parsed when valid, else the text as it came. */
  body: MessagesRequest | string
  /** Which rule an invalid request broke. */
  broken?: string
}

/** Everything that a test asks of the server; the same in process and over HTTP. */
export interface ModelState {
  /** All requests, also refused and repeated ones. */
  count: number
  requests: RecordedRequest[]
  /** Per gate: is it open, and how many requests stand before it. */
  gates: Record<string, { open: boolean; waiting: number }>
}

export interface ModelServer {
  /** For the SDK's `baseURL` and for ANTHROPIC_BASE_URL. */
  url: string
  state: () => ModelState
  /** Lets pass everything that waits at a gate, or will. */
  open: (gate: string) => void
  close: () => Promise<void>
}

interface Options {
  /** 0: any free one. */
  port?: number
  /** Is called with the state whenever it changed, before the answer goes out. */
  onChange?: (state: ModelState) => void
}

class Gate {
  open = false
  readonly waiting = new Set<() => void>()

  pass(signal: AbortSignal): Promise<void> {
    if (this.open || signal.aborted) return Promise.resolve()
    return new Promise((resolve) => {
      const leave = (): void => {
        this.waiting.delete(leave)
        signal.removeEventListener('abort', leave)
        resolve()
      }
      this.waiting.add(leave)
      signal.addEventListener('abort', leave)
    })
  }

  release(): void {
    this.open = true
    for (const leave of this.waiting) leave()
  }
}

/** What the service says of the models that it has. */
function modelList(): Json {
  const data = ['claude-sonnet-5-5', 'claude-opus-5-5', 'claude-next-1'].map((id) => ({
    ...{ type: 'model', id, display_name: id, created_at: '2026-01-01T00:00:00Z' },
  }))
  return { data, has_more: false, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null }
}

/** @throws Error when the port is taken */
export async function startModelServer(
  script: Script,
  { port = 0, onChange }: Options = {},
): Promise<ModelServer> {
  const requests: RecordedRequest[] = []
  const gates = new Map<string, Gate>()
  const seen = new Map<string, number>()

  const state = (): ModelState => ({
    count: requests.length,
    requests,
    gates: Object.fromEntries(
      [...gates].map(([name, { open, waiting }]) => [name, { open, waiting: waiting.size }]),
    ),
  })
  const changed = (): void => onChange?.(state())
  const gate = (name: string): Gate => {
    const known = gates.get(name) ?? new Gate()
    gates.set(name, known)
    return known
  }
  const open = (name: string): void => {
    gate(name).release()
    changed()
  }

  function turnFor(request: MessagesRequest, n: number): Turn {
    const key = createHash('sha256').update(JSON.stringify(request.messages)).digest('hex')
    const attempt = seen.get(key) ?? 0
    seen.set(key, attempt + 1)
    const listed = typeof script === 'function' ? [] : script
    const next = (): Turn | undefined =>
      wantsSummary(request) ? summaryTurn(request) : listed[turnIndex(request)]
    let turn = typeof script === 'function' ? script(request, n) : next()
    while (turn !== undefined && 'attempts' in turn) turn = turn.attempts[attempt] ?? turn.attempts.at(-1)
    return turn ?? { status: 400, message: `The script has no turn ${turnIndex(request)}.` }
  }

  async function answer(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await readBody(incoming)
    const record: RecordedRequest = {
      n: requests.length + 1,
      end: 'open',
      headers: incoming.headers as Record<string, string>,
      body: body.toString(),
    }
    requests.push(record)
    const end = (how: RequestEnd): void => {
      record.end = how
      changed()
    }
    const gone = new AbortController()
    response.on('close', () => {
      if (record.end === 'open') end('aborted')
      gone.abort()
    })
    response.setHeader('request-id', `req_${record.n}`)

    const headerFault = brokenHeaders(incoming)
    if (headerFault !== undefined) {
      record.broken = headerFault.message
      end('invalid')
      sendJson(
        response,
        headerFault.status,
        errorBody(headerFault.status, headerFault.message, `req_${record.n}`),
      )
      return
    }
    const read = readRequest(body)
    if ('broken' in read) {
      record.broken = read.broken
      end('invalid')
      sendJson(response, 400, errorBody(400, read.broken, `req_${record.n}`))
      return
    }
    record.body = read.request
    changed()

    const turn = turnFor(read.request, record.n)
    if ('status' in turn) {
      end('refused')
      const { status, message = `Scripted ${status}`, headers = {} } = turn
      for (const [name, value] of Object.entries(headers)) response.setHeader(name, value)
      sendJson(response, status, errorBody(status, message, `req_${record.n}`))
      return
    }
    await stream(turn as Part[], read.request, response, gone.signal, end)
  }

  async function stream(
    parts: Part[],
    request: MessagesRequest,
    response: ServerResponse,
    gone: AbortSignal,
    end: (how: RequestEnd) => void,
  ): Promise<void> {
    const whole = request.stream === true ? undefined : new WholeMessage()
    for (const step of messageSteps(parts, request)) {
      if ('hold' in step) {
        const passing = gate(step.hold).pass(gone)
        changed()
        await passing
      } else if ('cut' in step) {
        end('cut')
        // What was written before has to leave first, or the break would swallow it.
        await new Promise((resolve) => response.write('', resolve))
        response.destroy()
      } else {
        const { send } = step
        // Before the last bytes leave: whoever has the answer must find it recorded.
        if (send.type === 'error') end('failed')
        if (send.type === 'message_stop') end('answered')
        if (whole === undefined) await writeEvent(response, send)
        else whole.add(send)
      }
      if (gone.aborted || response.destroyed) return
    }
    if (whole === undefined) response.end()
    else sendJson(response, whole.status, whole.body)
  }

  async function route(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method, url = '' } = incoming
    const { pathname } = new URL(url, 'http://localhost')
    if (method === 'POST' && pathname === '/v1/messages') await answer(incoming, response)
    else if (method === 'GET' && pathname === '/v1/models') sendJson(response, 200, modelList())
    else if (method === 'GET' && pathname === '/test/state') sendJson(response, 200, state())
    else if (method === 'POST' && pathname.startsWith('/test/open/')) {
      open(decodeURIComponent(pathname.slice('/test/open/'.length)))
      sendJson(response, 200, state())
    } else
      sendJson(response, 404, {
        type: 'error',
        error: { type: 'not_found_error', message: `No ${pathname} here` },
      })
  }

  const server = createServer((incoming, response) => {
    route(incoming, response).catch((error: unknown) =>
      response.destroy(error instanceof Error ? error : undefined),
    )
  })
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    state,
    open,
    close: () => closeServer(server),
  }
}

function brokenHeaders({ headers }: IncomingMessage): { status: number; message: string } | undefined {
  if (headers['x-api-key'] === undefined && headers.authorization === undefined) {
    return { status: 401, message: 'A key is required, as x-api-key or authorization' }
  }
  if (headers['anthropic-version'] === undefined) {
    return { status: 400, message: 'anthropic-version: header is required' }
  }
  return undefined
}

async function readBody(incoming: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of incoming) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

async function writeEvent(response: ServerResponse, sent: Sent): Promise<void> {
  if (!response.headersSent) {
    response.writeHead(200, {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-cache',
    })
  }
  const room = response.write(`event: ${sent.type}\ndata: ${JSON.stringify(sent)}\n\n`)
  // Each event leaves alone, so that a reader meets them as they would come over a network.
  if (room) await breathe()
  else await Promise.race([once(response, 'drain'), once(response, 'close')])
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(JSON.stringify(body))
}

async function closeServer(server: Server): Promise<void> {
  const closed = once(server, 'close')
  server.close()
  server.closeAllConnections()
  await closed
}

const OPTIONS = {
  script: { type: 'string' },
  port: { type: 'string', default: '0' },
  record: { type: 'string' },
} as const

/** Returns the exit code; without a mistake it serves on. */
async function serve(args: string[]): Promise<number> {
  const { SCRIPTS } = await import('./model-scripts.ts')
  const names = Object.keys(SCRIPTS)
  const usage = `usage: node test/src/model-server.ts --script NAME [--port N] [--record FILE]

  --script NAME   ${names.join(', ')}
  --port N        default 0: any free one
  --record FILE   keeps what was asked there, as JSON`
  return runProgram({ args, usage, options: OPTIONS }, async ({ values: { script: name, port, record } }) => {
    const script = SCRIPTS[oneOf('script', name, names)] ?? []
    const onChange = (state: ModelState): void => {
      if (record === undefined) return
      writeFileSync(`${record}.part`, JSON.stringify(state))
      renameSync(`${record}.part`, record)
    }
    const { url } = await startModelServer(script, { port: wholeNumber('port', port, 0), onChange })
    console.log(`model server: ${url}`)
    return 0
  })
}

if (import.meta.main) process.exitCode = await serve(process.argv.slice(2))
