/**
 * The output of a job in two bounded files: the older part and the newer one. When the newer is full it becomes the older, and
 * what was older is gone. Places in the output are counted in bytes from its beginning. What a full disk does not take is not kept,
 * nor anything after it: `cut` says why.
 */
import { appendFileSync, closeSync, openSync, readSync, renameSync, rmSync, statSync } from 'node:fs'

/** Bytes of one of the two files. */
const PART_BYTES = 4 << 20

export interface LogPart {
  text: string
  /** Where the text begins, where reading goes on, and where the output ends at present. */
  from: number
  next: number
  end: number
}

export class JobLog {
  readonly #file: string
  readonly #part_bytes: number
  /** Bytes in front of the older file, in it, and in the newer one. */
  #gone = 0
  #older = 0
  #newer = 0
  #cut: string | undefined

  constructor(file: string, part_bytes = PART_BYTES) {
    this.#file = file
    this.#part_bytes = part_bytes
  }

  /** The log of a job that ended earlier. `bytes`: all that it wrote. */
  static reopen(file: string, bytes: number): JobLog {
    const log = new JobLog(file)
    log.#older = sizeOf(log.#olderFile)
    log.#newer = sizeOf(file)
    log.#gone = Math.max(0, bytes - log.#older - log.#newer)
    return log
  }

  get #olderFile(): string {
    return `${this.#file}.1`
  }

  get bytes(): number {
    return this.#gone + this.#older + this.#newer
  }

  /** Why nothing more is kept, in words; undefined: all is well. */
  get cut(): string | undefined {
    return this.#cut
  }

  /** Written at once: a job that writes faster than the disk waits in its pipe, not in our memory. Never throws. */
  append(chunk: Uint8Array): void {
    if (this.#cut !== undefined) return
    try {
      this.#append(chunk)
    } catch (error) {
      this.#cut = error instanceof Error ? error.message : String(error)
      // A part of it may have found room.
      this.#newer = sizeOf(this.#file)
    }
  }

  #append(chunk: Uint8Array): void {
    if (this.#newer > 0 && this.#newer + chunk.length > this.#part_bytes) {
      renameSync(this.#file, this.#olderFile)
      this.#gone += this.#older
      this.#older = this.#newer
      this.#newer = 0
    }
    appendFileSync(this.#file, chunk, { mode: 0o600 })
    this.#newer += chunk.length
  }

  /**
   * Up to `max_bytes` from a place on; what is no longer there is skipped. Never cuts a character in two; with `isOver` a broken one
   * at the very end is shown as such.
   */
  read(offset: number, max_bytes: number, isOver: boolean): LogPart {
    const end = this.bytes
    const from = Math.min(Math.max(offset, this.#gone), end)
    const bytes = this.#slice(from, Math.min(from + max_bytes, end))
    const skip = from > 0 ? leadingContinuation(bytes) : 0
    const isLast = isOver && from + bytes.length === end
    const kept = bytes.subarray(skip, isLast ? bytes.length : completeLength(bytes))
    const text = new TextDecoder('utf-8', { ignoreBOM: true }).decode(kept)
    return { text, from: from + skip, next: from + skip + kept.length, end }
  }

  /** Removes the files. */
  remove(): void {
    rmSync(this.#file, { force: true })
    rmSync(this.#olderFile, { force: true })
  }

  #slice(from: number, to: number): Buffer {
    const border = this.#gone + this.#older
    const parts: Buffer[] = []
    if (from < border) parts.push(readAt(this.#olderFile, from - this.#gone, Math.min(to, border) - from))
    if (to > border) parts.push(readAt(this.#file, Math.max(0, from - border), to - Math.max(from, border)))
    return Buffer.concat(parts)
  }
}

function readAt(file: string, at: number, length: number): Buffer {
  const buffer = Buffer.alloc(length)
  const handle = openSync(file, 'r')
  try {
    return buffer.subarray(0, readSync(handle, buffer, 0, length, at))
  } finally {
    closeSync(handle)
  }
}

function sizeOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0
}

/** Bytes at the beginning that continue a character which begins before. */
function leadingContinuation(bytes: Buffer): number {
  let at = 0
  while (at < 3 && at < bytes.length && isContinuation(bytes[at])) at++
  return at
}

/** Length without a character that is only begun at the end. */
function completeLength(bytes: Buffer): number {
  for (let back = 1; back <= 3 && back <= bytes.length; back++) {
    const byte = bytes[bytes.length - back] ?? 0
    if (isContinuation(byte)) continue
    const wants = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1
    return wants > back ? bytes.length - back : bytes.length
  }
  return bytes.length
}

function isContinuation(byte: number | undefined): boolean {
  return byte !== undefined && (byte & 0xc0) === 0x80
}
