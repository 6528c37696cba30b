/**
 * A session in a file.
 *
 *     "BATONCP1"  u32 length of the head  head, JSON: how it is sealed
 *     then frames: u32 length, box
 *
 * A box is XChaCha20-Poly1305 over its content, bound to the file and to its place in it; in a plain file it is the content
 * itself. The content begins with a byte that tells what it is: the head of the copy, a blob (32 bytes of hash, then its
 * bytes), an entry, the end. The end counts parts and carries the SHA-256 of all contents before it, so that a file that was cut,
 * mixed or mended is noticed. Numbers are little-endian. Read and written in pieces: one frame is in memory at a time.
 */
import { createHash, randomBytes, scrypt, type ScryptOptions } from 'node:crypto'
import { open, stat, type FileHandle } from 'node:fs/promises'
import { promisify } from 'node:util'
import { fromBase64, fromHex, fromUtf8, toBase64, toHex, utf8 } from '@baton/shared/bytes.ts'
import { CopiedEntry, CopyHead, type CopyPart } from '@baton/shared/copy.ts'
import { BatonError } from '@baton/shared/errors.ts'
import { exportKey, type Account } from '@baton/shared/keys.ts'
import { LIMITS } from '@baton/shared/protocol.ts'
import { open as openBox, place, seal as sealBox } from '@baton/shared/seal.ts'
import * as v from 'valibot'
import { replaceWith } from '../files/replace.ts'
import { systemWords } from '../files/words.ts'

const MAGIC = Buffer.from('BATONCP1')
const HEAD_BYTES_MAX = 4096
/** The largest part is a blob; what seals and names it is small. */
const FRAME_BYTES_MAX = LIMITS.blob_bytes + 4096

/** scrypt: about 0.2 s and 64 MiB a guess. */
const SCRYPT = { N: 2 ** 16, r: 8, p: 1, maxmem: 2 ** 27 }

const salted = { id: v.pipe(v.string(), v.regex(/^[A-Za-z0-9_-]{22}$/)) }
const FileHead = v.variant('sealed', [
  v.object({ ...salted, format: v.literal(1), sealed: v.literal('account'), account: v.string() }),
  v.object({ ...salted, format: v.literal(1), sealed: v.literal('passphrase') }),
  v.object({ ...salted, format: v.literal(1), sealed: v.literal('plain') }),
])
type FileHead = v.InferOutput<typeof FileHead>

const End = v.object({ entries: v.number(), blobs: v.number(), sha256: v.string() })

/** By the account's key, by a passphrase, or not at all. */
export type Sealing =
  { sealed: 'account'; account: Account } | { sealed: 'passphrase'; passphrase: string } | { sealed: 'plain' }

const KIND = { head: 1, blob: 2, entry: 3, end: 4 } as const

export interface Written {
  entries: number
  blobs: number
  /** Size of the file. */
  bytes: number
}

/**
 * Writes a file, whole or not at all; it is read again and compared before it gets its name (F45). Throws BatonError
 * `disk-full`, `file-unusable` when it can't be written, `copy-torn` when it is not what was written, and what `parts` throws.
 */
export async function writeCopyFile(
  path: string,
  parts: () => AsyncIterable<CopyPart>,
  sealing: Sealing,
): Promise<Written> {
  try {
    const id = toBase64(randomBytes(16))
    const head: FileHead =
      sealing.sealed === 'account'
        ? { format: 1, id, sealed: 'account', account: sealing.account.id }
        : { format: 1, id, sealed: sealing.sealed }
    const key = await keyFor(head, sealing)
    return await replaceWith(path, async (file, temporary) => {
      const sum = await writeParts(file, parts(), head, key)
      const { summary, bytes } = await check(temporary, key)
      if (summary.sha256 !== sum) throw new BatonError('copy-torn', `(${path} is not as it was written)`)
      return { entries: summary.entries, blobs: summary.blobs, bytes }
    })
  } catch (error) {
    throw inWords(error, path)
  }
}

