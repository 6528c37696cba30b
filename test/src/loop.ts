/**
 * The session loop on real parts but for the guest and its hands: a real Redis and relay in this process, real runners, and
 * programs, tools and models given by the test.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Json, LlmResult, ToolSpec } from '@baton/shared/guest.ts'
import { newAccount, newDevice, type Device } from '@baton/shared/keys.ts'
import { startRelay, type RunningRelay } from '@baton/relay/main.ts'
import { startRedis, type RedisServer } from '@baton/relay/redis-server.ts'
import { Runner, type RunnerOptions } from '@baton/runner/daemon/runner.ts'
import type { Harness } from '@baton/runner/harness.ts'
import type { ModelRequest } from '@baton/runner/model/model.ts'
import type { Tool, ToolAnswer, ToolContext } from '@baton/runner/tools/tool.ts'
import { packOf } from '@baton/runner/workspace/pack-file.ts'
import type { Workspace } from '@baton/runner/workspace/workspace.ts'
import { pino } from 'pino'
import { TestClient } from './client.ts'
import { ScriptHarness, type Program } from './script-harness.ts'
import { until } from './until.ts'

const silent = pino({ level: 'silent' })

export interface TestTool {
  replay?: ToolSpec['replay']
  access?: ToolSpec['access']
  run: (
    input: Record<string, Json>,
    signal: AbortSignal,
    context: ToolContext,
  ) => Promise<string | ToolAnswer>
}

export interface LoopOptions {
  program: Program
  /** Instead of a program. */
  harness?: (bundle: Uint8Array) => Harness
  tools?: Record<string, TestTool>
  model?: (
    request: ModelRequest,
    options: { signal: AbortSignal; onText: (text: string) => void },
  ) => Promise<LlmResult>
  lease_ms?: number
  park_after_ms?: number
}

export class Loop implements AsyncDisposable {
  readonly account = newAccount()
  readonly options: LoopOptions
  readonly relay: RunningRelay
  readonly redis: RedisServer
  readonly folder: string
  readonly client: TestClient
  readonly logs: string[] = []
  readonly #runners: Runner[] = []

  private constructor(options: LoopOptions, redis: RedisServer, relay: RunningRelay, folder: string) {
    this.options = options
    this.redis = redis
    this.relay = relay
    this.folder = folder
    this.client = new TestClient(relay.url, this.account)
  }

  static async open(options: LoopOptions): Promise<Loop> {
    const folder = await mkdtemp(join(tmpdir(), 'baton-loop-'))
    const redis = await startRedis({ dataDir: folder, log: silent })
    const relay = await startRelay({
      ...{ redis: redis.path, port: 0, log: silent, sweep_ms: 100, offer_ms: 200 },
      ...{ lease_ms: options.lease_ms ?? 10_000, heartbeat_ms: 500 },
    })
    const loop = new Loop(options, redis, relay, folder)
    loop.client.link.connection.start()
    await loop.client.link.ready()
    return loop
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const runner of this.#runners) runner.close()
    await this.client[Symbol.asyncDispose]()
    await this.relay.close()
    await this.redis.close()
    await rm(this.folder, { recursive: true, force: true })
  }

  /** Starts a runner; its device id is given back with it. */
  async runner(
    name: string,
    change: Partial<RunnerOptions['hands']> = {},
    device = newDevice(this.account),
    { capacity = 8, turn_ms = 30_000 }: Partial<Pick<RunnerOptions, 'capacity' | 'turn_ms'>> = {},
  ): Promise<{ runner: Runner; id: string; device: Device }> {
    const runner = new Runner({
      ...{ origin: this.relay.url, account: this.account, device, name, pools: [], capacity, turn_ms },
      workspaces: [{ path: '/w', name: 'w' }],
      hands: { ...this.#hands(), ...change },
      log: (message) => this.logs.push(`${name}: ${message}`),
    })
    this.#runners.push(runner)
    await runner.start()
    await until(`${name} is announced`, async () =>
      (await this.client.link.ask('list', {})).runners.some(
        (known) => known.device === device.id && known.online,
      ),
    )
    return { runner, id: device.id, device }
  }

  /** Makes a session and starts it on a runner. */
  start(prefer: string): Promise<string> {
    return this.client.start({ prefer }, { agent: 'script', workspace: '/w' })
  }

  #hands(): RunnerOptions['hands'] {
    const { program, harness, tools = {}, model, park_after_ms = 60_000 } = this.options
    return {
      ...{ park_after_ms, finish_within_ms: 30_000, retry_base_ms: 10 },
      model: {
        name: 'rehearsal',
        call: (request, options) => {
          if (!model) throw new Error('this test has no model')
          return model(request, options)
        },
      },
      agent: async () => new Uint8Array([1, 2, 3]),
      harness: harness ?? (() => new ScriptHarness(program)),
      tools: async () => Object.entries(tools).map(([name, tool]) => toolOf(name, tool)),
      rules: async () => [],
      openWorkspace: async () => fakeWorkspace(),
      restoreWorkspace: async () => ({ workspace: fakeWorkspace() }),
    }
  }
}

export function toolOf(name: string, { replay = 'safe', access = 'read', run }: TestTool): Tool {
  return {
    spec: { name, description: name, schema: { type: 'object' }, replay, access },
    execute: async (input, context) => {
      const answer = await run(input, context.signal, context)
      return typeof answer === 'string' ? { text: answer, is_error: false } : answer
    },
  }
}

/** A workspace whose state never changes after its first checkpoint. */
function fakeWorkspace(): Workspace {
  let stored = false
  const oid = 'c'.repeat(40)
  return {
    root: '/w',
    checkpoint: async () => {
      if (stored) return undefined
      stored = true
      return { kind: 'git', commit: oid, tree: oid, head: oid, branch: 'main' }
    },
    pack: async () => packOf(new Uint8Array([1])),
    about: async () => ({ path: '/w', branch: 'main', platform: 'test' }),
    close: async () => undefined,
  }
}
