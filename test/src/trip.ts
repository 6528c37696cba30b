/** A session of the coder that does errands (script `errand`) and travels between the runners of a cluster. */
import type { Opened } from '@baton/shared/entries.ts'
import type { Json, Mode } from '@baton/shared/guest.ts'
import type { Cluster, ClusterRunner } from './cluster.ts'
import { until } from './until.ts'

export class Trip {
  readonly cluster: Cluster
  readonly sid: string

  private constructor(cluster: Cluster, sid: string) {
    this.cluster = cluster
    this.sid = sid
  }

  static async begin(
    cluster: Cluster,
    on: ClusterRunner,
    settings?: Record<string, Json>,
    mode: Mode = 'full',
    workspace = cluster.repo,
  ): Promise<Trip> {
    const start = { agent: 'coder', workspace, mode, ...(settings ? { settings } : {}) }
    const trip = new Trip(cluster, await cluster.client.start({ prefer: on.id }, start))
    await cluster.client.untilEntries(trip.sid, 'its files are stored', (entries) =>
      entries.some(({ kind }) => kind === 'checkpoint'),
    )
    return trip
  }

  /** Sends an errand; resolves with the id of the command. */
  ask(errand: string): Promise<string> {
    return this.cluster.client.command(this.sid, 'prompt', { text: errand })
  }

  /** Sends an errand and waits until its turn is over. Gives what the tool said, `error: CODE` when it gave an error. */
  async errand(text: string): Promise<string> {
    return this.over(await this.ask(text))
  }

  /** Waits until the turn of a prompt is over. Gives what its tool said. */
  async over(prompt: string): Promise<string> {
    const entries = await this.cluster.client.untilEntries(this.sid, 'the turn is over', (all) => {
      const turn = since(all, prompt)
      return turn.some(
        (entry) => entry.kind === 'intent' && entry.body.kind === 'prompt' && !entry.body.prompt?.steer,
      )
    })
    const turn = since(entries, prompt)
    const tools = turn.flatMap((entry) =>
      entry.kind === 'intent' && entry.body.kind === 'tool' ? [entry.body.effect] : [],
    )
    const outcome = turn.find((entry) => entry.kind === 'outcome' && tools.includes(entry.body.effect))
    if (outcome?.kind !== 'outcome') throw new Error('no tool ran in this turn')
    const { error, result, blob } = outcome.body
    if (error) return `error: ${error.code}`
    if (blob) return `${blob.head}…${blob.tail}`
    return (result as { text: string }).text
  }

  async move(to: ClusterRunner): Promise<void> {
    const { client } = this.cluster
    await client.command(this.sid, 'move', { label: to.name }, { place: { prefer: to.id } })
    await until(`it is on ${to.name}`, async () => (await client.info(this.sid)).holder === to.id)
  }

  /** What people were told, in order. */
  async notices(): Promise<string[]> {
    return (await this.cluster.client.entries(this.sid)).flatMap((entry) =>
      entry.kind === 'event' && entry.body.type === 'notice'
        ? [(entry.body.data as { message: string }).message]
        : [],
    )
  }

  root(on: ClusterRunner): string {
    return this.cluster.worktree(on, this.sid)
  }
}

/** All that follows the entry that took a command. */
function since(entries: Opened[], command: string): Opened[] {
  const at = entries.findIndex((entry) => entry.kind === 'received' && entry.body.id === command)
  return at === -1 ? [] : entries.slice(at + 1)
}
