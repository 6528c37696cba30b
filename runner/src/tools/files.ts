/** Reading and replacing whole files. */
import { constants } from 'node:fs'
import { mkdir, open, type FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { sha256Hex } from '@baton/shared/bytes.ts'
import { replaceWhole } from '../files/replace.ts'
import { Refusal } from './define.ts'
import type { InnerPath } from './paths.ts'
import type { ToolContext } from './tool.ts'

/** Bytes of a file that is read into memory. */
export const FILE_BYTES = 16 << 20
const SNIFF_BYTES = 8_192

export interface FileText {
  bytes: Buffer
  /** Without the byte order mark. */
  text: string
  bom: boolean
}

/** Undefined when there is no file. Throws Refusal for a folder, a device, a file that is too large. */
export async function readBytes({ real, shown }: InnerPath): Promise<Buffer | undefined> {
  let file: FileHandle
  try {
    // Without O_NONBLOCK, opening a named pipe waits for a writer for ever.
    file = await open(real, constants.O_RDONLY | constants.O_NONBLOCK)
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw refusalOf(error, shown)
  }
  try {
    const info = await file.stat()
    if (info.isDirectory()) throw new Refusal(`${shown} is a folder. List it with glob: ${shown}/*`)
    if (!info.isFile()) throw new Refusal(`${shown} is not an ordinary file.`)
    if (info.size > FILE_BYTES) {
      const size = `${(info.size / (1 << 20)).toFixed(1)} MB`
      throw new Refusal(
        `${shown} is too large (${size}). Use grep, or bash with sed -n 'FROM,TOp'.`,
        'too-large',
      )
    }
    return await file.readFile()
  } finally {
    await file.close()
  }
}

/** A file as text. Throws Refusal for what is none. `exact`: also when it is not valid UTF-8. */
export function textOf(bytes: Buffer, path: InnerPath, options: { exact: boolean }): FileText {
  if (bytes.subarray(0, SNIFF_BYTES).includes(0)) {
    const todo = 'It can not be shown as text; examine it with bash (file, xxd, strings).'
    throw new Refusal(`${path.shown} is a binary file of ${bytes.length} bytes. ${todo}`)
  }
  const bom = bytes.subarray(0, 3).equals(Buffer.from([0xef, 0xbb, 0xbf]))
  try {
    return { bytes, bom, text: new TextDecoder('utf-8', { fatal: options.exact }).decode(bytes) }
  } catch {
    throw new Refusal(`${path.shown} is not UTF-8 text. Change it with bash, so that its other bytes stay.`)
  }
}

/**
 * Replaces a file's content at once: a reader or a crash sees the old or the new, never a half. Keeps the mode of a file
 * that exists, makes missing folders.
 */
export async function replaceFile({ real, shown }: InnerPath, bytes: Uint8Array): Promise<void> {
  try {
    await mkdir(dirname(real), { recursive: true })
    // As any command that writes a file: what a power failure takes back, a session that goes on from its checkpoint does again.
    await replaceWhole(real, bytes, { mode: 'kept', sync: 'file' })
  } catch (error) {
    throw refusalOf(error, shown)
  }
}

/** Remembers what the session knows of a file. */
export function noteFile(context: ToolContext, path: InnerPath, bytes: Uint8Array): void {
  context.readFiles.set(path.real, sha256Hex(bytes))
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined
}

function refusalOf(error: unknown, shown: string): unknown {
  switch (codeOf(error)) {
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
      return new Refusal(`The runner may not access ${shown}: permission denied.`)
    case 'ENOTDIR':
    case 'EEXIST':
      return new Refusal(`A part of the path ${shown} is a file, not a folder.`)
    case 'EISDIR':
      return new Refusal(`${shown} is a folder.`)
    case 'ENAMETOOLONG':
      return new Refusal(`The path is too long: ${shown.slice(0, 80)}…`)
    case 'ENXIO':
      return new Refusal(`${shown} is not an ordinary file.`)
    default:
      return error
  }
}
