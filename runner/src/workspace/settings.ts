/** The `workspace` settings of baton.config.ts. */
import * as v from 'valibot'
import { BatonError } from '@baton/shared/errors.ts'

/** A path or glob pattern below the top of the workspace. */
const CarryPath = v.pipe(
  v.string(),
  v.minLength(1),
  v.check(
    (path) => !path.startsWith('/') && !path.split('/').includes('..') && !path.includes('\0'),
    'must be a path inside the workspace',
  ),
)

export const WorkspaceSettings = v.strictObject({
  /**
   * Where a session works on the machine where it begins: in a git work tree of its own, or in the person's own folder. A
   * folder without git is always worked on in place. On other machines a session has a folder of its own.
   */
  place: v.optional(v.picklist(['worktree', 'in-place']), 'worktree'),
  /** Ignored files that travel all the same: paths, or patterns with `*` and `**`. `.env` only when named exactly. */
  carry: v.optional(v.array(CarryPath), []),
  /** A command line that makes a fresh folder ready for work, say `npm ci`. Runs again when it or a lock file changed. */
  setup: v.optional(v.pipe(v.string(), v.minLength(1))),
})
export interface WorkspaceSettings {
  place: 'worktree' | 'in-place'
  carry: string[]
  setup?: string | undefined
}

export const DEFAULT_SETTINGS: WorkspaceSettings = { place: 'worktree', carry: [] }

/** Where a start command wants its session to work; undefined: as the config says. Throws BatonError `bad-input`. */
export function placeOf(
  settings: Record<string, unknown> | undefined,
): WorkspaceSettings['place'] | undefined {
  const place = settings?.['place']
  if (place === undefined) return undefined
  const parsed = v.safeParse(v.picklist(['worktree', 'in-place']), place)
  if (!parsed.success) throw new BatonError('bad-input', `(place: ${JSON.stringify(place)})`)
  return parsed.output
}
