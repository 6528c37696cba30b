/** `baton ls`: the sessions, once or as they change. */
import { BatonError } from '@baton/shared/errors.ts'
import type { RunnerInfo, SessionInfo } from '@baton/shared/protocol.ts'
import { isLeaving } from '@baton/shared/view/runners.ts'
import { hasEnded } from '@baton/shared/view/sessions.ts'
import { ago } from '@baton/shared/view/units.ts'
import { inOrder, withAccount, type AccountView, type NamedRunner, type NamedSession } from './account.ts'
import { parseFor } from './args.ts'
import { dismissedIn } from './dismissed.ts'
import { print, table } from './output.ts'
import { cleanLine } from './term/text.ts'
import { troublesOf, type Trouble } from './trouble.ts'

const SHORT = 8
/** Changes come in bursts; a picture shows a burst. */
const SETTLE_MS = 50

export async function listSessions(args: string[]): Promise<number> {
  const { values } = parseFor('ls', args)
  return withAccount(values.data, async (view) => {
    const [{ sessions, runners }, gone] = await Promise.all([view.list(), dismissedIn(view.folder)])
    const showing: Showing = { gone, all: values.all === true, json: values.json === true }
    const known = new Map(runners.map((runner) => [runner.device, runner]))
    if (values.watch === true) return watch(view, sessions, known, showing)
    const ordered = inOrder(sessions)
    const looked = showing.json ? ordered : ordered.filter(({ sid }) => isShown(sid, showing))
    const troubles = await troublesOf(view, looked)
    show(
      ordered.map((session) => rowOf(session, known, gone, troubles.get(session.sid))),
      showing,
    )
    return 0
  })
}

type Runners = ReadonlyMap<string, NamedRunner>
type Listing = ReturnType<typeof rowOf>

interface Showing {
  /** Those that were dismissed here. */
  gone: ReadonlySet<string>
  all: boolean
  json: boolean
}

function isShown(sid: string, { gone, all }: Showing): boolean {
  return all || !gone.has(sid)
}

function rowOf(
  { sid, status, holder, seq, pending, named, changed_at }: NamedSession,
  runners: Runners,
  gone: ReadonlySet<string>,
  trouble?: Trouble,
) {
  const known = holder === undefined ? undefined : runners.get(holder)
  const runner = holder === undefined ? null : (known?.about.name ?? holder.slice(0, SHORT))
  const row = {
    ...{ sid, status, seq, pending, title: named.title, changed_at, runner },
    ...(trouble ? { trouble } : {}),
    ...(gone.has(sid) ? { dismissed: true } : {}),
  }
  return { row, isLeaving: known !== undefined && isLeaving(known) }
}

function show(rows: readonly Listing[], showing: Showing, end = ''): void {
  const text = [tableOf(rows, showing), ...footOf(rows, showing)].join('\n') + end
  print(
    showing.json,
    rows.map(({ row }) => row),
    text,
  )
}

function tableOf(all: readonly Listing[], showing: Showing): string {
  const now = Date.now()
  const rows = all.filter(({ row }) => isShown(row.sid, showing))
  if (all.length === 0) return 'No session yet. Begin one: baton new PROMPT'
  if (rows.length === 0) return 'Nothing but what was dismissed.'
  const cells = rows.map(({ row, isLeaving: leaving }) => {
    const { sid, status, runner, changed_at, trouble } = row
    const where = `${cleanLine(runner ?? (hasEnded(row) ? '' : 'parked'))}${leaving ? ', leaving' : ''}`
    const state = trouble && status !== 'failed' ? 'error' : status
    return [sid.slice(0, SHORT), state, where, ago(changed_at, now), cleanLine(aboutOf(row))]
  })
  return table(['session', 'status', 'runner', 'since', 'about'], cells)
}

/** What keeps a session from going on, else what it is about. */
function aboutOf({ trouble, title }: Listing['row']): string {
  return trouble ? `${trouble.message} (${title})` : title
}

/** What else there is, or can be done. */
function footOf(rows: readonly Listing[], showing: Showing): string[] {
  const hidden = rows.filter(({ row }) => !isShown(row.sid, showing)).length
  const ended = rows.filter(({ row }) => hasEnded(row) && !showing.gone.has(row.sid)).length
  return [
    ...(ended > 0 ? [`${ended} ended; out of this list: baton dismiss --all`] : []),
    ...(hidden > 0 ? [`${hidden} dismissed here: baton ls --all`] : []),
  ]
}

/** Until Ctrl-C. On a terminal the list is drawn again in its place. */
function watch(
  view: AccountView,
  first: readonly NamedSession[],
  known: Runners,
  showing: Showing,
): Promise<number> {
  const sessions = new Map(first.map((session) => [session.sid, session]))
  const runners = new Map(known)
  const inPlace = process.stdout.isTTY && !showing.json && process.env['TERM'] !== 'dumb'
  let height = 0
  let timer: ReturnType<typeof setTimeout> | undefined
  const draw = (): void => {
    timer = undefined
    const rows = inOrder([...sessions.values()]).map((session) => rowOf(session, runners, showing.gone))
    if (!inPlace) return show(rows, showing, '\n')
    const shown = rows.filter(({ row }) => isShown(row.sid, showing))
    const text = tableOf(shown.slice(0, Math.max(1, process.stdout.rows - 2)), showing)
    process.stdout.write(`${height > 0 ? `\x1b[${height}A\r` : ''}\x1b[J${text}\n`)
    height = text.split('\n').length
  }
  const change = (): void => void (timer ??= setTimeout(draw, SETTLE_MS))
  const heard = {
    session: (session: SessionInfo) => sessions.set(session.sid, view.named(session)),
    runner: (runner: RunnerInfo) => runners.set(runner.device, view.namedRunner(runner)),
  }
  draw()
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
        view.list().then((all) => {
          sessions.clear()
          for (const session of all.sessions) sessions.set(session.sid, session)
          for (const runner of all.runners) runners.set(runner.device, runner)
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