async function writeParts(
  file: FileHandle,
  parts: AsyncIterable<CopyPart>,
  head: FileHead,
  key: Uint8Array | undefined,
): Promise<string> {
  const json = Buffer.from(JSON.stringify(head))
  await file.write(Buffer.concat([MAGIC, u32(json.length), json]))
  const hash = createHash('sha256')
  const counts = { entries: 0, blobs: 0 }
  let n = 0
  const write = async (kind: number, ...content: Uint8Array[]): Promise<void> => {
    const whole = Buffer.concat([Buffer.from([kind]), ...content])
    if (kind !== KIND.end) hash.update(whole)
    const box = key ? sealBox(key, whole, place.exported(head.id, n++)) : whole
    await file.write(Buffer.concat([u32(box.length), box]))
  }
  for await (const part of parts) {
    if (part.t === 'head') await write(KIND.head, utf8(JSON.stringify(part.head)))
    else if (part.t === 'blob') {
      counts.blobs++
      await write(KIND.blob, fromHex(part.hash), part.bytes)
    } else {
      counts.entries++
      await write(KIND.entry, utf8(JSON.stringify(part.entry)))
    }
  }
  const sha256 = hash.digest('hex')
  await write(KIND.end, utf8(JSON.stringify({ ...counts, sha256 })))
  return sha256
}

/** Reads a whole file and believes nothing. */
async function check(
  path: string,
  key: Uint8Array | undefined,
): Promise<{ summary: v.InferOutput<typeof End>; bytes: number }> {
  const file = await openFile(path)
  try {
    const parts = partsOf(file, path, key)
    for (;;) {
      const next = await parts.next()
      if (next.done) return { summary: next.value, bytes: (await file.stat()).size }
    }
  } finally {
    await file.close()
  }
}

export interface CopyFile {
  /** Was it made by a device of this account? */
  isOwn: boolean
  /** All parts. Throws BatonError `copy-torn` at the latest at its end when the file is not whole. */
  parts: () => AsyncGenerator<CopyPart, v.InferOutput<typeof End>>
}

/**
 * Opens a file. `passphrase` is asked for when the file needs one. Throws BatonError `copy-foreign` when it is none of ours or the
 * key does not fit, `file-unusable` when it can't be read.
 */
export async function openCopyFile(
  path: string,
  account: Account,
  passphrase: () => Promise<string>,
): Promise<CopyFile> {
  const file = await openFile(path)
  const { head } = await readHead(file, path).finally(() => void file.close())
  const key = await keyFor(head, await sealingOf(head, account, passphrase))
  return {
    isOwn: head.sealed === 'account',
    async *parts() {
      const again = await openFile(path)
      try {
        return yield* partsOf(again, path, key)
      } finally {
        await again.close()
      }
    },
  }
}

async function sealingOf(
  head: FileHead,
  account: Account,
  passphrase: () => Promise<string>,
): Promise<Sealing> {
  if (head.sealed === 'plain') return { sealed: 'plain' }
  if (head.sealed === 'passphrase') return { sealed: 'passphrase', passphrase: await passphrase() }
  if (head.account === account.id) return { sealed: 'account', account }
  throw new BatonError('copy-foreign', '(it is sealed for another account; export it with --passphrase)')
}

/** Slow on purpose, so beside the event loop: the connection must live on meanwhile. */
const derive = promisify<string, Uint8Array, number, ScryptOptions, Buffer>(scrypt)

async function keyFor({ id }: FileHead, sealing: Sealing): Promise<Uint8Array | undefined> {
  if (sealing.sealed === 'plain') return undefined
  if (sealing.sealed === 'account') return exportKey(sealing.account, id)
  return new Uint8Array(await derive(sealing.passphrase.normalize('NFC'), fromBase64(id), 32, SCRYPT))
}

