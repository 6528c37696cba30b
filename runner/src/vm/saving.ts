/** Memory, globals and stack of one instance: filled from the baseline, saved as snapshots, each against the last, and restored. */
import { BatonError } from '@baton/shared/errors.ts'
import type { Snapshot, SnapshotHeader } from '../harness.ts'
import type { Baseline } from './baseline.ts'
import { checkFits, decodeSnapshot, encodeSnapshot, sha256, type SnapshotFile } from './codec.ts'
import { forgetDead, layoutOf } from './dead.ts'
import { globalsOf } from './exports.ts'
import type { Instance } from './instance.ts'
import { applyPages, diffPages } from './pages.ts'
import type { Stack } from './stack.ts'
import type { Saved } from './state.ts'

const memoryMaxDefault = 256 * 2 ** 20

export interface SavingOptions {
  instance: Instance
  module: WebAssembly.Module
  stack: Stack
  baseline: Baseline
  /** What snapshots of this guest are of. */
  header: SnapshotHeader
  /** Bytes of JavaScript heap; more is an error in the guest. */
  memoryMax?: number
}

export class Saving {
  readonly #options: SavingOptions
  /** Memory at the last snapshot, and that snapshot's hash. */
  #parent: { memory: Uint8Array; hash: string } | undefined

  /** Fills a fresh instance from the baseline. */
  constructor(options: SavingOptions) {
    this.#options = options
    const { instance, baseline } = options
    instance.reserve(baseline.memory.length)
    instance.bytes().set(baseline.memory)
    for (const [name, global] of globalsOf(instance.exports)) global.value = baseline.globals[name] ?? 0
    this.#limitMemory()
  }

  /**
   * Saves a paused guest. `full`: relative to the baseline even when there is an earlier snapshot. `lean`: full, and without what lies
   * dead in its memory; no later snapshot builds on it. `now`, `ended`: what the host knows of the guest beside its memory.
   */
  save(
    state: Saved,
    { now, ended, full, lean }: { now: number; ended?: string; full: boolean; lean: boolean },
  ): Snapshot {
    const { instance, stack, baseline, header: common } = this.#options
    instance.exports.baton_fuel.value = 0
    const memory = lean ? this.#lean(state) : instance.bytes()
    const parent = full || lean ? undefined : this.#parent
    const diff = diffPages(memory, parent?.memory ?? baseline.memory)
    const unwound = state.name === 'quiescent' ? new Uint8Array() : stack.bytes()
    const header: SnapshotFile['header'] = {
      ...common,
      state: state.name,
      ...(state.name === 'blocked' && { on: state.on }),
      ...(parent !== undefined && { parent: parent.hash }),
      host: {
        ...(state.name !== 'quiescent' && { entry: state.entry }),
        now,
        ...(ended !== undefined && { ended }),
        memory: memory.length,
        stack: unwound.length,
        pages: diff.pages.length,
        globals: Object.fromEntries(
          globalsOf(instance.exports).map(([name, global]) => [name, global.value]),
        ),
      },
    }
    const bytes = encodeSnapshot({ header, stack: unwound, diff })
    const hash = sha256(bytes)
    this.#parent = lean ? undefined : { memory: memory.slice(), hash }
    const { host: _, ...public_ } = header
    return { header: public_ as SnapshotHeader, bytes, hash }
  }

  /** Restores a fresh guest. `chain` runs from the oldest snapshot to the newest, whose header it returns. Throws `snapshot-…`. */
  restore(chain: Uint8Array[]): SnapshotFile['header'] {
    const { instance, stack, header } = this.#options
    const files = chain.map((bytes) => ({ file: decodeSnapshot(bytes), hash: sha256(bytes) }))
    const newest = files.at(-1)
    if (newest === undefined) throw new BatonError('snapshot-foreign', '(no snapshot was given)')
    let parent: string | undefined
    for (const { file, hash } of files) {
      checkFits(file.header as SnapshotHeader, header)
      if (file.header.parent !== parent) {
        const needs = file.header.parent ?? 'none'
        throw new BatonError(
          'snapshot-baseline',
          `(it builds on snapshot ${needs}, but was given ${parent ?? 'none'})`,
        )
      }
      parent = hash
    }
    try {
      for (const { file } of files) {
        instance.reserve(file.diff.bytes)
        applyPages(instance.bytes(), file.diff)
      }
      stack.load(newest.file.stack)
      this.#loadGlobals(newest.file.header.host.globals)
    } catch (cause) {
      throw new BatonError('snapshot-torn', '(its pages do not fit)', { cause })
    }
    this.#parent = { memory: instance.bytes().slice(), hash: newest.hash }
    return newest.file.header
  }

  /** Memory without what is dead. An interrupted guest may be in the middle of the allocator: there all of it counts. */
  #lean(state: Saved): Uint8Array {
    const { instance, module, baseline } = this.#options
    const memory = instance.bytes().slice()
    if (state.name !== 'interrupted') {
      const stack = instance.exports.__stack_pointer.value
      forgetDead(memory, { baseline: baseline.memory, layout: layoutOf(module), stack })
    }
    return memory
  }

  #loadGlobals(values: Readonly<Record<string, number>>): void {
    for (const [name, global] of globalsOf(this.#options.instance.exports)) {
      const value = values[name]
      if (value === undefined) throw new RangeError(`the global ${name} is missing`)
      global.value = value
    }
    this.#limitMemory()
  }

  #limitMemory(): void {
    const { instance, memoryMax = memoryMaxDefault } = this.#options
    instance.exports.qjs_set_memory_limit(memoryMax)
  }
}
