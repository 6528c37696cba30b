/**
 * A session disturbed after every entry of its journal: once by SIGKILL of its runner, once by a move; and by SIGKILL whenever a call
 * has put a file in place. Each time the other runner
 * finishes the same task, and everything that can be compared is compared with the undisturbed run (I1–I8).
 */
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Opened } from '@baton/shared/entries.ts'
import { newAccount, newDevice, type Account, type Device } from '@baton/shared/keys.ts'
import { transcriptOf, type TranscriptItem } from '@baton/shared/transcript.ts'
import { saveIdentity, saveRelay } from '@baton/runner/daemon/identity.ts'
import { TestClient } from '../client.ts'
import { Counters } from '../counters.ts'
import { startModelServer, type ModelServer } from '../model-server.ts'
import { alive, Ground, signal } from '../processes.ts'
import type { Process } from '../process.ts'
import { makeRepo, treeOf } from '../repo.ts'
import { until } from '../until.ts'
import { COMPACT_AFTER, PROMPTS, STEERED_TURN, STEERING, taskScript, WRITTEN } from './task.ts'

const AT_ENTRY = join(import.meta.dirname, 'at-entry.ts')
const AFTER_WRITE = join(import.meta.dirname, 'after-write.ts')
/** Short for kills: after each it has to run out. Long for moves: none may run out on a slow machine. */
const LEASE_MS: Record<How, number> = { kill: 1_000, write: 1_000, move: 20_000 }

/** `write`: killed when a file is in place of which no outcome tells yet. */
export type How = 'kill' | 'write' | 'move'

export interface Disturbance {
  how: How
  /** The entry after which it happens; for `write`: the how manieth write of the file. */
  at: number
}

/** What came of one run. */
interface Run {
  entries: Opened[]
  transcript: TranscriptItem[]
  tree: Record<string, string>
  requests: number
  counters: { probe: number; launch: number }
  repeated: number
}

export interface Verdict extends Disturbance {
  /** The preferred runner was started again: nothing was stored yet, so that no other could go on. */
  restarted: boolean
  violations: string[]
}

interface Runner {
  name: string
  device: Device
  data: string
  process: Process
}

export class Torture implements AsyncDisposable {
  readonly #ground: Ground
  readonly #origin: string
  readonly #model: ModelServer
  readonly #account: Account
  readonly #client: TestClient
  readonly #repo: string
  readonly #counters: Counters
  #other: Runner | undefined
  #undisturbed: Run | undefined
  #names = 0

  private constructor(parts: {
    ground: Ground
    origin: string
    model: ModelServer
    account: Account
    client: TestClient
    repo: string
    counters: Counters
  }) {
    this.#ground = parts.ground
    this.#origin = parts.origin
    this.#model = parts.model
    this.#account = parts.account
    this.#client = parts.client
    this.#repo = parts.repo
    this.#counters = parts.counters
  }

  static async open(how: How): Promise<Torture> {
    const ground = await Ground.open()
    const env = { BATON_LEASE_MS: String(LEASE_MS[how]), BATON_HEARTBEAT_MS: '500' }
    const [relay, model] = await Promise.all([ground.relay({ env }), startModelServer(taskScript)])
    const counters = new Counters(await ground.newFolder('counters'))
    counters.open('probe')
    counters.open('launch')
    const repo = await ground.newFolder('repo')
    makeRepo(repo, { extra: { 'baton.config.ts': counters.config() } })
    const account = newAccount()
    const client = await TestClient.open(relay.url, account)
    return new Torture({ ground, origin: relay.url, model, account, client, repo, counters })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client[Symbol.asyncDispose]()
    await this.#model.close()
    await this.#ground.close()
  }

  /** Runs the task undisturbed, as often as it takes to know what does not differ by itself. Gives the number of entries. */
  async measure(): Promise<number> {
    this.#other ??= await this.#runner('other')
    const { run } = await this.#run()
    this.#undisturbed = run
    return run.entries.length
  }

