/** `baton runners`: who may hold sessions, since when, with how much room, and what they hold. */
import { presenceWords, roomWords } from '@baton/shared/view/runners.ts'
import { ago } from '@baton/shared/view/units.ts'
import {
  inOrder,
  sessionLine,
  withAccount,
  type Listed,
  type NamedRunner,
  type NamedSession,
} from './account.ts'
import { parseFor } from './args.ts'
import { print, table } from './output.ts'
import { cleanLine, cut } from './term/text.ts'

const SHORT = 8
const START = 'Start one: baton up — or: baton runner --workspace DIR'

export async function listRunners(args: string[]): Promise<number> {
  const { values } = parseFor('runners', args)
  return withAccount(values.data, async (view) => {
    const rows = rowsOf(await view.list(), view.identity.device.id)
    print(
      values.json,
      rows.map(({ sessions, ...row }) => ({ ...row, sessions: sessions.map(sessionRow) })),
      textOf(rows, Date.now()),
    )
    return 0
  })
}

export interface RunnerRow {
  device: string
  name: string
  /** Is it the one of this machine? */
  here: boolean
  state: 'online' | 'leaving' | 'away'
  /** Milliseconds since 1970: when it came online, or went. */
  since: number
  held: number
  capacity: number
  pools: string[]
  platform: string
  model: string
  models: string[]
  workspaces: string[]
  sessions: NamedSession[]
}

/** That of this machine first, then those that are online, the newest first. `here`: the device of this machine. */
export function rowsOf(
  { runners, sessions }: Pick<Listed, 'runners' | 'sessions'>,
  here: string,
): RunnerRow[] {
  const rank = (runner: NamedRunner): number => (runner.device === here ? 0 : runner.online ? 1 : 2)
  return runners
    .toSorted((a, b) => rank(a) - rank(b) || b.since - a.since)
    .map((runner) => {
      const { device, since, held, capacity, about } = runner
      return {
        ...{ device, name: about.name, here: device === here, state: presenceWords(runner), since },
        ...{ held, capacity, pools: about.pools, platform: about.platform, model: about.model },
        models: about.models ?? [],
        workspaces: about.workspaces.map(({ path }) => path),
        sessions: inOrder(sessions.filter(({ holder }) => holder === device)),
      }
    })
}

/** Under each runner the sessions that it holds. `now`: milliseconds since 1970. */
export function textOf(rows: readonly RunnerRow[], now: number, columns = process.stdout.columns): string {
  if (rows.length === 0) return `There is no runner yet. ${START}`
  const head = ['runner', 'state', 'since', 'sessions', 'pools', 'model', 'folders']
  const cells = rows.map(({ name, here, state, since, held, capacity, pools, model, workspaces }) => [
    `${cleanLine(name)}${here ? ' (here)' : ''}`,
    ...[state, ago(since, now)],
    // One that is away has no room.
    state === 'away' ? '' : roomWords({ online: true, held, capacity }),
    ...[pools.join(', '), model, workspaces.join(', ')].map(cleanLine),
  ])
  const [first = '', ...lines] = table(head, cells, columns).split('\n')
  const held = rows.map(({ sessions }) =>
    sessions.map((session) => {
      const line = sessionLine(session, SHORT)
      return columns === undefined ? line : cut(line, columns)
    }),
  )
  const none = rows.some(({ state }) => state !== 'away') ? [] : ['', `None is online. ${START}`]
  return [first, ...lines.flatMap((line, i) => [line, ...(held[i] ?? [])]), ...none].join('\n')
}

function sessionRow({ sid, status, named }: NamedSession): unknown {
  return { sid, status, title: named.title }
}
