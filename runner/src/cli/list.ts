/** `baton ls`: the sessions, once or as they change. */
import { BatonError } from '@baton/shared/errors.ts'
import type { RunnerInfo, SessionInfo } from '@baton/shared/protocol.ts'
import { isLeaving } from '@baton/shared/view/runners.ts'
import { ago } from '@baton/shared/view/units.ts'
import { inOrder, withAccount, type AccountView, type NamedRunner, type NamedSession } from './account.ts'
import { parseFor } from './args.ts'
import { print, table } from './output.ts'
import { cleanLine, cut } from './term/text.ts'
import { troublesOf, type Trouble } from './trouble.ts'

const SHORT = 8
const TITLE_COLUMNS_MIN = 12
/** Changes come in bursts; a picture shows a burst. */
const SETTLE_MS = 50

export async function listSessions(args: string[]): Promise<number> {
  const { values } = parseFor('ls', args)
  return withAccount(values.data, async (view) => {
    const { sessions, runners } = await view.list()
    const known = new Map(runners.map((runner) => [runner.device, runner]))
    if (values.watch === true) return watch(view, sessions, known, values.json === true)
    const ordered = inOrder(sessions)
    const troubles = await troublesOf(view, ordered)
    const rows = ordered.map((session) => rowOf(session, known, troubles.get(session.sid)))
    print(
      values.json,
      rows.map(({ row }) => row),
      textOf(rows),
    )
    return 0
  })
}

type Runners = ReadonlyMap<string, NamedRunner>
type Listing = ReturnType<typeof rowOf>

function rowOf(
  { sid, status, holder, seq, pending, named, changed_at }: NamedSession,
  runners: Runners,
  trouble?: Trouble,
) {
  const known = holder === undefined ? undefined : runners.get(holder)
  const runner = holder === undefined ? null : (known?.about.name ?? holder.slice(0, SHORT))
  const row = {
    sid,
    status,
    seq,
    pending,
    title: named.title,
    changed_at,
    runner,
    ...(trouble ? { trouble } : {}),
  }
  return { row, isLeaving: known !== undefined && isLeaving(known) }
}

function textOf(rows: readonly Listing[], columns = process.stdout.columns): string {
  const now = Date.now()
  const cells = rows.map(({ row: { sid, status, runner, changed_at, trouble }, isLeaving: leaving }) => {
    const where = `${cleanLine(runner ?? 'parked')}${leaving ? ', leaving' : ''}`
    return [sid.slice(0, SHORT), trouble ? 'error' : status, where, ago(changed_at, now)]
  })
  const widest = [0, 1, 2, 3].map((i) => Math.max(8, ...cells.map((row) => row[i]?.length ?? 0)) + 2)
  const taken = widest.reduce((sum, width) => sum + width, 0)
  const room = columns === undefined ? Infinity : Math.max(TITLE_COLUMNS_MIN, columns - taken)
  const lines = cells.map((row, i) => [...row, cut(cleanLine(aboutOf(rows[i])), room)])
  return table(['session', 'status', 'runner', 'since', 'about'], lines)
}

/** What keeps a session from going on, else what it is about. */
function aboutOf(listing: Listing | undefined): string {
  const { trouble, title = '' } = listing?.row ?? {}
  return trouble ? `${trouble.message} (${title})` : title
}

/** Until Ctrl-C. On a terminal the list is drawn again in its place. */
function watch(
  view: AccountView,
  first: readonly NamedSession[],
  known: Runners,
  json: boolean,
): Promise<number> {
  const sessions = new Map(first.map((session) => [session.sid, session]))
  const runners = new Map(known)
  const inPlace = process.stdout.isTTY && !json && process.env['TERM'] !== 'dumb'
  let height = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  const show = (): void => {
    timer = undefined
    const rows = inOrder([...sessions.values()]).map((session) => rowOf(session, runners))
    if (!inPlace) {
      print(
        json,
        rows.map(({ row }) => row),
        `${textOf(rows)}\n`,
      )
      return
    }
    const text = textOf(rows.slice(0, Math.max(1, process.stdout.rows - 2)))
    process.stdout.write(`${height > 0 ? `\x1b[${height}A\r` : ''}\x1b[J${text}\n`)
    height = text.split('\n').length
  }
  const change = (): void => void (timer ??= setTimeout(show, SETTLE_MS))
  const heard = {
    session: (session: SessionInfo) => sessions.set(session.sid, view.named(session)),
    runner: (runner: RunnerInfo) => runners.set(runner.device, view.namedRunner(runner)),
  }
  show()
  return new Promise((resolve, reject) => {
    const ends = [
      view.onNotice((notice) => {
        if (notice.t === 'session') heard.session(notice.session)
        else if (notice.t === 'runner') heard.runner(notice.runner)
        else return
        change()
      }),
      // What was missed while the connection was away comes with a new list.
      view.onState((state) => {
        if (state.at === 'refused') reject(new BatonError(state.code, state.message))
        if (state.at !== 'open') return
        view.list().then(({ sessions: all }) => {
          sessions.clear()
          for (const session of all) sessions.set(session.sid, session)
          change()
        }, reject)
      }),
    ]
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
      process.once(signal, () => {
        clearTimeout(timer)
        for (const end of ends) end()
        resolve(signal === 'SIGINT' ? 130 : 0)
      })
    }
  })
}
