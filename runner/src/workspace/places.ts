/** Where a session's files and what is known of them lie on this machine, and how far the making of them got. */
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import * as v from 'valibot'
import { replaceWhole } from '../files/replace.ts'
import { GitProgram } from './git-program.ts'
import { moveAside } from './move-aside.ts'

/** Where a session's files are on this machine, once it has been here. */
const Place = v.object({ root: v.string(), inPlace: v.boolean(), kind: v.picklist(['git', 'folder']) })
export type Place = v.InferOutput<typeof Place>

export interface Here {
  git: GitProgram
  sid: string
  data: string
  /** A folder of the session's own. */
  root: string
  shadow: string
}

export function placesOf({ data, sid, git }: { data: string; sid: string; git?: string }): Here {
  const root = join(data, 'worktrees', sid)
  return { git: new GitProgram(git), sid, data, root, shadow: join(data, 'checkpoints', sid) }
}

export async function readPlace(here: Here): Promise<Place | undefined> {
  if (existsSync(join(here.shadow, 'making'))) return undefined
  const text = await readFile(join(here.shadow, 'place.json'), 'utf8').catch(() => undefined)
  if (text !== undefined) {
    const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), Place), text)
    return parsed.success ? parsed.output : undefined
  }
  // As 0.1 noted it.
  const stage = await readFile(join(here.shadow, 'stage'), 'utf8').catch(() => '')
  return stage === 'ready' ? { root: here.root, inPlace: false, kind: 'git' } : undefined
}

/**
 * How far the making of a work tree got: a half-made one is never taken for whole, and nobody has worked in it. Returns sentences for the
 * person.
 */
export async function makeRoom(here: Here): Promise<string[]> {
  const isHalfMade = existsSync(join(here.shadow, 'making'))
  if (isHalfMade) await rm(here.root, { recursive: true, force: true })
  const kept = isHalfMade ? undefined : await moveAside(here.root)
  await rm(here.shadow, { recursive: true, force: true })
  await mkdir(here.shadow, { recursive: true })
  await writeFile(join(here.shadow, 'making'), '')
  return kept === undefined
    ? []
    : [`What was in ${here.root}, and is not known to be the session's, is kept in ${kept}.`]
}

export async function markReady(here: Here, place: Place): Promise<void> {
  await replaceWhole(join(here.shadow, 'place.json'), JSON.stringify(place), { sync: 'file' })
  await rm(join(here.shadow, 'making'), { force: true })
}
