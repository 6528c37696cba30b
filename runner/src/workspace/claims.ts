/**
 * Who works in a folder that is not a session's own. The note stays when a session parks: it is the last one that
 * worked there, and only that one may bring its files back into the folder.
 */
import { createHash } from 'node:crypto'
import { mkdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import * as v from 'valibot'
import { BatonError } from '@baton/shared/errors.ts'
import { replaceWhole } from '../files/replace.ts'

/** `born`: when the process began, so that a number used again is not taken for it. */
const Note = v.object({ sid: v.string(), pid: v.number(), born: v.optional(v.string()), open: v.boolean() })
type Note = v.InferOutput<typeof Note>

/** What this process holds; a note with our pid that is not in here is of an earlier process. */
const held = new Map<string, string>()

/** `admin`: the git folder; a folder without git is noted in the data folder. */
export function claimPlace(folder: { root: string; admin?: string; data: string }): string {
  if (folder.admin !== undefined) return join(folder.admin, 'baton-session.json')
  const name = createHash('sha256').update(folder.root).digest('hex').slice(0, 32)
  return join(folder.data, 'shadow', `${name}.json`)
}

export interface Claim {
  /** Gives the folder back. `unused`: nothing was done there, and what the note says stays. */
  release: (unused?: 'unused') => Promise<void>
  /** The session was here last and gave it back itself: what differs from its last checkpoint is not what a killed runner left. */
  wasClosed: boolean
}

/**
 * Claims a folder. `begin`: whoever worked there before, as long as nobody does now; else `workspace-in-use`. `return`: only when no
 * other session has worked there since; undefined otherwise.
 */
export async function claimFolder(
  place: string,
  sid: string,
  how: 'begin' | 'return',
  shown: string,
): Promise<Claim | undefined> {
  const note = await readNote(place)
  const holder = held.get(place) ?? (note?.open && (await isAlive(note)) ? note.sid : undefined)
  if (holder !== undefined && holder !== sid) {
    if (how === 'return') return undefined
    throw new BatonError('workspace-in-use', `(${shown}, session ${holder.slice(0, 8)})`)
  }
  if (how === 'return' && note && note.sid !== sid) return undefined
  held.set(place, sid)
  const mine = { sid, pid: process.pid, born: await bornOf(process.pid) }
  await writeNote(place, { ...mine, open: true })
  const release: Claim['release'] = async (unused) => {
    if (held.get(place) !== sid) return
    held.delete(place)
    const after = unused && note?.sid === sid ? note : { ...mine, open: unused !== undefined }
    await writeNote(place, after).catch(() => undefined)
  }
  return { release, wasClosed: note?.sid === sid && !note.open }
}

async function isAlive({ pid, born }: Note): Promise<boolean> {
  if (pid === process.pid) return false
  try {
    process.kill(pid, 0)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return false
  }
  return born === undefined || born === (await bornOf(pid))
}

/** Clock ticks since boot, field 22 of proc_pid_stat(5); undefined where there is no such file. */
async function bornOf(pid: number): Promise<string | undefined> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => undefined)
  return stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[19]
}

async function readNote(place: string): Promise<Note | undefined> {
  const text = await readFile(place, 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const parsed = v.safeParse(v.pipe(v.string(), v.parseJson(), Note), text)
  return parsed.success ? parsed.output : undefined
}

async function writeNote(place: string, note: Note): Promise<void> {
  await mkdir(dirname(place), { recursive: true })
  // Below .git others of the repository read it, too.
  await replaceWhole(place, JSON.stringify(note), { mode: 'kept' })
}
