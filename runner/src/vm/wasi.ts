/**
 * The six WASI functions that the engine imports. Nothing of the machine shows through: the clock is the guest's own,
 * randomness is a constant (the SDK has a generator of its own in guest memory), and files do not exist.
 */
import type { EngineExports } from './exports.ts'

const success = 0
const badFile = 8
const notImplemented = 52

export interface WasiHost {
  exports(): EngineExports
  /** The guest's clock, milliseconds since 1970. */
  now(): number
  /** Takes what the engine prints. */
  log(text: string): void
}

export function wasi(host: WasiHost): Record<string, (...args: never[]) => number> {
  const view = (): DataView => new DataView(host.exports().memory.buffer)
  return {
    clock_time_get(_clock: number, _precision: bigint, out: number): number {
      view().setBigUint64(out, BigInt(Math.trunc(host.now())) * 1_000_000n, true)
      return success
    },
    random_get(out: number, length: number): number {
      new Uint8Array(host.exports().memory.buffer, out, length).fill(0)
      return success
    },
    fd_write(file: number, parts: number, count: number, written: number): number {
      if (file !== 1 && file !== 2) return badFile
      const memory = view()
      let total = 0
      for (let i = 0; i < count; i++) {
        const at = memory.getUint32(parts + 8 * i, true)
        const length = memory.getUint32(parts + 8 * i + 4, true)
        host.log(Buffer.from(memory.buffer, at, length).toString())
        total += length
      }
      memory.setUint32(written, total, true)
      return success
    },
    fd_close: () => notImplemented,
    fd_seek: () => notImplemented,
    fd_fdstat_get: () => badFile,
  }
}

/** Keeps the newest lines, within bounds, so that a chatty guest costs nothing. */
export class BoundedLog {
  #text = ''
  readonly #charsMax: number

  constructor(charsMax = 16_384) {
    this.#charsMax = charsMax
  }

  add(text: string): void {
    this.#text = (this.#text + text).slice(-this.#charsMax)
  }

  get text(): string {
    return this.#text
  }
}
