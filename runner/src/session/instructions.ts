/** What a person and a repository ask of agents: AGENTS.md and CLAUDE.md at the top of the work tree, and the person's own. */
import { open, stat, type FileHandle } from 'node:fs/promises'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { utf8 } from '@baton/shared/bytes.ts'
import { innerPath } from '../tools/paths.ts'

/** Bytes of all of them together: they are part of every request to the model. */
const BYTES_MAX = 64 << 10
const NAMES = ['AGENTS.md', 'CLAUDE.md']

/**
 * The files' contents, each under a heading; undefined when there are none. `root`: of the work tree, if it is on the disk. Of two files of the same content one is told. What
 * can't be read is left out, what is too long is cut, and says so.
 */
export async function readInstructions(
  root: string | undefined,
  home = homedir(),
): Promise<string | undefined> {
  const files = [{ path: join(home, '.config/baton/AGENTS.md'), title: '~/.config/baton/AGENTS.md' }]
  for (const title of root === undefined ? [] : NAMES) {
    // A link that leads out of the work tree is no file of the repository.
    const inner = await innerPath(root ?? '', title, 'read').catch(() => undefined)
    if (inner) files.push({ path: inner.real, title })
  }
  const parts: string[] = []
  const seen = new Set<string>()
  let room = BYTES_MAX
  for (const { path, title } of files) {
    const { text, isCut } = await readStart(path, room)
    if (text.trim() === '' || seen.has(text.trim())) continue
    seen.add(text.trim())
    room -= utf8(text).length
    const end = isCut ? `\n[cut: together these files have more than ${BYTES_MAX >> 10} KB]` : ''
    parts.push(`# ${title}\n\n${text.trim()}${end}`)
  }
  return parts.length === 0 ? undefined : parts.join('\n\n')
}

async function readStart(path: string, bytes: number): Promise<{ text: string; isCut: boolean }> {
  const nothing = { text: '', isCut: false }
  let file: FileHandle | undefined
  try {
    // Opening a pipe would wait for whoever writes into it.
    const { size } = await stat(path).then((found) => (found.isFile() ? found : { size: 0 }))
    if (size === 0 || bytes <= 0) return nothing
    file = await open(path)
    const { buffer, bytesRead } = await file.read(Buffer.alloc(Math.min(size, bytes)), 0)
    // A character that was cut through is left out.
    const text = new TextDecoder().decode(buffer.subarray(0, bytesRead), { stream: size > bytes })
    return { text, isCut: size > bytes }
  } catch {
    return nothing
  } finally {
    await file?.close()
  }
}
