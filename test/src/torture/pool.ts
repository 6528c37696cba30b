/**
 * Many sessions on one runner that has room for few: all finish, in the order in which they came, and nobody waits for ever.
 * Relay, Redis, runner and model are processes of their own.
 */
import type { Opened } from '@baton/shared/entries.ts'
import { Cluster } from '../cluster.ts'
import { until } from '../until.ts'

export interface PoolVerdict {
  sessions: number
  capacity: number
  /** Times between the moment at which a session could have run and its claim, all of them. */
  longest_wait_ms: number
  median_wait_ms: number
  took_ms: number
  /** The most sessions that the runner held at once. */
  held: number
  /** The most that came later and were taken earlier, of any session. */
  overtaken: number
  requests: number
  violations: string[]
}

/** Requests of the script `task`, for each session. */
const REQUESTS = 3

export async function pool({
  sessions,
  capacity,
}: {
  sessions: number
  capacity: number
}): Promise<PoolVerdict> {
  await using cluster = await Cluster.open({ script: 'task', lease_ms: 10_000 })
  const { client } = cluster
  const runner = await cluster.runner('pool-1', { args: ['--pool', 'cloud', '--capacity', String(capacity)] })
  const began_at = Date.now()
  const sent: { sid: string; at: number }[] = []
  for (let i = 0; i < sessions; i++) {
    const at = Date.now()
    const sid = await cluster.session(runner, 'full')
    await client.command(sid, 'prompt', { text: `Count the lines, please. You are number ${i}.` })
    sent.push({ sid, at })
  }
  const through = new Set<string>()
  await until(
    'every session is through',
    async () => {
      for (const info of (await client.link.ask('list', {})).sessions) {
        const rests = info.status === 'idle' && info.pending === 0
        if (
          !through.has(info.sid) &&
          (rests || info.status === 'failed') &&
          isThrough(await client.entries(info.sid))
        )
          through.add(info.sid)
      }
      return through.size === sessions
    },
    { deadline_ms: 60_000 + 5_000 * sessions, every_ms: 200 },
  ).catch(() => undefined)
  const took_ms = Date.now() - began_at
  const journals = await Promise.all(
    sent.map(async ({ sid, at }) => ({ sid, at, entries: await client.entries(sid) })),
  )
  const { requests } = await cluster.model.state()
  const verdict = judge(journals, sessions, capacity)
  if (requests.length !== REQUESTS * sessions)
    verdict.violations.push(`${requests.length} model requests instead of ${REQUESTS * sessions}`)
  for (const { n, end } of requests)
    if (end !== 'answered') verdict.violations.push(`request ${n} was ${end}`)
  return { ...verdict, took_ms, requests: requests.length }
}

interface Journal {
  sid: string
  /** When it was begun. */
  at: number
  entries: Opened[]
}

function judge(
  journals: Journal[],
  sessions: number,
  capacity: number,
): Omit<PoolVerdict, 'took_ms' | 'requests'> {
  const violations: string[] = []
  const waits = journals.flatMap(waitsOf).toSorted((a, b) => a - b)
  const firsts = journals.map(({ entries }) => entries.find(isClaim)?.at ?? Number.POSITIVE_INFINITY)
  const overtaken = Math.max(
    ...firsts.map((at, i) => firsts.filter((other, j) => j > i && other < at).length),
  )
  const held = heldAtOnce(journals)
  for (const { sid, entries } of journals) {
    if (
      !entries.some((entry) => entry.kind === 'outcome' && JSON.stringify(entry.body).includes('was counted'))
    )
      violations.push(`${sid} did not finish`)
    const bash = entries.filter((entry) => entry.kind === 'intent' && entry.body.tool?.name === 'bash')
    if (bash.length !== 1) violations.push(`${sid} ran its command ${bash.length} times`)
  }
  if (held > capacity) violations.push(`${held} sessions were held at once`)
  if (overtaken > capacity) violations.push(`a session was overtaken by ${overtaken} that came later`)
  return {
    ...{ sessions, capacity, held, overtaken, violations },
    longest_wait_ms: waits.at(-1) ?? 0,
    median_wait_ms: waits[Math.floor(waits.length / 2)] ?? 0,
  }
}

/** The model's last words in the script `task`. */
const isThrough = (entries: Opened[]): boolean =>
  entries.some((entry) => entry.kind === 'outcome' && JSON.stringify(entry.body).includes('was counted'))

const isClaim = (entry: Opened): boolean => entry.kind === 'lease' && entry.lease.change === 'claimed'

/** All commands are there from the beginning, so whenever nobody holds an unfinished session, it waits. */
function waitsOf({ at, entries }: Journal): number[] {
  let since = at
  return entries.flatMap((entry) => {
    if (entry.kind !== 'lease') return []
    const wait = entry.at - since
    since = entry.at
    return entry.lease.change === 'claimed' ? [wait] : []
  })
}

function heldAtOnce(journals: Journal[]): number {
  const changes = journals
    .flatMap(({ entries }) => entries.filter((entry) => entry.kind === 'lease'))
    .map((entry) => ({ at: entry.at, by: isClaim(entry) ? 1 : -1 }))
    .toSorted((a, b) => a.at - b.at || a.by - b.by)
  let now = 0
  return Math.max(0, ...changes.map(({ by }) => (now += by)))
}

/** In one line, for people. */
export function poolLine(verdict: PoolVerdict): string {
  const { sessions, capacity, longest_wait_ms, median_wait_ms, took_ms, overtaken, violations } = verdict
  const seconds = (ms: number): string => `${(ms / 1000).toFixed(1)} s`
  return (
    `${sessions} sessions on one runner of capacity ${capacity}: all through after ${seconds(took_ms)}, largest wait ` +
    `${seconds(longest_wait_ms)} (half of them under ${seconds(median_wait_ms)}), overtaken by at most ${overtaken}, ` +
    `${violations.length} violations`
  )
}
