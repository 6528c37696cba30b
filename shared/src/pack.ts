/** Compression that browser and Node have alike. */
import { concat } from './bytes.ts'

export function deflate(bytes: Uint8Array): Promise<Uint8Array> {
  return through(bytes, new CompressionStream('deflate-raw'))
}

/** Rejects with TypeError when the bytes are damaged. */
export function inflate(bytes: Uint8Array): Promise<Uint8Array> {
  return through(bytes, new DecompressionStream('deflate-raw'))
}

async function through(
  bytes: Uint8Array,
  stream: CompressionStream | DecompressionStream,
): Promise<Uint8Array> {
  const writer = stream.writable.getWriter()
  const written = writer.write(bytes as Uint8Array<ArrayBuffer>).then(() => writer.close())
  // What is wrong shows when it is read.
  written.catch(() => undefined)
  const chunks: Uint8Array[] = []
  const reader = stream.readable.getReader()
  for (let next = await reader.read(); !next.done; next = await reader.read()) chunks.push(next.value)
  return concat(...chunks)
}
