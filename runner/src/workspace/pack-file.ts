/** Packs as files: written and read in pieces. */
import { createReadStream } from 'node:fs'
import { open, rm } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import type { PackFile } from './workspace.ts'

/** A file that exists. `discard` removes it. */
export async function packFile(path: string): Promise<PackFile> {
  const file = await open(path, 'r')
  const { size } = await file.stat()
  await file.close()
  return {
    bytes: size,
    pieces: (max) => piecesOf(path, max),
    discard: () => rm(path, { force: true }),
  }
}

/** Bytes that are in memory. */
export function packOf(bytes: Uint8Array): PackFile {
  return {
    bytes: bytes.length,
    async *pieces(size) {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
    },
    discard: async () => undefined,
  }
}

async function* piecesOf(path: string, size: number): AsyncGenerator<Uint8Array> {
  const file = await open(path, 'r')
  try {
    for (;;) {
      const piece = new Uint8Array(size)
      let filled = 0
      while (filled < size) {
        const { bytesRead } = await file.read(piece, filled, size - filled)
        if (bytesRead === 0) break
        filled += bytesRead
      }
      if (filled === 0) return
      yield piece.subarray(0, filled)
      if (filled < size) return
    }
  } finally {
    await file.close()
  }
}

/** From byte `start` to the end. */
export function streamOf(path: string, start: number): Readable {
  return createReadStream(path, { start })
}
