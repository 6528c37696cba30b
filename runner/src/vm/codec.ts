/**
 * The snapshot file.
 *
 *     in a frame "BATONSN1": header, JSON  body, zstd
 *
 * The body holds the unwound stack, then the page numbers (u32 each), then the pages. All numbers are little-endian. Node
 * 22.15 and later read and write it alike.
 */
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { constants, zstdCompress, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import { BatonError } from '@baton/shared/errors.ts'
import * as v from 'valibot'
import { frame, unframe } from '../files/framed.ts'
import type { Snapshot, SnapshotHeader } from '../harness.ts'
import { pageBytes, type PageDiff } from './pages.ts'

/** Version of what host, SDK and engine assume of each other. */
export const abi = 1

const magic = 'BATONSN1'
const bodyBytesMax = 600 * 2 ** 20
const level = 3
/** For what lies there for long: a tenth smaller, and fifty times as slow to write. */
const denseLevel = 19
/** A larger body is left as it is: a second for each further four megabytes is too much. */
const denseBytesMax = 4 << 20

const hex = v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/))
const count = v.pipe(v.number(), v.integer(), v.minValue(0))
const headerSchema = v.strictObject({
  abi: count,
  engine: hex,
  bundle: hex,
  baseline: hex,
  state: v.picklist(['quiescent', 'blocked', 'interrupted']),
  on: v.optional(count),
  parent: v.optional(hex),
  host: v.strictObject({
    /** The export to re-enter. */
    entry: v.optional(v.picklist(['deliver', 'job'])),
    /** The guest's clock. */
    now: v.number(),
    /** How main has ended, when its last jobs still run: JSON. */
    ended: v.optional(v.string()),
    /** Size of guest memory, in bytes; of the unwound stack; the number of pages that follow. */
    memory: count,
    stack: count,
    pages: count,
    globals: v.record(v.string(), v.pipe(v.number(), v.integer())),
  }),
})

export type FileHeader = v.InferOutput<typeof headerSchema>

export interface SnapshotFile {
  header: FileHeader
  stack: Uint8Array
  diff: PageDiff
}

/** The file's bytes. */
export function encodeSnapshot({ header, stack, diff }: SnapshotFile): Uint8Array {
  const numbers = Buffer.from(Uint32Array.from(diff.pages).buffer)
  const body = Buffer.concat([stack, numbers, diff.data])
  return frame(magic, header, zstdCompressSync(body, packedTo(level)))
}

const packedTo = (to: number): { params: Record<number, number> } => ({
  params: { [constants.ZSTD_c_compressionLevel]: to },
})
const compress = promisify(zstdCompress)

/** The same snapshot in a smaller file, which is another one by its hash. The work is done beside this thread. */
export async function dense(snapshot: Snapshot): Promise<Snapshot> {
  const file = unframe(magic, snapshot.bytes)
  if (file.is !== 'whole') return snapshot
  const body = zstdDecompressSync(file.body, { maxOutputLength: bodyBytesMax })
  if (body.length > denseBytesMax) return snapshot
  const bytes = frame(magic, file.header, await compress(body, packedTo(denseLevel)))
  return { header: snapshot.header, bytes, hash: sha256(bytes) }
}

/**
 * Reads a file.
 * Throws `snapshot-foreign` for something else, `snapshot-torn` for a damaged one, `snapshot-engine` for another version.
 */
export function decodeSnapshot(bytes: Uint8Array): SnapshotFile {
  const file = unframe(magic, bytes)
  if (file.is === 'foreign') throw new BatonError('snapshot-foreign')
  if (file.is === 'torn') throw new BatonError('snapshot-torn', `(${file.why})`)
  if (file.is === 'other-version')
    throw new BatonError('snapshot-engine', `(its format is ${file.format}, this is ${magic})`)
  try {
    const header = v.parse(headerSchema, file.header)
    const body = zstdDecompressSync(file.body, { maxOutputLength: bodyBytesMax })
    return { header, ...split(body, header) }
  } catch (cause) {
    throw new BatonError('snapshot-torn', '(its header or pages can not be read)', { cause })
  }
}

function split(body: Buffer, header: FileHeader): Omit<SnapshotFile, 'header'> {
  const { stack, pages, memory } = header.host
  const dataAt = stack + 4 * pages
  if (body.length !== dataAt + pages * pageBytes) throw new RangeError('the body has another length')
  const numbers = Array.from({ length: pages }, (_, i) => body.readUInt32LE(stack + 4 * i))
  const data = new Uint8Array(body.subarray(dataAt))
  return { stack: new Uint8Array(body.subarray(0, stack)), diff: { bytes: memory, pages: numbers, data } }
}

/** Throws when a snapshot is of another version, engine or agent than what is at hand; says which one it needs (F60). */
export function checkFits(
  header: SnapshotHeader,
  have: Pick<SnapshotHeader, 'abi' | 'engine' | 'bundle' | 'baseline'>,
): void {
  const differs = (name: 'abi' | 'engine' | 'bundle' | 'baseline'): string | undefined =>
    header[name] === have[name] ? undefined : `(it needs ${name} ${header[name]}, this is ${have[name]})`
  const engine = differs('abi') ?? differs('engine')
  if (engine !== undefined) throw new BatonError('snapshot-engine', engine)
  const baseline = differs('bundle') ?? differs('baseline')
  if (baseline !== undefined) throw new BatonError('snapshot-baseline', baseline)
}

/** Hex SHA-256. */
export const sha256 = (bytes: Uint8Array | string): string => createHash('sha256').update(bytes).digest('hex')
