/** Two runners in this process, a relay and Redis in their own, and the times at the seam between session loop and guest. */
import { newAccount, newDevice } from '@baton/shared/keys.ts'
import { createHands } from '@baton/runner/daemon/hands.ts'
import { Runner } from '@baton/runner/daemon/runner.ts'
import type { Harness } from '@baton/runner/harness.ts'
import { TestClient } from '../../client.ts'
import { Ground, type Relay } from '../../processes.ts'
import { makeRepo } from '../../repo.ts'
import { until } from '../../until.ts'

interface PairOptions {
  /** Files of the workspace. */
  files: number
  /** Instead of the built agents. */
  bundle?: Uint8Array
  /** A model server. */
  model?: { url: string }
  park_after_ms?: number
}

export class Pair implements AsyncDisposable {
  readonly ground: Ground
  readonly relay: Relay
  readonly repo: string
  readonly client: TestClient
  readonly runners: { runner: Runner; id: string }[] = []
  /** From a pause on one runner to the continuation on the other, in ms. */
  readonly blackouts: number[] = []
  /** When a restored guest last began to run: performance.now(). */
  running_at = 0
  #stopped_at = 0

  private constructor(ground: Ground, relay: Relay, repo: string, client: TestClient) {
    this.ground = ground
    this.relay = relay
    this.repo = repo
    this.client = client
  }

  static async open({ files, bundle, model, park_after_ms = 60_000 }: PairOptions): Promise<Pair> {
    const ground = await Ground.open()
    const [relay, repo] = [await ground.relay(), await ground.newFolder('repo')]
    makeRepo(repo, { files })
    const account = newAccount()
    const pair = new Pair(ground, relay, repo, await TestClient.open(relay.url, account))
    const env = model ? { ANTHROPIC_BASE_URL: model.url, ANTHROPIC_API_KEY: 'bench-key' } : {}
    for (const name of ['one', 'two']) {
      const device = newDevice(account)
      const data = await ground.newFolder(name)
      const hands = await createHands({
        ...{ data, folders: [repo], env, park_after_ms, finish_within_ms: 60_000 },
      })
      const { harness } = hands
      const runner = new Runner({
        ...{ origin: relay.url, account, device, name, pools: [], capacity: 4 },
        workspaces: [{ path: repo, name: 'repo' }],
        hands: {
          ...hands,
          ...(bundle ? { agent: async () => bundle } : {}),
          harness: (code) => pair.#timed(harness(code)),
        },
        log: () => undefined,
      })
      await runner.start()
      pair.runners.push({ runner, id: device.id })
    }
    await pair.client.online(2)
    return pair
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const { runner } of this.runners) await runner.drain(0)
    await this.client[Symbol.asyncDispose]()
    await this.ground.close()
  }

  /** Starts a session on the first runner and waits until its files are stored. */
  async session(agent: string): Promise<string> {
    const prefer = this.runners[0]?.id ?? ''
    const sid = await this.client.start({ prefer }, { agent, workspace: this.repo, mode: 'full' })
    await this.client.untilEntries(sid, 'the workspace is stored', (entries) =>
      entries.some(({ kind }) => kind === 'checkpoint'),
    )
    return sid
  }

  /** Moves a session that never rests, so many times, to and fro; gives the blackouts. */
  async moves(sid: string, count: number): Promise<number[]> {
    const from = this.blackouts.length
    for (let move = 1; move <= count; move++) {
      const before = this.blackouts.length
      const to = this.runners[move % 2]?.id ?? ''
      await this.client.command(sid, 'move', { label: 'other' }, { place: { prefer: to } })
      await until('it runs there', () => this.blackouts.length > before, { every_ms: 2 })
    }
    return this.blackouts.slice(from)
  }

  #timed(harness: Harness): Harness {
    let restored = false
    const pausing = async (pause: ReturnType<Harness['run']>): ReturnType<Harness['run']> => {
      const result = await pause
      this.#stopped_at = performance.now()
      return result
    }
    const begins = (): void => {
      if (!restored) return
      restored = false
      this.running_at = performance.now()
      this.blackouts.push(this.running_at - this.#stopped_at)
    }
    return {
      open: () => harness.open(),
      restore: (chain) => {
        restored = true
        return harness.restore(chain)
      },
      deliver: (message) => {
        begins()
        return pausing(harness.deliver(message))
      },
      run: () => {
        begins()
        return pausing(harness.run())
      },
      interrupt: () => harness.interrupt(),
      snapshot: (options) => harness.snapshot(options),
      close: () => harness.close(),
    }
  }
}
