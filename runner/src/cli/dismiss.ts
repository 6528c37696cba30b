/** `baton dismiss`: puts ended sessions out of sight on this machine, as the phone does on the phone. */
import { BatonError } from '@baton/shared/errors.ts'
import { hasEnded } from '@baton/shared/view/sessions.ts'
import { withAccount, type AccountView, type NamedSession } from './account.ts'
import { parseFor } from './args.ts'
import { dismiss, dismissedIn, putBack } from './dismissed.ts'
import { print, table } from './output.ts'
import { cleanLine } from './term/text.ts'

const SHORT = 8

/** Without arguments: lists what may go. With `--all` or by name: dismisses it, or with `--undo` puts it back. */
export async function dismissSessions(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('dismiss', args)
  const isBack = values.undo === true
  return withAccount(values.data, async (view) => {
    const [{ sessions }, gone] = await Promise.all([view.list(), dismissedIn(view.folder)])
    const may = sessions.filter((session) => hasEnded(session) && gone.has(session.sid) === isBack)
    const isListing = values.all !== true && positionals.length === 0
    const chosen = isListing || values.all === true ? may : await named(view, positionals)
    if (!isListing) {
      const sids = chosen.map(({ sid }) => sid)
      await (isBack ? putBack : dismiss)(view.folder, sids)
    }
    const rows = chosen.map(({ sid, status, named: { title } }) => ({ sid, status, title }))
    print(values.json, rows, textOf(rows, { isBack, isListing }))
    return 0
  })
}

type Row = Pick<NamedSession, 'sid' | 'status'> & { title: string }

function textOf(
  rows: readonly Row[],
  { isBack, isListing }: { isBack: boolean; isListing: boolean },
): string {
  if (rows.length === 0)
    return isBack ? 'None is dismissed here.' : 'None has ended that is not dismissed already.'
  if (isListing) {
    const cells = rows.map(({ sid, status, title }) => [sid.slice(0, SHORT), status, cleanLine(title)])
    const undo = isBack ? ' --undo' : ''
    const does = isBack ? 'Put them back' : 'Dismiss them'
    return `${table(['session', 'status', 'about'], cells)}\n${does}: baton dismiss${undo} --all`
  }
  const does = isBack ? 'is back' : 'is dismissed here'
  return rows.map(({ sid, title }) => `${sid.slice(0, SHORT)}  ${does}: ${cleanLine(title)}`).join('\n')
}

/** The named ones, each once. Throws BatonError `not-ended`, `no-session`, `which-session`. */
async function named(view: AccountView, names: readonly string[]): Promise<NamedSession[]> {
  const found = await view.findEach(names)
  for (const session of found) {
    if (hasEnded(session)) continue
    const { sid, status, named: about } = session
    throw new BatonError('not-ended', `(${sid.slice(0, SHORT)} is ${status}: ${cleanLine(about.title)})`)
  }
  return found
}
