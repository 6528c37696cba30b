/** `baton export`: a session as one file. */
import { readCopy } from '@baton/shared/copy-read.ts'
import { BatonError } from '@baton/shared/errors.ts'
import { size } from '@baton/shared/view/units.ts'
import { withAccount } from './account.ts'
import { parseFor, refuseExisting } from './args.ts'
import { writeCopyFile, type Sealing } from './copy-file.ts'
import { again, copyPlace } from './copying.ts'
import { print } from './output.ts'
import { askPassphrase } from './passphrase.ts'

const TRIES = 3

export async function exportSession(args: string[]): Promise<number> {
  const { values, positionals } = parseFor('export', args)
  const [name, file = ''] = positionals
  if (values.plain === true && values.passphrase === true) {
    throw new BatonError('usage', 'Give --plain or --passphrase, not both.')
  }
  refuseExisting(file)
  return withAccount(values.data, async (view) => {
    const session = await view.find(name)
    const { account } = view.identity
    const sealing: Sealing =
      values.plain === true
        ? { sealed: 'plain' }
        : values.passphrase === true
          ? { sealed: 'passphrase', passphrase: await askPassphrase('new') }
          : { sealed: 'account', account }
    const from = copyPlace({ link: view.link, account }, session.sid)
    const written = await again(TRIES, () =>
      writeCopyFile(file, () => readCopy(from, session.named), sealing),
    )
    const { entries, blobs, bytes } = written
    const how = {
      account: 'sealed for this account',
      passphrase: 'sealed by a passphrase',
      plain: 'not sealed',
    }
    const told = `${file}: ${entries} entries, ${blobs} blobs, ${size(bytes)}, ${how[sealing.sealed]}; read again and whole.`
    print(values.json, { sid: session.sid, file, ...written, sealed: sealing.sealed }, told)
    return 0
  })
}
