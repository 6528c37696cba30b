/** Rules for paths are held against what a path says; here also against where its links lead. */
import { realpath } from 'node:fs/promises'
import { relative, sep } from 'node:path'
import type { Json } from '@baton/shared/guest.ts'
import { innerPath } from './paths.ts'
import type { ToolContext } from './tool.ts'

/** Why a call with a path may not have what its links lead to; in words for the model. */
export async function objectionToLinks(
  input: { [key: string]: Json },
  { root, stay, objectionTo }: Pick<ToolContext, 'root' | 'stay' | 'objectionTo'>,
): Promise<string | undefined> {
  const { path } = input
  // Rules with paths are those of a folder's config; files in the session have none.
  if (typeof path !== 'string' || !objectionTo || stay?.files) return undefined
  // What is wrong with it, or that it leads out, the tool says itself.
  const place = await innerPath(root, path, 'read').catch(() => undefined)
  if (!place) return undefined
  const way =
    relative(await realpath(root), place.real)
      .split(sep)
      .join('/') || '.'
  if (way === place.shown) return undefined
  const objection = objectionTo({ ...input, path: way })
  return objection && `${place.shown} leads to ${way}. ${objection}`
}
