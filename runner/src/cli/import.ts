/** `baton import`: a new session from a file that `baton export` made. */
import { BatonError } from '@baton/shared/errors.ts'
import { withAccount } from './account.ts'
import { parseFor } from './args.ts'
import { openCopyFile } from './copy-file.ts'
import { placeForCopy, startCopy } from './copying.ts'
import { untilStarted } from './started.ts'
import { print } from './output.ts'
import { askPassphrase } from './passphrase.ts'
import { cleanLine } from './term/text.ts'

export async function importSession(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('import', args)
  const [path = ''] = positionals
  return withAccount(values.data, async (view) => {
    const { account } = view.identity
    const file = await openCopyFile(path, account, () => askPassphrase('known'))
    if (!file.isOwn && values.trust !== true) throw new BatonError('copy-untrusted', `(${path})`)
    // Whole before anything of it is sent.
    const parts = file.parts()
    while ((await parts.next()).done !== true);
    const { where, label } = await placeForCopy(view, values.on)
    const { sid, head } = await startCopy(view, where, file.parts, (title) => `${title} (import)`)
    const started = await untilStarted(view, sid)
    const goes = started ? `goes on on ${label}` : `goes on when ${label} takes it`
    const told = `${sid}  ${head.meta.title}: ${head.entries} entries, ${head.blobs} blobs; ${goes}.`
    const { entries, blobs } = head
    print(values.json, { sid, origin: head.sid, entries, blobs, runner: label, started }, cleanLine(told))
    return 0
  })
}
