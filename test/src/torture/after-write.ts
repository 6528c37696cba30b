/**
 * Preloaded into a runner (`node --import`): ends it by SIGKILL right after it has put the file named AFTER_WRITE in place, when the
 * call that did so has no outcome yet. AFTER_WRITE_STORES=never: until then no checkpoint is stored, as in a large repository.
 */
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { basename } from 'node:path'
import { isMainThread } from 'node:worker_threads'
import { Checkpoints } from '@baton/runner/session/checkpoints.ts'

const { AFTER_WRITE: name, AFTER_WRITE_STORES: stores } = process.env

if (isMainThread && name !== undefined) {
  const { rename } = fs
  fs.rename = async (from, to) => {
    await rename(from, to)
    if (basename(String(to)) === name) process.kill(process.pid, 'SIGKILL')
  }
  syncBuiltinESMExports()
  if (stores === 'never') Checkpoints.prototype.store = () => new Promise(() => undefined)
}
