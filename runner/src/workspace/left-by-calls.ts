/** What calls of the agent left that were cut off: known from their notes, and done again by the session. */
import { sha256Hex } from '@baton/shared/bytes.ts'
import type { FileChange } from '../tools/attempts.ts'
import { bytePath, shownPath } from './byte-paths.ts'
import type { Shadow } from './shadow.ts'

const ORDINARY = '100644'

/**
 * Is each of these files in tree `here` just what a call made of it as it is in tree `known`? Then nobody else had a hand in it. One that
 * the call did not find as it is in `known` may hold what somebody else wrote.
 */
export async function areLeftByCalls(
  shadow: Shadow,
  changes: readonly FileChange[],
  paths: readonly string[],
  { known, here }: { known: string; here: string },
): Promise<boolean> {
  const byPath = new Map(changes.map((change) => [bytePath(change.path), change]))
  for (const path of paths) {
    const change = byPath.get(path)
    if (!change) return false
    const [was, is] = await Promise.all([fileIn(shadow, known, path), fileIn(shadow, here, path)])
    if (is?.sha256 !== change.after || (was?.sha256 ?? 'none') !== change.before) return false
    if (is.mode !== (was?.mode ?? ORDINARY)) return false
  }
  return true
}

async function fileIn(
  shadow: Shadow,
  tree: string,
  path: string,
): Promise<{ mode: string; sha256: string } | undefined> {
  const line = await shadow.text(['ls-tree', '-z', '--full-tree', tree, '--', shownPath(path)])
  const [, mode = '', oid = ''] = /^(\d+) blob ([0-9a-f]+)\t/.exec(line) ?? []
  if (oid === '') return undefined
  return { mode, sha256: sha256Hex(await shadow.run(['cat-file', 'blob', oid])) }
}
