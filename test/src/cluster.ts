/**
 * A relay with its own Redis, a repository and runners of one account, all of them real processes, and a model server that
 * outlives them, in the test's own: what takeover and fault tests need.
 */
import type { Mode } from '@baton/shared/guest.ts'
import { join } from 'node:path'
import { newAccount, newDevice, type Account, type Device } from '@baton/shared/keys.ts'
import { saveIdentity, saveRelay } from '@baton/runner/daemon/identity.ts'
import { TestClient } from './client.ts'
import { SCRIPTS } from './model-scripts.ts'
import { startModelServer, type ModelServer } from './model-server.ts'
import { alive, Ground, signal, type Model, type Relay } from './processes.ts'
import type { Process } from './process.ts'
import { makeRepo, type RepoOptions } from './repo.ts'
import { until } from './until.ts'

export interface ClusterRunner {
  name: string
  id: string
  device: Device
  data: string
  process: Process
}

export interface ClusterOptions {
  /** Name of a script in model-scripts.ts. */
  script: string
  repo?: RepoOptions
  /** Short, so that what waits for its end does not wait long. */
  lease_ms?: number
  env?: NodeJS.ProcessEnv
}

interface RunnerOptions {
  env?: NodeJS.ProcessEnv
  /** With `device`: the runner of an earlier start, again. */
  data?: string
  device?: Device
  /** Serves this folder instead of the cluster's repository. */
  workspace?: string
  args?: string[]
  node?: string[]
}

export class Cluster implements AsyncDisposable {
  readonly ground: Ground
  readonly relay: Relay
  readonly model: Omit<Model, 'process'>
  readonly repo: string
  readonly account: Account
  readonly client: TestClient
  readonly #server: ModelServer
  readonly #env: NodeJS.ProcessEnv

  private constructor(
    parts: Pick<Cluster, 'ground' | 'relay' | 'repo' | 'account' | 'client'>,
    server: ModelServer,
    env: NodeJS.ProcessEnv,
  ) {
    this.ground = parts.ground
    this.relay = parts.relay
    this.model = modelOf(server)
    this.repo = parts.repo
    this.account = parts.account
    this.client = parts.client
    this.#server = server
    this.#env = env
  }

  static async open({
    script,
    repo: repoOptions,
    lease_ms = 1500,
    env = {},
  }: ClusterOptions): Promise<Cluster> {
    const ground = await Ground.open()
    const repo = await ground.newFolder('repo')
    makeRepo(repo, repoOptions)
    const all = { BATON_LEASE_MS: String(lease_ms), BATON_HEARTBEAT_MS: '500', ...env }
    const turns = SCRIPTS[script]
    if (!turns) throw new Error(`no script ${script} in model-scripts.ts`)
    const [relay, server] = await Promise.all([ground.relay({ env: all }), startModelServer(turns)])
    const account = newAccount()
    const client = await TestClient.open(relay.url, account)
    return new Cluster({ ground, relay, repo, account, client }, server, all)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client[Symbol.asyncDispose]()
    await this.ground.close()
    await this.#server.close()
  }

  /** Starts a runner of the account and waits until it is announced. */
  async runner(name: string, options: RunnerOptions = {}): Promise<ClusterRunner> {
    const device = options.device ?? newDevice(this.account)
    const data = options.data ?? (await this.ground.newFolder(`runner-${name}`))
    await saveIdentity(data, { account: this.account, device })
    await saveRelay(data, { origin: this.relay.url })
    const { process } = await this.ground.runner({
      ...{ name, data, model: this.model },
      ...(options.node ? { node: options.node } : {}),
      env: { ...this.#env, ...options.env },
      args: ['--workspace', options.workspace ?? this.repo, ...(options.args ?? [])],
    })
    await process.waitFor(`${name} is announced`, async () =>
      (await this.client.link.ask('list', {})).runners.some(
        (known) => known.device === device.id && known.online,
      ),
    )
    return { name, id: device.id, device, data, process }
  }

  /** SIGKILL, and waits until it is gone. */
  async kill(runner: ClusterRunner): Promise<void> {
    signal(runner.process.pid, 'SIGKILL')
    await until(`${runner.name} is dead`, () => !alive(runner.process.pid))
  }

  /** Starts a session of the coder in the repository. */
  session(on: ClusterRunner, mode: Mode = 'ask'): Promise<string> {
    return this.client.start({ prefer: on.id }, { agent: 'coder', workspace: this.repo, mode })
  }

  worktree(runner: ClusterRunner, sid: string): string {
    return join(runner.data, 'worktrees', sid)
  }
}

/** As over HTTP: a state does not change once it is given. */
function modelOf({ url, state, open }: ModelServer): Cluster['model'] {
  return {
    url,
    state: async () => {
      const now = state()
      return { ...now, requests: now.requests.map((request) => ({ ...request })) }
    },
    open: async (gate) => open(gate),
  }
}
