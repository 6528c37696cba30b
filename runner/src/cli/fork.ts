/** `baton fork`: the same session twice; both go on, each for itself. */
import { readCopy } from '@baton/shared/copy-read.ts'
import { withAccount } from './account.ts'
import { parseFor } from './args.ts'
import { copyPlace, placeForCopy, startCopy } from './copying.ts'
import { untilStarted } from './started.ts'
import { print } from './output.ts'
import { cleanLine } from './term/text.ts'

export async function fork(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('fork', args)
  const [name, ...words] = positionals
  const text = words.join(' ')
  return withAccount(values.data, async (view) => {
    const session = await view.find(name)
    const from = copyPlace(view, session.sid)
    const { where, label } = await placeForCopy(view, values.on, session)
    const { sid, head } = await startCopy(
      view,
      where,
      () => readCopy(from, session.named),
      (title) => `${title} (fork)`,
    )
    if (text !== '') await view.command(sid, 'prompt', { text })
    const started = await untilStarted(view, sid)
    const at = `as it stood at entry ${head.seq}`
    const goes = started ? `goes on on ${label}` : `goes on when ${label} takes it`
    const told = `${sid}  a copy of ${session.sid.slice(0, 8)}, ${at}; ${goes}.`
    print(values.json, { sid, origin: session.sid, seq: head.seq, runner: label, started }, cleanLine(told))
    return 0
  })
}
