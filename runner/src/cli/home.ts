/** `baton home`: brings back the sessions that went on elsewhere while this machine slept. */
import { BatonError } from '@baton/shared/errors.ts'
import { agoWords } from '@baton/shared/view/units.ts'
import { namesOf, withAccount, type NamedRunner, type NamedSession } from './account.ts'
import { parseFor } from './args.ts'
import { print, table } from './output.ts'
import { cleanLine } from './term/text.ts'

const SHORT = 8

/** Without arguments: lists them. With `--all` or by name: moves them. Throws BatonError `runner-off`. */
export async function home(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('home', args)
  return withAccount(values.data, async (view) => {
    const listed = await view.list()
    const { sessions, runners } = listed
    const here = runners.find(({ device }) => device === view.identity.device.id)
    // Only while it runs it says what is away.
    if (!here?.online) throw new BatonError('runner-off', here && offSince(here))
    const away = (here.about.away ?? []).flatMap((sid) => sessions.filter((session) => session.sid === sid))
    const names = namesOf(listed)
    const whereOf = ({ holder }: NamedSession): string | null =>
      holder === undefined ? null : (names.get(holder) ?? holder.slice(0, SHORT))
    const rows = away.map((session) => {
      const { sid, status, named } = session
      return { sid, status, runner: whereOf(session), title: named.title }
    })
    if (values.all !== true && positionals.length === 0) {
      const lines = rows.map(({ sid, status, runner, title }) => [
        ...[sid.slice(0, SHORT), status, runner ?? 'parked'],
        cleanLine(title),
      ])
      const text = `${table(['session', 'status', 'where', 'about'], lines)}\nBring them home: baton home --all`
      print(values.json, rows, rows.length === 0 ? 'Nothing is away.' : text)
      return 0
    }
    const wanted = values.all === true ? away : await view.findEach(positionals)
    for (const { sid, place } of wanted) {
      const { pool } = place
      const where = { prefer: here.device, ...(pool === undefined ? {} : { pool }) }
      await view.command(sid, 'move', { label: here.about.name }, { place: where })
    }
    const moved = wanted.map(
      ({ sid, named }) => `${sid.slice(0, SHORT)}  comes home: ${cleanLine(named.title)}`,
    )
    print(
      values.json,
      wanted.map(({ sid }) => ({ sid, to: here.about.name })),
      moved.join('\n') || 'Nothing is away.',
    )
    return 0
  })
}

function offSince({ about, since }: NamedRunner): string {
  return `It is ${about.name}, last seen ${agoWords(since, Date.now())}.`
}