async function* partsOf(
  file: FileHandle,
  path: string,
  key: Uint8Array | undefined,
): AsyncGenerator<CopyPart, v.InferOutput<typeof End>> {
  const { head, bytes } = await readHead(file, path)
  const hash = createHash('sha256')
  const counts = { entries: 0, blobs: 0 }
  const torn = (what: string): BatonError => new BatonError('copy-torn', `(${path}: ${what})`)
  let at = bytes
  for (let n = 0; ; n++) {
    const length = await read(file, at, 4)
    if (length.length < 4) throw torn('it ends too early')
    const size = length.readUInt32LE()
    if (size === 0 || size > FRAME_BYTES_MAX) throw torn('it is damaged')
    const box = await read(file, at + 4, size)
    if (box.length < size) throw torn('it ends too early')
    at += 4 + size
    const content = key ? unsealed(key, box, place.exported(head.id, n), n, torn) : box
    const kind = content[0]
    const rest = content.subarray(1)
    if (kind === KIND.end) {
      const end = parse(End, rest, torn)
      const isWhole = end.entries === counts.entries && end.blobs === counts.blobs
      if (!isWhole || end.sha256 !== hash.digest('hex')) throw torn('its parts do not add up')
      if ((await read(file, at, 1)).length > 0) throw torn('something follows its end')
      return end
    }
    hash.update(content)
    if (kind === KIND.head) yield { t: 'head', head: parse(CopyHead, rest, torn) }
    else if (kind === KIND.entry) {
      counts.entries++
      yield { t: 'entry', entry: parse(CopiedEntry, rest, torn) }
    } else if (kind === KIND.blob) {
      counts.blobs++
      yield { t: 'blob', hash: toHex(rest.subarray(0, 32)), bytes: rest.subarray(32) }
    } else throw torn('it has a part that is not known here')
  }
}

function unsealed(
  key: Uint8Array,
  box: Uint8Array,
  where: string,
  n: number,
  torn: (what: string) => BatonError,
): Uint8Array {
  try {
    return openBox(key, box, where)
  } catch (cause) {
    if (n === 0)
      throw new BatonError('copy-foreign', '(the passphrase does not fit, or it is damaged)', { cause })
    throw torn('it is damaged')
  }
}

function parse<S extends v.GenericSchema>(
  schema: S,
  bytes: Uint8Array,
  torn: (what: string) => BatonError,
): v.InferOutput<S> {
  let json: unknown
  try {
    json = JSON.parse(fromUtf8(bytes))
  } catch {
    throw torn('it is damaged')
  }
  const parsed = v.safeParse(schema, json)
  if (!parsed.success) throw torn(v.summarize(parsed.issues))
  return parsed.output
}

async function readHead(file: FileHandle, path: string): Promise<{ head: FileHead; bytes: number }> {
  const start = await read(file, 0, MAGIC.length + 4)
  const isOurs = start.subarray(0, MAGIC.length - 1).equals(MAGIC.subarray(0, -1))
  if (!isOurs || start.length < MAGIC.length + 4) throw new BatonError('copy-foreign', `(${path})`)
  const size = start.readUInt32LE(MAGIC.length)
  const json = await read(file, start.length, Math.min(size, HEAD_BYTES_MAX))
  try {
    if (!start.subarray(0, MAGIC.length).equals(MAGIC)) throw new Error('another version')
    return { head: v.parse(FileHead, JSON.parse(json.toString('utf8'))), bytes: start.length + size }
  } catch (cause) {
    throw new BatonError('copy-foreign', `(${path}: another version of Baton made it, or it is damaged)`, {
      cause,
    })
  }
}

async function read(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length)
  let got = 0
  while (got < length) {
    const { bytesRead } = await file.read(buffer, got, length - got, at + got)
    if (bytesRead === 0) break
    got += bytesRead
  }
  return buffer.subarray(0, got)
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    const info = await stat(path)
    if (!info.isFile())
      throw new BatonError('file-unusable', `${path} is ${info.isDirectory() ? 'a folder' : 'no file'}.`)
    return await open(path, 'r')
  } catch (cause) {
    if (cause instanceof BatonError) throw cause
    throw new BatonError('file-unusable', `${path} can not be read: ${systemWords(cause)}.`, { cause })
  }
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}

function inWords(error: unknown, path: string): unknown {
  if (error instanceof BatonError || !(error instanceof Error) || !('code' in error)) return error
  return new BatonError('file-unusable', `${path} can not be written: ${systemWords(error)}.`, {
    cause: error,
  })
}
