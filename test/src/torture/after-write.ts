/**
 * Preloaded into a runner (`node --import`): ends it by SIGKILL right after it has put the file AFTER_WRITE, a path or the end of one, in
 * place for the AFTER_WRITE_COUNTth time, when the call that did so has no outcome yet. AFTER_WRITE_STORES=never: until then no
 * checkpoint is stored, as in a large repository.
 */
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { isMainThread } from 'node:worker_threads'
import { Checkpoints } from '@baton/runner/session/checkpoints.ts'

const { AFTER_WRITE: name, AFTER_WRITE_COUNT: nth = '1', AFTER_WRITE_STORES: stores } = process.env

if (isMainThread && name !== undefined) {
  let count = 0
  const { rename } = fs
  fs.rename = async (from, to) => {
    await rename(from, to)
    if (String(to).endsWith(`/${name}`) && ++count === Number(nth)) process.kill(process.pid, 'SIGKILL')
  }
  syncBuiltinESMExports()
  if (stores === 'never') Checkpoints.prototype.store = () => new Promise(() => undefined)
}