  /** Runs the task once more, disturbed, and compares. */
  async disturb(disturbance: Disturbance): Promise<Verdict> {
    const expected = this.#undisturbed
    if (!expected) throw new Error('measure first')
    try {
      const { run, restarted } = await this.#run(disturbance)
      return { ...disturbance, restarted, violations: violationsOf(run, expected, disturbance.how) }
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error)
      return { ...disturbance, restarted: false, violations: [`it did not finish: ${why}`] }
    }
  }

  async #run(disturbance?: Disturbance): Promise<{ run: Run; restarted: boolean }> {
    const before = this.#counts()
    const hold = await this.#ground.newFolder('hold')
    const [release, reached] = [join(hold, 'release'), join(hold, 'reached')]
    const hook = disturbance ? hookOf(disturbance, { release, reached }) : {}
    const first = await this.#runner(`first-${++this.#names}`, hook)
    const runners = [first]
    const sid = await this.#client.start(
      { prefer: first.device.id },
      { agent: 'coder', workspace: this.#repo, mode: 'ask' },
    )
    let restarted = false
    const over = new AbortController()
    const disturbing = async (): Promise<void> => {
      if (!disturbance) return
      if (disturbance.how === 'move') {
        await until('the entry is reached', () => existsSync(reached) || over.signal.aborted)
        const other = this.#other
        if (!other || over.signal.aborted) return
        await this.#client.command(sid, 'move', { label: 'other' }, { place: { prefer: other.device.id } })
        writeFileSync(release, '')
        return
      }
      await until('the runner is dead', () => !alive(first.process.pid) || over.signal.aborted)
      if (over.signal.aborted) return
      const entries = await this.#client.entries(sid)
      if (entries.some(({ kind }) => kind === 'checkpoint')) return
      restarted = true
      runners.push(await this.#runner(first.name, {}, first))
    }
    const disturbed = disturbing()
    try {
      const entries = await this.#drive(sid)
      over.abort()
      await disturbed
      const holder = await this.#holder(entries)
      const data = [...runners, this.#other].find((runner) => runner?.device.id === holder)?.data ?? ''
      const tree = await this.#settledTree(join(data, 'worktrees', sid))
      const after = this.#counts()
      return {
        restarted,
        run: {
          ...{ entries, tree, transcript: transcriptOf(entries) },
          requests: after.requests - before.requests,
          counters: { probe: after.probe - before.probe, launch: after.launch - before.launch },
          repeated: entries.reduce(
            (sum, entry) => sum + (entry.kind === 'outcome' ? (entry.body.repeated ?? 0) : 0),
            0,
          ),
        },
      }
    } finally {
      over.abort()
      writeFileSync(release, '')
      await disturbed.catch(() => undefined)
      for (const { process } of runners) signal(process.pid, 'SIGKILL')
    }
  }

  /** The work tree, when it is as expected; else as it is after a while: a guest runs before its files are there. */
  async #settledTree(folder: string): Promise<Record<string, string>> {
    const expected = JSON.stringify(this.#undisturbed?.tree)
    let tree: Record<string, string> = {}
    const settled = (): boolean => {
      tree = existsSync(folder) ? treeOf(folder) : {}
      return expected === undefined || JSON.stringify(tree) === expected
    }
    await until('the work tree is as expected', settled, { deadline_ms: 20_000 }).catch(() => undefined)
    return tree
  }

  /** Prompts, approves, and compacts, as a person would. Resolves with the journal when the last turn is over. */
  async #drive(sid: string): Promise<Opened[]> {
    for (const [i, text] of PROMPTS.entries()) {
      if (i === COMPACT_AFTER) {
        await this.#client.command(sid, 'compact', {})
        await this.#client.untilEntries(sid, 'the conversation is compacted', isCompacted)
        await this.#client.setMode(sid, 'edit', 0)
        await this.#client.untilEntries(
          sid,
          'the mode has changed',
          (entries) => received(entries, 'mode') === 1,
        )
      }
      await this.#client.command(sid, 'prompt', { text })
      let approved = new Set<number>()
      await until(`turn ${i + 1} is over`, async () => {
        const entries = await this.#client.poll(sid)
        for (const { effect, digest } of pendingOf(entries)) {
          if (approved.has(effect)) continue
          if (i === STEERED_TURN && approved.size === 0) await this.#steer(sid)
          approved = approved.add(effect)
          await this.#client.decide(sid, effect, digest)
        }
        return turnsOver(entries) > i
      })
    }
    await until('the session rests', async () => (await this.#client.info(sid)).status === 'idle')
    return this.#client.entries(sid)
  }

  async #steer(sid: string): Promise<void> {
    await this.#client.command(sid, 'prompt', { text: STEERING, steer: true })
    const prompts = STEERED_TURN + 2
    await this.#client.untilEntries(
      sid,
      'it is steered',
      (entries) => received(entries, 'prompt') === prompts,
    )
  }

  #counts(): { requests: number; probe: number; launch: number } {
    const { count } = this.#model.state()
    return { requests: count, probe: this.#counters.runs('probe'), launch: this.#counters.runs('launch') }
  }

  /** Device of the last runner that claimed the session. */
  async #holder(entries: Opened[]): Promise<string> {
    const claims = entries.flatMap((entry) =>
      entry.kind === 'lease' && entry.lease.change === 'claimed' ? [entry.lease.holder] : [],
    )
    return claims.at(-1) ?? ''
  }

  async #runner(name: string, env: NodeJS.ProcessEnv = {}, again?: Runner): Promise<Runner> {
    const device = again?.device ?? newDevice(this.#account)
    const data = again?.data ?? (await this.#ground.newFolder(`runner-${name}`))
    await saveIdentity(data, { account: this.#account, device })
    await saveRelay(data, { origin: this.#origin })
    const { process } = await this.#ground.runner({
      ...{ name, data, model: this.#model },
      env: { BATON_PARK_AFTER_MS: '60000', ...env },
      args: ['--workspace', this.#repo],
    })
    await process.waitFor(`${name} is announced`, async () =>
      (await this.#client.link.ask('list', {})).runners.some(
        (known) => known.device === device.id && known.online,
      ),
    )
    return { name, device, data, process }
  }
}

function hookOf({ how, at }: Disturbance, files: { release: string; reached: string }): NodeJS.ProcessEnv {
  if (how === 'write') {
    const { path } = WRITTEN
    return { NODE_OPTIONS: `--import=${AFTER_WRITE}`, AFTER_WRITE: path, AFTER_WRITE_COUNT: String(at) }
  }
  return {
    ...{ NODE_OPTIONS: `--import=${AT_ENTRY}`, TORTURE_AT: String(at) },
    ...{ TORTURE_HOW: how === 'kill' ? 'kill' : 'hold' },
    ...{ TORTURE_RELEASE: files.release, TORTURE_REACHED: files.reached },
  }
}

function pendingOf(entries: Opened[]): { effect: number; digest: string }[] {
  const open = new Map<number, { effect: number; digest: string }>()
  for (const entry of entries) {
    if (entry.kind === 'intent' && entry.body.approve) {
      open.set(entry.body.effect, { effect: entry.body.effect, digest: entry.body.approve.digest })
    } else if (entry.kind === 'outcome') open.delete(entry.body.effect)
  }
  return [...open.values()]
}

function turnsOver(entries: Opened[]): number {
  return entries.filter(
    (entry) => entry.kind === 'event' && entry.body.type === 'turn' && stateOf(entry.body.data) === 'end',
  ).length
}

const received = (entries: Opened[], kind: 'prompt' | 'mode'): number =>
  entries.filter((entry) => entry.kind === 'received' && entry.body.kind === kind).length

const isCompacted = (entries: Opened[]): boolean =>
  entries.some((entry) => entry.kind === 'event' && entry.body.type === 'compacted')

function stateOf(data: unknown): unknown {
  return typeof data === 'object' && data !== null && 'state' in data ? data.state : undefined
}

/** What must be as in the undisturbed run, and is not. */
export function violationsOf(run: Run, expected: Run, how: How): string[] {
  const found: string[] = []
  const seqs = run.entries.map(({ seq }) => seq)
  if (seqs.some((seq, i) => seq !== i + 1)) found.push('I2: the journal is not dense')
  const ended = run.entries.flatMap((entry) => (entry.kind === 'outcome' ? [entry.body.effect] : []))
  if (new Set(ended).size !== ended.length) found.push('I4: an effect has two outcomes')
  const prompts = run.transcript.filter(({ t }) => t === 'prompt').length
  if (prompts !== PROMPTS.length + 1) found.push(`I6: ${prompts} prompts were taken`)

  const { interrupted, differences } = compared(run.transcript, expected.transcript)
  found.push(...differences.map((text) => `I7: ${text}`))
  if (interrupted > (how === 'move' ? 0 : 1)) found.push(`I5: ${interrupted} calls were interrupted`)

  const trees = Object.keys({ ...run.tree, ...expected.tree }).filter(
    (path) => run.tree[path] !== expected.tree[path],
  )
  if (trees.length > 0) found.push(`I11: the work tree differs in ${trees.join(', ')}`)

  const extra = run.requests - expected.requests
  if (extra < 0 || extra > (how === 'move' ? 0 : 1)) found.push(`I8: ${extra} more model requests`)
  if (run.repeated < extra) found.push(`I8: ${extra} requests were repeated, ${run.repeated} are told`)

  const { probe, launch } = run.counters
  if (launch > 1) found.push(`I5: launched ${launch} times`)
  if (launch === 0 && interrupted === 0) found.push('I5: not launched')
  if (probe < 1 || probe > (how === 'move' ? 1 : 2)) found.push(`F18: probed ${probe} times`)
  return found
}

/** Compares item by item. A call whose result is "interrupted" counts as such and not as a difference. */
function compared(
  items: TranscriptItem[],
  expected: TranscriptItem[],
): { interrupted: number; differences: string[] } {
  let interrupted = 0
  const differences: string[] = []
  for (let i = 0; i < Math.max(items.length, expected.length); i++) {
    const [item, wanted] = [items[i], expected[i]]
    if (item?.t === 'tool' && wanted?.t === 'tool' && item.error?.code === 'interrupted') {
      interrupted++
      continue
    }
    // A model that was told of an interruption has read more.
    const counts = interrupted > 0 ? withoutCounts : undefined
    const [text, want] = [JSON.stringify(item, counts), JSON.stringify(wanted, counts)]
    if (text !== want) differences.push(`item ${i} is ${cut(text)}, not ${cut(want)}`)
  }
  return { interrupted, differences: differences.slice(0, 3) }
}

const COUNTS = new Set(['usage', 'cost_usd', 'before', 'after', 'tokens'])

function withoutCounts(key: string, value: unknown): unknown {
  if (COUNTS.has(key)) return undefined
  const tellsOfTokens = typeof value === 'string' && value.startsWith('The conversation was compacted')
  return tellsOfTokens ? 'The conversation was compacted.' : value
}

const cut = (text: string | undefined): string => (text ?? 'missing').slice(0, 300)
