/**
 * Baselines kept from one process to the next, in the person's cache folder: to load a bundle is most of what the first restore of
 * a process takes. Losing them costs time and nothing else, so no trouble with them is an error.
 *
 * A file that somebody changed on purpose gains him nothing: a guest may ask for no more than an agent of his own could.
 *
 *     in a frame "BATONBL1": header, JSON  memory, zstd
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib'
import * as v from 'valibot'
import { frame, unframe } from '../files/framed.ts'
import { replaceWholeSync } from '../files/replace.ts'
import type { Baseline } from './baseline.ts'
import { abi, sha256 } from './codec.ts'

/** What a baseline is of: hex SHA-256 each. */
export interface Origin {
  engine: string
  bundle: string
}

/** What was written longest ago makes room. A file has some 200 KB. */
const LEFT_MS = 3_600_000
const FILES_MAX = 16
const MEMORY_BYTES_MAX = 64 * 2 ** 20

const magic = 'BATONBL1'
const address = v.pipe(v.number(), v.integer())
const headerSchema = v.strictObject({
  hash: v.string(),
  globals: v.record(v.string(), address),
  handles: v.strictObject({ deliver: address, self: address, argv: address, random: address }),
})

export class KeptBaselines {
  readonly #folder: string

  constructor(folder = join(cacheFolder(), 'baselines')) {
    this.#folder = folder
  }

  /** Undefined when there is none, or none that is whole. */
  read(origin: Origin): Baseline | undefined {
    try {
      return decode(readFileSync(this.#path(origin)))
    } catch {
      return undefined
    }
  }

  keep(origin: Origin, baseline: Baseline): void {
    try {
      mkdirSync(this.#folder, { recursive: true, mode: 0o700 })
      // One that is not whole is noticed when it is read.
      replaceWholeSync(this.#path(origin), encode(baseline), { sync: 'none' })
      this.#makeRoom()
    } catch {
      // A full disk, or no home to write to: it is computed again.
      return
    }
  }

  /** Each Node and each kind of machine makes its own: that all come to the same is checked, not assumed. */
  #path({ engine, bundle }: Origin): string {
    return join(this.#folder, sha256([abi, process.version, process.arch, engine, bundle].join('/')))
  }

  #makeRoom(): void {
    const files = readdirSync(this.#folder).map((name) => {
      const path = join(this.#folder, name)
      return { path, at: statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0 }
    })
    const isTemporary = ({ path }: { path: string }): boolean => path.endsWith('.tmp')
    const newestFirst = files.filter((file) => !isTemporary(file)).toSorted((a, b) => b.at - a.at)
    // Earlier versions named theirs after a process.
    const left = files.filter((file) => isTemporary(file) && file.at < Date.now() - LEFT_MS)
    for (const { path } of [...newestFirst.slice(FILES_MAX), ...left]) rmSync(path, { force: true })
  }
}

/** Where programs of this person may keep what can be made again. */
function cacheFolder(): string {
  const { XDG_CACHE_HOME: named } = process.env
  if (named) return join(named, 'baton')
  return process.platform === 'darwin'
    ? join(homedir(), 'Library', 'Caches', 'baton')
    : join(homedir(), '.cache', 'baton')
}

function encode({ memory, ...header }: Baseline): Uint8Array {
  const packed = zstdCompressSync(Buffer.from(memory), { params: { [constants.ZSTD_c_compressionLevel]: 1 } })
  return frame(magic, header, packed)
}

function decode(bytes: Buffer): Baseline | undefined {
  const file = unframe(magic, bytes)
  if (file.is !== 'whole') return undefined
  const header = v.parse(headerSchema, file.header)
  const memory = zstdDecompressSync(file.body, { maxOutputLength: MEMORY_BYTES_MAX })
  // All threads use one copy.
  const shared = new Uint8Array(new SharedArrayBuffer(memory.length))
  shared.set(memory)
  return { memory: shared, ...header }
}
